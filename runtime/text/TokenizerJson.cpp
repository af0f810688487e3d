#include "runtime/text/TokenizerJson.h"

#include <unordered_map>

namespace llmrt {

Result<std::string> readString(JsonValue object, std::string_view key,
                               std::optional<std::string_view> fallback) {
  JsonValue value = object[key];
  if (value.isNull() && fallback)
    return std::string(*fallback);
  if (!value.isString())
    return invalidFile("'" + std::string(key) + "' must be a string, it is " + value.typeName());
  return std::string(value.asString());
}

Result<bool> readBool(JsonValue object, std::string_view key, bool fallback) {
  JsonValue value = object[key];
  if (value.isNull())
    return fallback;
  if (!value.isBool())
    return invalidFile("'" + std::string(key) + "' must be true or false, it is " +
                       value.typeName());
  return value.asBool();
}

Result<int32_t> readId(JsonValue value, const std::string &what) {
  std::optional<int64_t> id = value.asInteger();
  if (!id || *id < 0 || *id > kMaxTokenId) {
    bool number = value && value.type() == JsonType::Number;
    return invalidFile("the id of " + what + " must be an integer from 0 to " +
                       std::to_string(kMaxTokenId) + ", it is " +
                       (number ? std::string(value.asString()) : value.typeName()));
  }
  return static_cast<int32_t>(*id);
}

std::optional<int32_t> findId(const TokenizerSpec &spec, std::string_view text) {
  for (const AddedToken &token : spec.added)
    if (token.content == text)
      return token.id;
  for (const SpecToken &token : spec.vocabulary)
    if (token.text == text)
      return token.id;
  return std::nullopt;
}

/// A merge as ["a", "b"], or as "a b" in older files.
static Result<std::pair<std::string_view, std::string_view>> readMerge(JsonValue merge,
                                                                       size_t rank) {
  auto bad = [&](const std::string &why) {
    return invalidFile("model.merges[" + std::to_string(rank) + "] " + why);
  };
  if (merge.isString()) {
    std::string_view text = merge.asString();
    size_t space = text.find(' ');
    if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos)
      return bad("must be two tokens with one space between, it is '" + std::string(text) + "'");
    return std::pair(text.substr(0, space), text.substr(space + 1));
  }
  std::string_view parts[2];
  size_t count = 0;
  for (JsonValue part : merge.elements()) {
    if (!part.isString())
      return bad(std::string("must hold two strings, it holds ") + part.typeName());
    if (count < 2)
      parts[count] = part.asString();
    ++count;
  }
  if (count != 2)
    return bad(std::string("must be a pair of tokens, it is ") + merge.typeName() + " of " +
               std::to_string(count));
  return std::pair(parts[0], parts[1]);
}

static Status readMerges(JsonValue merges, const std::unordered_map<std::string_view, int32_t> &ids,
                         TokenizerSpec &spec) {
  if (!merges.isArray())
    return invalidFile(std::string("model.merges must be an array, it is ") + merges.typeName());
  std::string joined;
  for (JsonValue merge : merges.elements()) {
    size_t rank = spec.merges.size();
    LLMRT_ASSIGN_OR_RETURN(auto pair, readMerge(merge, rank));
    auto [left, right] = pair;
    joined = left;
    // A token inside a word is spelled with the prefix, which the merged one has only once.
    joined += right.substr(std::min(right.size(), spec.continuingPrefix.size()));
    auto leftId = ids.find(left), rightId = ids.find(right), result = ids.find(joined);
    for (auto [found, text] : {std::pair(leftId, left), std::pair(rightId, right),
                               std::pair(result, std::string_view(joined))})
      if (found == ids.end())
        return invalidFile("model.merges[" + std::to_string(rank) + "] (" + std::string(left) +
                           ", " + std::string(right) + "): '" + std::string(text) +
                           "' is not in the vocabulary");
    spec.merges.push_back({leftId->second, rightId->second, result->second});
  }
  return Status::ok();
}

