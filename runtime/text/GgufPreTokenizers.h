//===- GgufPreTokenizers.h - what tokenizer.ggml.pre means ------------------------===//
#ifndef LLMRT_TEXT_GGUFPRETOKENIZERS_H
#define LLMRT_TEXT_GGUFPRETOKENIZERS_H

#include "runtime/text/TokenizerSpec.h"

#include <string_view>

namespace llmrt {

/// One of the rules that byte-level BPE vocabularies were trained with.
struct GgufPreTokenizer {
  bool nfc = false; ///< texts are normalized to NFC
  bool ignoreMerges = false;
  bool addBos = false;             ///< unless tokenizer.ggml.add_bos_token says otherwise
  bool addSeparator = false;       ///< unless tokenizer.ggml.add_sep_token says otherwise
  bool characters = false;         ///< tokens are characters, not mapped bytes
  bool marks = false;              ///< spaces are U+2581 in tokens, and bytes "<0xHH>"
  std::vector<PipelineStep> steps; ///< with ByteMap unless tokens are characters
};

/// The rule called \p name, or nothing.
std::optional<GgufPreTokenizer> findGgufPreTokenizer(std::string_view name);
/// All names, for messages.
std::string ggufPreTokenizerNames();

} // namespace llmrt

#endif // LLMRT_TEXT_GGUFPRETOKENIZERS_H
