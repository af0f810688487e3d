#include "runtime/text/GgufTokenizer.h"

#include "runtime/text/GgufPreTokenizers.h"
#include "runtime/text/TokenDecoder.h"
#include "runtime/text/Utf8.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace llmrt {

static constexpr std::string_view kWordMark = "\u2581"; // SentencePiece's space

Status ggufKeyError(const std::string &key, const std::string &what) {
  // An element follows its array: scores[4].
  return invalidFile("tokenizer.ggml." + key + (what.starts_with('[') ? "" : " ") + what);
}

std::string spacesToMarks(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == ' ')
      out += kWordMark;
    else
      out += c;
  }
  return out;
}

GgufTokenType ggufTypeOf(const GgufTokenizerData &data, size_t id) {
  return data.tokenTypes.empty() ? GgufTokenType::Normal
                                 : static_cast<GgufTokenType>(data.tokenTypes[id]);
}

void addGgufFoundTokens(const GgufTokenizerData &data, bool normalized, TokenizerSpec &spec) {
  for (size_t i = 0; i < data.tokens.size(); ++i) {
    GgufTokenType type = ggufTypeOf(data, i);
    bool control = type == GgufTokenType::Control || type == GgufTokenType::Unknown;
    if ((!control && type != GgufTokenType::UserDefined) || data.tokens[i].empty())
      continue;
    AddedToken token;
    token.id = static_cast<int32_t>(i);
    token.content = spec.vocabulary[i].text;
    token.pattern = token.content;
    token.special = control;
    token.normalized = !control && normalized;
    spec.added.push_back(std::move(token));
  }
}

Status readGgufByteTokens(const GgufTokenizerData &data, TokenizerSpec &spec) {
  spec.byteTokens.assign(256, -1);
  for (size_t i = 0; i < data.tokens.size(); ++i) {
    if (ggufTypeOf(data, i) != GgufTokenType::Byte)
      continue;
    int byte = byteOfToken(data.tokens[i]);
    std::string place = "[" + std::to_string(i) + "] '" + data.tokens[i] + "' ";
    if (byte < 0)
      return ggufKeyError("tokens",
                          place + "has the type BYTE, but is not written <0x00> to <0xFF>");
    if (spec.byteTokens[byte] >= 0)
      return ggufKeyError("tokens", place + "is the second token for that byte");
    spec.byteTokens[byte] = static_cast<int32_t>(i);
  }
  return Status::ok();
}

