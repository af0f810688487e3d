// The models of tokenizer.json other than BPE.
#include "runtime/text/TokenizerJson.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
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

/// A number as the `tokenizers` library reads it: digits as far as they fit 64 bits, then one
/// multiplication or division by a power of ten. That may be off by one place, and decides ties.
static std::optional<double> numberOf(JsonValue value) {
  if (!value || value.type() != JsonType::Number)
    return std::nullopt;
  std::string_view text = value.asString();
  const bool negative = text.starts_with('-');
  uint64_t digits = 0;
  int64_t exponent = 0;
  size_t at = negative;
  bool fraction = false, full = false;
  for (; at < text.size() && text[at] != 'e' && text[at] != 'E'; ++at) {
    if (text[at] == '.') {
      fraction = true;
      continue;
    }
    const auto digit = static_cast<uint64_t>(text[at] - '0');
    full = full || digits > (UINT64_MAX - digit) / 10;
    if (!full)
      digits = digits * 10 + digit;
    exponent += (full ? 1 : 0) - (fraction ? 1 : 0);
  }
  if (at < text.size()) {
    std::string_view rest = text.substr(at + 1);
    rest.remove_prefix(rest.starts_with('+') ? 1 : 0);
    int32_t shift = 0;
    if (std::from_chars(rest.data(), rest.data() + rest.size(), shift).ec != std::errc())
      return std::nullopt;
    exponent += shift;
  }
  auto number = static_cast<double>(digits);
  if (number != 0) {
    if (exponent > 308)
      return std::nullopt;
    for (; exponent < -308; exponent += 308)
      if ((number /= 1e308) == 0)
        exponent = 0;
    // Powers of ten as written in a source, correctly rounded.
    std::string power = "1e" + std::to_string(std::abs(exponent));
    double factor = 1;
    std::from_chars(power.data(), power.data() + power.size(), factor);
    number = exponent < 0 ? number / factor : number * factor;
  }
  if (!std::isfinite(number))
    return std::nullopt;
  return negative ? -number : number;
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