Status readModel(JsonValue model, TokenizerSpec &spec) {
  if (!model.isObject())
    return invalidFile(std::string("'model' must be an object, it is ") + model.typeName());
  LLMRT_ASSIGN_OR_RETURN(std::string type, readString(model, "type", ""));
  // Old files name no type, but each type has members of its own.
  if (type.empty())
    type = model["merges"]                     ? "BPE"
           : model["vocab"].isArray()          ? "Unigram"
           : model["max_input_chars_per_word"] ? "WordPiece"
                                               : "";
  if (type == "WordPiece")
    return readWordPiece(model, spec);
  if (type == "WordLevel")
    return readWordLevel(model, spec);
  if (type == "Unigram")
    return readUnigram(model, spec);
  if (type != "BPE")
    return unsupported("model type '" + type +
                       "' is not supported; supported: BPE, Unigram, WordPiece, WordLevel");
  if (JsonValue dropout = model["dropout"]; !dropout.isNull()) {
    if (dropout.type() != JsonType::Number)
      return invalidFile(std::string("model.dropout must be a number, it is ") +
                         dropout.typeName());
    if (dropout.asString().find_first_not_of("0.") != std::string_view::npos)
      return unsupported("model.dropout " + std::string(dropout.asString()) +
                         " makes encoding random; it must be null or 0");
  }
  LLMRT_ASSIGN_OR_RETURN(spec.fuseUnknown, readBool(model, "fuse_unk", false));
  LLMRT_ASSIGN_OR_RETURN(spec.ignoreMerges, readBool(model, "ignore_merges", false));
  LLMRT_ASSIGN_OR_RETURN(spec.continuingPrefix, readString(model, "continuing_subword_prefix", ""));
  LLMRT_ASSIGN_OR_RETURN(spec.endSuffix, readString(model, "end_of_word_suffix", ""));
  LLMRT_ASSIGN_OR_RETURN(bool byteFallback, readBool(model, "byte_fallback", false));

  LLMRT_RETURN_IF_ERROR(readVocabularyMap(model["vocab"], spec));
  if (byteFallback)
    findByteTokens(spec);
  std::unordered_map<std::string_view, int32_t> ids;
  ids.reserve(spec.vocabulary.size());
  for (const SpecToken &token : spec.vocabulary)
    ids.emplace(token.text, token.id);
  return readMerges(model["merges"], ids, spec);
}

Status readAddedTokens(JsonValue tokens, TokenizerSpec &spec) {
  if (tokens.isNull())
    return Status::ok();
  if (!tokens.isArray())
    return invalidFile(std::string("'added_tokens' must be an array, it is ") + tokens.typeName());
  for (JsonValue entry : tokens.elements()) {
    std::string place = "added_tokens[" + std::to_string(spec.added.size()) + "]";
    if (!entry.isObject())
      return invalidFile(place + " must be an object, it is " + entry.typeName());
    AddedToken token;
    LLMRT_ASSIGN_OR_RETURN(token.content, readString(entry, "content"));
    if (token.content.empty())
      return invalidFile(place + " has an empty content");
    LLMRT_ASSIGN_OR_RETURN(token.id,
                           readId(entry["id"], "the added token '" + token.content + "'"));
    LLMRT_ASSIGN_OR_RETURN(token.special, readBool(entry, "special", false));
    LLMRT_ASSIGN_OR_RETURN(token.normalized, readBool(entry, "normalized", !token.special));
    LLMRT_ASSIGN_OR_RETURN(token.singleWord, readBool(entry, "single_word", false));
    LLMRT_ASSIGN_OR_RETURN(token.lstrip, readBool(entry, "lstrip", false));
    LLMRT_ASSIGN_OR_RETURN(token.rstrip, readBool(entry, "rstrip", false));
    spec.added.push_back(std::move(token));
  }
  return Status::ok();
}

static Status readAll(JsonValue root, TokenizerSpec &spec) {
  if (!root.isObject())
    return invalidFile(std::string("the file must hold an object, it holds ") + root.typeName());
  LLMRT_RETURN_IF_ERROR(readModel(root["model"], spec));
  LLMRT_RETURN_IF_ERROR(readAddedTokens(root["added_tokens"], spec));
  LLMRT_ASSIGN_OR_RETURN(std::string unknown, readString(root["model"], "unk_token", ""));
  if (!unknown.empty()) {
    spec.modelUnknown = findId(spec, unknown);
    if (!spec.modelUnknown)
      return invalidFile("model.unk_token '" + unknown + "' is not in the vocabulary");
  }
  LLMRT_RETURN_IF_ERROR(readPipeline(root, spec));
  return readPostProcessor(root["post_processor"], spec);
}

Result<TokenizerSpec> specFromTokenizerJson(std::string_view json,
                                            std::string_view tokenizerConfigJson,
                                            std::string_view specialTokensMapJson) {
  Result<JsonDocument> doc = JsonDocument::parse(json);
  if (!doc)
    return doc.status().withContext("tokenizer.json");
  TokenizerSpec spec;
  if (Status status = readAll(doc->root(), spec); !status)
    return status.withContext("tokenizer.json");
  LLMRT_RETURN_IF_ERROR(readCompanions(tokenizerConfigJson, specialTokensMapJson, spec));
  return spec;
}

} // namespace llmrt