namespace {

PipelineStep step(StepKind kind, std::string_view pattern = {}, std::string_view content = {}) {
  PipelineStep result;
  result.kind = kind;
  result.pattern = pattern;
  result.content = content;
  return result;
}

Status checkArrays(const GgufTokenizerData &data) {
  size_t count = data.tokens.size();
  if (!count)
    return ggufKeyError("tokens", "is missing or empty");
  if (count > static_cast<size_t>(kMaxTokenId))
    return ggufKeyError("tokens", "has too many elements");
  auto length = [&](const char *key, size_t found) {
    return ggufKeyError(key, "must have one element a token, " + std::to_string(count) +
                                 ", it has " + std::to_string(found));
  };
  if (!data.tokenTypes.empty() && data.tokenTypes.size() != count)
    return length("token_type", data.tokenTypes.size());
  if (!data.scores.empty() && data.scores.size() != count)
    return length("scores", data.scores.size());
  for (size_t i = 0; i < data.tokenTypes.size(); ++i)
    if (data.tokenTypes[i] < 0 || data.tokenTypes[i] > 6)
      return ggufKeyError("token_type", "[" + std::to_string(i) + "] is " +
                                            std::to_string(data.tokenTypes[i]) + ", no known type");
  for (size_t i = 0; i < count; ++i)
    if (firstInvalidUtf8(data.tokens[i]))
      return ggufKeyError("tokens", "[" + std::to_string(i) + "] is not UTF-8");
  for (size_t i = 0; i < data.scores.size(); ++i)
    if (!std::isfinite(data.scores[i]))
      return ggufKeyError("scores", "[" + std::to_string(i) + "] is not a finite number");
  return Status::ok();
}

Status takeId(const char *key, const std::optional<int64_t> &id, const GgufTokenizerData &data,
              std::optional<int32_t> &out) {
  if (!id)
    return Status::ok();
  if (*id < 0 || *id >= static_cast<int64_t>(data.tokens.size()))
    return ggufKeyError(key, "is " + std::to_string(*id) + ", but there are " +
                                 std::to_string(data.tokens.size()) + " tokens");
  out = static_cast<int32_t>(*id);
  return Status::ok();
}

/// A converter can't write the merges of newlines, since each is a line; the tokens for runs of
/// them are what is left. Any two adjacent runs make a longer one, the shortest first.
void addNewlineMerges(const std::unordered_map<std::string_view, int32_t> &ids,
                      TokenizerSpec &spec) {
  constexpr size_t kLongest = 64;
  std::vector<int32_t> runs(1, -1); // by length
  while (runs.size() <= kLongest) {
    auto found = ids.find(std::string(runs.size(), '\n'));
    if (found == ids.end())
      break;
    runs.push_back(found->second);
  }
  for (size_t length = 2; length < runs.size(); ++length)
    for (size_t left = 1; left < length; ++left)
      spec.merges.push_back({runs[left], runs[length - left], runs[length]});
}

/// A separator after each text, where the file or its kind asks for it.
Status addSeparator(const GgufTokenizerData &data, bool byDefault, TokenizerSpec &spec) {
  std::optional<int32_t> separator;
  LLMRT_RETURN_IF_ERROR(takeId("seperator_token_id", data.separatorId, data, separator));
  if (data.addSeparator.value_or(byDefault) && separator)
    spec.suffixIds.push_back(*separator);
  return Status::ok();
}

Status readBytePair(const GgufTokenizerData &data, TokenizerSpec &spec) {
  const std::string &name = data.model == "gemma4" ? data.model : data.pre;
  if (name.empty())
    return ggufKeyError("pre", "is missing: without the pre-tokenizer's name the text can't be "
                               "split; known: " +
                                   ggufPreTokenizerNames());
  std::optional<GgufPreTokenizer> pre = findGgufPreTokenizer(name);
  if (!pre)
    return unsupported("tokenizer.ggml.pre '" + name +
                       "' is not supported; supported: " + ggufPreTokenizerNames());
  for (size_t i = 0; i < data.tokens.size(); ++i)
    spec.vocabulary.push_back({static_cast<int32_t>(i), data.tokens[i], 0, true});
  std::unordered_map<std::string_view, int32_t> ids;
  for (const SpecToken &token : spec.vocabulary)
    ids.emplace(token.text, token.id);
  for (size_t rank = 0; rank < data.merges.size(); ++rank) {
    std::string_view merge = data.merges[rank];
    size_t space = merge.find(' ');
    if (space == std::string_view::npos || merge.find(' ', space + 1) != std::string_view::npos)
      return ggufKeyError("merges", "[" + std::to_string(rank) +
                                        "] must be two tokens with one space between, it is '" +
                                        std::string(merge) + "'");
    std::string joined = std::string(merge.substr(0, space)) + std::string(merge.substr(space + 1));
    int32_t found[3];
    size_t index = 0;
    for (std::string_view text :
         {merge.substr(0, space), merge.substr(space + 1), std::string_view(joined)}) {
      auto id = ids.find(text);
      if (id == ids.end())
        return ggufKeyError("merges", "[" + std::to_string(rank) + "] needs the token '" +
                                          std::string(text) + "', which is not there");
      found[index++] = id->second;
    }
    spec.merges.push_back({found[0], found[1], found[2]});
  }
  if (data.merges.empty() && name == "kimi-k2") {
    // tiktoken's way: a pair's rank is the id of the token that it makes.
    spec.kind = ModelKind::ScoredBpe;
    spec.ignoreMerges = true;
    for (SpecToken &token : spec.vocabulary)
      token.score = -static_cast<double>(token.id);
  }
  addGgufFoundTokens(data, false, spec);
  spec.ignoreMerges |= pre->ignoreMerges;
  spec.modelUnknown = spec.unknown;
  if (pre->nfc)
    spec.normalizers.push_back(step(StepKind::Nfc));
  if (pre->marks) {
    spec.normalizers.push_back(step(StepKind::Replace, " ", kWordMark));
    LLMRT_RETURN_IF_ERROR(readGgufByteTokens(data, spec));
    spec.fuseUnknown = true;
    addNewlineMerges(ids, spec);
  }
  if (data.addSpacePrefix.value_or(false))
    spec.preTokenizers.push_back(step(StepKind::PrefixSpace));
  for (PipelineStep &s : pre->steps)
    spec.preTokenizers.push_back(std::move(s));
  if (pre->marks)
    spec.decoders = {step(StepKind::Replace, kWordMark, " "), step(StepKind::ByteFallback),
                     step(StepKind::Fuse)};
  else if (pre->characters)
    spec.decoders = {step(StepKind::Fuse)};
  else
    spec.decoders = {step(StepKind::ByteLevel)};
  if (data.addBos.value_or(pre->addBos) && spec.bos)
    spec.prefixIds.push_back(*spec.bos);
  return addSeparator(data, pre->addSeparator, spec);
}

Status readSentencePiece(const GgufTokenizerData &data, TokenizerSpec &spec) {
  if (data.scores.empty())
    return ggufKeyError("scores", "is missing; a model 'llama' merges by it");
  if (data.tokenTypes.empty())
    return ggufKeyError("token_type", "is missing; a model 'llama' finds its byte tokens by it");
  spec.kind = ModelKind::ScoredBpe;
  spec.fuseUnknown = true;
  for (size_t i = 0; i < data.tokens.size(); ++i) {
    GgufTokenType type = ggufTypeOf(data, i);
    bool searchable = type == GgufTokenType::Normal || type == GgufTokenType::UserDefined;
    // Runs of spaces are stored as such; in a normalized text they are marks.
    std::string text = searchable ? spacesToMarks(data.tokens[i]) : data.tokens[i];
    if (text.empty())
      searchable = false;
    spec.vocabulary.push_back(
        {static_cast<int32_t>(i), std::move(text), data.scores[i], searchable});
  }
  LLMRT_RETURN_IF_ERROR(readGgufByteTokens(data, spec));
  addGgufFoundTokens(data, true, spec);
  if (!spec.unknown)
    for (size_t i = 0; i < data.tokens.size() && !spec.unknown; ++i)
      if (ggufTypeOf(data, i) == GgufTokenType::Unknown)
        spec.unknown = static_cast<int32_t>(i);
  spec.modelUnknown = spec.unknown;

  bool prefix = data.addSpacePrefix.value_or(true);
  if (prefix)
    spec.normalizers.push_back(step(StepKind::Prepend, {}, kWordMark));
  spec.normalizers.push_back(step(StepKind::Replace, " ", kWordMark));
  spec.decoders = {step(StepKind::Replace, kWordMark, " "), step(StepKind::ByteFallback),
                   step(StepKind::Fuse)};
  if (prefix) {
    PipelineStep strip = step(StepKind::StripChars, {}, " ");
    strip.start = 1;
    spec.decoders.push_back(std::move(strip));
  }
  if (data.addBos.value_or(true) && spec.bos)
    spec.prefixIds.push_back(*spec.bos);
  return Status::ok();
}

} // namespace

