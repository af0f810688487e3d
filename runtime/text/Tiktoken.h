//===- Tiktoken.h - tiktoken's lists of ranks to a spec ---------------------------===//
//
// A line a token: its bytes in Base64, a space, its rank, which is its id. The pair of pieces that
// makes the token with the lowest rank is merged first. The file says neither how a text is cut
// nor which control tokens there are; published lists are told apart by their number of ranks.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_TEXT_TIKTOKEN_H
#define LLMRT_TEXT_TIKTOKEN_H

#include "runtime/support/Status.h"
#include "runtime/text/TokenizerSpec.h"

namespace llmrt {

/// Reads a list of ranks. Control tokens are those of \p tokenizerConfigJson's
/// added_tokens_decoder, or if it has none (or is empty) the published ones. Unsupported, naming
/// the lists that are known, for another number of ranks.
Result<TokenizerSpec> specFromTiktoken(std::string_view ranks,
                                       std::string_view tokenizerConfigJson);

/// Whether \p bytes begin like a list of ranks (a tokenizer.model may be one, or SentencePiece's).
bool looksLikeTiktoken(std::string_view bytes);

} // namespace llmrt

#endif // LLMRT_TEXT_TIKTOKEN_H
