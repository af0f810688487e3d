//===- SentencePieceModel.h - tokenizer.model to a spec ---------------------------===//
//
// The protobuf file that SentencePiece trains: ModelProto of its sentencepiece_model.proto, read
// at the wire level. Unigram and BPE models; ids and normalization are SentencePiece's own.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_TEXT_SENTENCEPIECEMODEL_H
#define LLMRT_TEXT_SENTENCEPIECEMODEL_H

#include "runtime/support/Status.h"
#include "runtime/text/TokenizerSpec.h"

namespace llmrt {

/// Reads the bytes of a tokenizer.model. What goes around a text is not in the file: with
/// \p tokenizerConfigJson (empty if there is none) add_bos_token, add_eos_token and the class name
/// say it, else a beginning is put before a text. Classes that number tokens differently from the
/// file are Unsupported.
Result<TokenizerSpec> specFromSentencePiece(std::string_view model,
                                            std::string_view tokenizerConfigJson,
                                            std::string_view specialTokensMapJson);

/// What SentencePiece does around its model, for files of other formats that hold one.
struct SentencePieceRules {
  std::string charsMap; ///< precompiled_charsmap; empty: none
  bool addDummyPrefix = true, removeExtraSpaces = true, escapeSpaces = true, markAsSuffix = false;
};
/// Adds the normalizer and the decoders.
void addSentencePieceSteps(SentencePieceRules rules, TokenizerSpec &spec);

} // namespace llmrt

#endif // LLMRT_TEXT_SENTENCEPIECEMODEL_H
