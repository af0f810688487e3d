//===- GgufTokenizer.h - a tokenizer from GGUF metadata --------------------------===//
#ifndef LLMRT_TEXT_GGUFTOKENIZER_H
#define LLMRT_TEXT_GGUFTOKENIZER_H

#include "runtime/support/Status.h"
#include "runtime/text/TokenizerSpec.h"

namespace llmrt {

/// The values of `tokenizer.ggml.*`, as a reader of the file found them; types and lengths
/// other than these it must have refused already. What a file does not have stays empty.
struct GgufTokenizerData {
  std::string model; ///< "gpt2" or "llama"
  std::string pre;   ///< for "gpt2": the name of the pre-tokenizer
  std::vector<std::string> tokens;
  std::vector<float> scores;       ///< one a token; "llama" only
  std::vector<int32_t> tokenTypes; ///< one a token, see GgufTokenType
  std::vector<std::string> merges; ///< "left right"; "gpt2" only
  std::optional<int64_t> bosId, eosId, unknownId, padId;
  std::optional<bool> addBos, addEos, addSpacePrefix;
};

enum class GgufTokenType : int32_t {
  Normal = 1,
  Unknown = 2,
  Control = 3,
  UserDefined = 4,
  Unused = 5,
  Byte = 6
};

/// Unsupported for a model or pre-tokenizer that is not known (there is no default to fall
/// back to: the ids would be wrong in silence); InvalidFile for contradictions, naming the key.
Result<TokenizerSpec> specFromGguf(const GgufTokenizerData &data);

} // namespace llmrt

#endif // LLMRT_TEXT_GGUFTOKENIZER_H
