//===- GgufTokenizer.h - a tokenizer from GGUF metadata --------------------------===//
#ifndef LLMRT_TEXT_GGUFTOKENIZER_H
#define LLMRT_TEXT_GGUFTOKENIZER_H

#include "runtime/support/Status.h"
#include "runtime/text/TokenizerSpec.h"

namespace llmrt {

/// The values of `tokenizer.ggml.*`, as a reader of the file found them; types and lengths
/// other than these it must have refused already. What a file does not have stays empty.
struct GgufTokenizerData {
  std::string model; ///< "gpt2", "llama", "t5", "bert", "gemma4" or "whitespace"
  std::string pre;   ///< for "gpt2": the name of the pre-tokenizer
  std::vector<std::string> tokens;
  std::vector<float> scores;       ///< one a token; "llama" and "t5" only
  std::vector<int32_t> tokenTypes; ///< one a token, see GgufTokenType
  std::vector<std::string> merges; ///< "left right"; "gpt2" only
  std::string charsMap;            ///< precompiled_charsmap; "t5" only
  std::optional<int64_t> bosId, eosId, unknownId, padId, separatorId;
  std::optional<bool> addBos, addEos, addSeparator, addSpacePrefix, removeExtraSpaces;
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

// The parts, each in its own file; lengths and numbers were checked.

/// "bert": WordPiece, with a mark (U+2581) before a word's first token instead of "##" before the
/// others.
Status readGgufWordPiece(const GgufTokenizerData &data, TokenizerSpec &spec);
/// "t5": Unigram with SentencePiece's normalization.
Status readGgufUnigram(const GgufTokenizerData &data, TokenizerSpec &spec);
/// Fills spec.byteTokens from the tokens of type BYTE.
Status readGgufByteTokens(const GgufTokenizerData &data, TokenizerSpec &spec);
/// Tokens that are found in the text itself: control tokens as it is given, user-defined ones
/// as \p normalized says.
void addGgufFoundTokens(const GgufTokenizerData &data, bool normalized, TokenizerSpec &spec);
GgufTokenType ggufTypeOf(const GgufTokenizerData &data, size_t id);
/// InvalidFile about tokenizer.ggml.KEY; an element follows its array: "[4] is ...".
Status ggufKeyError(const std::string &key, const std::string &what);
/// \p text with each space as SentencePiece's mark.
std::string spacesToMarks(std::string_view text);

} // namespace llmrt

#endif // LLMRT_TEXT_GGUFTOKENIZER_H