Result<TokenizerSpec> specFromGguf(const GgufTokenizerData &data) {
  LLMRT_RETURN_IF_ERROR(checkArrays(data));
  TokenizerSpec spec;
  LLMRT_RETURN_IF_ERROR(takeId("bos_token_id", data.bosId, data, spec.bos));
  LLMRT_RETURN_IF_ERROR(takeId("eos_token_id", data.eosId, data, spec.eos));
  LLMRT_RETURN_IF_ERROR(takeId("unknown_token_id", data.unknownId, data, spec.unknown));
  LLMRT_RETURN_IF_ERROR(takeId("padding_token_id", data.padId, data, spec.pad));
  if (data.model == "gpt2" || data.model == "gemma4" || data.model == "whitespace")
    LLMRT_RETURN_IF_ERROR(readBytePair(data, spec));
  else if (data.model == "llama")
    LLMRT_RETURN_IF_ERROR(readSentencePiece(data, spec));
  else if (data.model == "t5")
    LLMRT_RETURN_IF_ERROR(readGgufUnigram(data, spec));
  else if (data.model == "bert")
    LLMRT_RETURN_IF_ERROR(readGgufWordPiece(data, spec));
  else
    return unsupported("tokenizer.ggml.model '" + data.model +
                       "' is not supported; supported: gpt2, llama, t5, bert, gemma4, whitespace");
  if (data.model == "t5" || data.model == "bert")
    LLMRT_RETURN_IF_ERROR(addSeparator(data, data.model == "bert", spec));
  if (data.addEos.value_or(data.model == "t5") && spec.eos)
    spec.suffixIds.push_back(*spec.eos);
  return spec;
}

} // namespace llmrt
