// The models of tokenizer.json other than BPE.
#include "runtime/text/TokenizerJson.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_map>

namespace llmrt {

Status readVocabularyMap(JsonValue vocab, TokenizerSpec &spec) {
  if (!vocab.isObject())
    return invalidFile(std::string("model.vocab must be an object, it is ") + vocab.typeName());
  std::unordered_map<std::string_view, int32_t> ids;
  ids.reserve(vocab.size());
  spec.vocabulary.reserve(vocab.size());
  for (auto [text, value] : vocab.members()) {
    LLMRT_ASSIGN_OR_RETURN(int32_t id, readId(value, "token '" + std::string(text) + "'"));
    if (!ids.emplace(text, id).second)
      return invalidFile("model.vocab has the token '" + std::string(text) + "' twice");
    spec.vocabulary.push_back({id, std::string(text), 0, true});
  }
  return Status::ok();
}

void findByteTokens(TokenizerSpec &spec) {
  std::unordered_map<std::string_view, int32_t> ids;
  for (const SpecToken &token : spec.vocabulary)
    if (token.text.size() == 6 && token.text.starts_with("<0x"))
      ids.emplace(token.text, token.id);
  static constexpr char kDigits[] = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte) {
    std::string name = {'<', '0', 'x', kDigits[byte >> 4], kDigits[byte & 15], '>'};
    auto found = ids.find(name);
    spec.byteTokens.push_back(found == ids.end() ? -1 : found->second);
  }
}

Status readWordPiece(JsonValue model, TokenizerSpec &spec) {
  spec.kind = ModelKind::WordPiece;
  LLMRT_ASSIGN_OR_RETURN(spec.continuingPrefix,
                         readString(model, "continuing_subword_prefix", "##"));
  if (JsonValue most = model["max_input_chars_per_word"]; !most.isNull()) {
    std::optional<int64_t> value = most.asInteger();
    if (!value || *value < 0)
      return invalidFile("model.max_input_chars_per_word must be a count");
    spec.maxWordCharacters = static_cast<uint32_t>(std::min<int64_t>(*value, UINT32_MAX));
  }
  return readVocabularyMap(model["vocab"], spec);
}

Status readWordLevel(JsonValue model, TokenizerSpec &spec) {
  spec.kind = ModelKind::WordLevel;
  return readVocabularyMap(model["vocab"], spec);
}

static std::optional<double> numberOf(JsonValue value) {
  if (!value || value.type() != JsonType::Number)
    return std::nullopt;
  std::string_view digits = value.asString();
  double number = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(number))
    return std::nullopt;
  return number;
}

/// vocab is an array of [token, log probability]; a token's id is its place.
Status readUnigram(JsonValue model, TokenizerSpec &spec) {
  spec.kind = ModelKind::Unigram;
  spec.fuseUnknown = true;
  JsonValue vocab = model["vocab"];
  if (!vocab.isArray())
    return invalidFile(std::string("model.vocab must be an array, it is ") + vocab.typeName());
  std::unordered_map<std::string, size_t> places;
  spec.vocabulary.reserve(vocab.size());
  for (JsonValue entry : vocab.elements()) {
    size_t place = spec.vocabulary.size();
    JsonValue text, score;
    size_t count = 0;
    for (JsonValue part : entry.elements()) {
      (count == 0 ? text : score) = part;
      ++count;
    }
    std::optional<double> value = numberOf(score);
    if (count != 2 || !text.isString() || !value)
      return invalidFile("model.vocab[" + std::to_string(place) +
                         "] must be a token and its score");
    spec.vocabulary.push_back(
        {static_cast<int32_t>(place), std::string(text.asString()), *value, true});
    // Of equal texts the last one is found.
    auto [known, fresh] = places.emplace(text.asString(), place);
    if (!fresh) {
      spec.vocabulary[known->second].searchable = false;
      known->second = place;
    }
  }
  LLMRT_ASSIGN_OR_RETURN(bool byteFallback, readBool(model, "byte_fallback", false));
  if (byteFallback)
    findByteTokens(spec);
  if (JsonValue unknown = model["unk_id"]; !unknown.isNull()) {
    LLMRT_ASSIGN_OR_RETURN(spec.modelUnknown, readId(unknown, "the unknown token (model.unk_id)"));
    if (*spec.modelUnknown >= static_cast<int64_t>(spec.vocabulary.size()))
      return invalidFile("model.unk_id is " + std::to_string(*spec.modelUnknown) +
                         ", but model.vocab has only " + std::to_string(spec.vocabulary.size()) +
                         " tokens");
  }
  return Status::ok();
}

} // namespace llmrt
