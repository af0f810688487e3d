//===- TokenizerJson.h - Hugging Face's tokenizer.json to a spec ------------------===//
#ifndef LLMRT_TEXT_TOKENIZERJSON_H
#define LLMRT_TEXT_TOKENIZERJSON_H

#include "runtime/text/Json.h"
#include "runtime/text/TokenizerSpec.h"

namespace llmrt {

/// Reads tokenizer.json and its companions (empty texts where a model has none).
/// `truncation` and `padding` in the file are not applied: they concern batches for training,
/// and a prompt must not be cut in silence.
Result<TokenizerSpec> specFromTokenizerJson(std::string_view json,
                                            std::string_view tokenizerConfigJson,
                                            std::string_view specialTokensMapJson);

// The parts, each in its own file. `spec` is filled; a component of an unknown type is an
// Unsupported naming it and its place.

/// `model` and `added_tokens`.
Status readModel(JsonValue model, TokenizerSpec &spec);
Status readWordPiece(JsonValue model, TokenizerSpec &spec);
Status readWordLevel(JsonValue model, TokenizerSpec &spec);
Status readUnigram(JsonValue model, TokenizerSpec &spec);
/// `vocab` as an object from token to id.
Status readVocabularyMap(JsonValue vocab, TokenizerSpec &spec);
/// Fills spec.byteTokens with the tokens spelled "<0xHH>".
void findByteTokens(TokenizerSpec &spec);
Status readAddedTokens(JsonValue tokens, TokenizerSpec &spec);
/// `normalizer`, `pre_tokenizer`, `decoder`.
Status readPipeline(JsonValue root, TokenizerSpec &spec);
/// `post_processor`: ids put around a text.
Status readPostProcessor(JsonValue processor, TokenizerSpec &spec);
/// bos, eos, pad and unk tokens, add_bos_token, add_eos_token, clean-up.
Status readCompanions(std::string_view configJson, std::string_view mapJson, TokenizerSpec &spec);
/// The same beside a tokenizer.model: the class says what goes around a text.
Status readSentencePieceCompanions(std::string_view configJson, std::string_view mapJson,
                                   TokenizerSpec &spec);

// Checked access, with the place in the message.

/// A member that must be a string; \p fallback if it is missing.
Result<std::string> readString(JsonValue object, std::string_view key,
                               std::optional<std::string_view> fallback = std::nullopt);
Result<bool> readBool(JsonValue object, std::string_view key, bool fallback);
/// A token id, 0..kMaxTokenId.
Result<int32_t> readId(JsonValue value, const std::string &what);
/// The id of a token of the spec that is spelled \p text; added ones come first.
std::optional<int32_t> findId(const TokenizerSpec &spec, std::string_view text);

} // namespace llmrt

#endif // LLMRT_TEXT_TOKENIZERJSON_H
