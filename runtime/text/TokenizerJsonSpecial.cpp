// What goes around a text, and the special tokens that the companion files name.
#include "runtime/text/TokenizerJson.h"

#include <algorithm>

namespace llmrt {

/// The ids of a special token of a template.
static Result<std::vector<int32_t>> templateIds(JsonValue table, std::string_view name) {
  JsonValue entry = table[name];
  JsonValue list = entry["ids"];
  if (!list.isArray())
    return invalidFile("special_tokens has no '" + std::string(name) + "' with 'ids'");
  std::vector<int32_t> ids;
  for (JsonValue value : list.elements()) {
    LLMRT_ASSIGN_OR_RETURN(int32_t id, readId(value, "'" + std::string(name) + "'"));
    ids.push_back(id);
  }
  return ids;
}

/// The template for one text: special tokens around one sequence "A".
static Status readTemplate(JsonValue processor, TokenizerSpec &spec) {
  JsonValue single = processor["single"];
  if (!single.isArray())
    return invalidFile("'single' must be an array");
  std::vector<int32_t> before, after;
  size_t sequences = 0;
  for (JsonValue item : single.elements()) {
    JsonValue special = item["SpecialToken"], sequence = item["Sequence"];
    if (sequence.isObject() && sequence["id"].isString() && sequence["id"].asString() == "A") {
      ++sequences;
    } else if (special.isObject()) {
      LLMRT_ASSIGN_OR_RETURN(std::string name, readString(special, "id"));
      LLMRT_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                             templateIds(processor["special_tokens"], name));
      std::vector<int32_t> &side = sequences ? after : before;
      side.insert(side.end(), ids.begin(), ids.end());
    } else {
      return invalidFile("'single' must hold SpecialToken and the Sequence A");
    }
  }
  if (sequences != 1)
    return unsupported("'single' has the text " + std::to_string(sequences) +
                       " times; it must be there once");
  spec.prefixIds.insert(spec.prefixIds.begin(), before.begin(), before.end());
  spec.suffixIds.insert(spec.suffixIds.end(), after.begin(), after.end());
  return Status::ok();
}

/// ["</s>", 2] before and after.
static Status readPair(JsonValue processor, const char *key, std::vector<int32_t> &ids,
                       bool atFront) {
  int32_t found = -1;
  size_t index = 0;
  for (JsonValue item : processor[key].elements()) {
    if (index++ == 1) {
      LLMRT_ASSIGN_OR_RETURN(found, readId(item, std::string("'") + key + "'"));
    }
  }
  if (found < 0)
    return invalidFile(std::string("'") + key + "' must be a token and its id");
  ids.insert(atFront ? ids.begin() : ids.end(), found);
  return Status::ok();
}

Status readPostProcessor(JsonValue processor, TokenizerSpec &spec) {
  if (processor.isNull())
    return Status::ok();
  auto run = [&]() -> Status {
    if (!processor.isObject())
      return invalidFile(std::string("must be an object, it is ") + processor.typeName());
    LLMRT_ASSIGN_OR_RETURN(std::string type, readString(processor, "type"));
    if (type == "ByteLevel") // concerns offsets only
      return Status::ok();
    if (type == "TemplateProcessing")
      return readTemplate(processor, spec);
    if (type == "BertProcessing" || type == "RobertaProcessing") {
      LLMRT_RETURN_IF_ERROR(readPair(processor, "cls", spec.prefixIds, true));
      return readPair(processor, "sep", spec.suffixIds, false);
    }
    if (type != "Sequence")
      return unsupported("post_processor '" + type +
                         "' is not supported; supported: TemplateProcessing, ByteLevel, "
                         "BertProcessing, RobertaProcessing, Sequence");
    for (JsonValue member : processor["processors"].elements())
      LLMRT_RETURN_IF_ERROR(readPostProcessor(member, spec));
    return Status::ok();
  };
  Status status = run();
  bool named = status.message().starts_with("post_processor");
  return status || named ? status : status.withContext("post_processor");
}

namespace {

/// A special token as "text" or {"content": "text", ...}.
std::string_view tokenContent(JsonValue value) {
  if (value.isObject())
    value = value["content"];
  return value.isString() ? value.asString() : std::string_view();
}

/// `added_tokens_decoder`: flags of tokens that tokenizer.json may lack.
Status readAddedDecoder(JsonValue table, TokenizerSpec &spec) {
  for (auto [key, entry] : table.members()) {
    int64_t id = -1;
    auto digits = std::string(key);
    if (!digits.empty() && digits.size() <= 10 &&
        digits.find_first_not_of("0123456789") == std::string::npos)
      id = std::stoll(digits);
    if (id < 0 || id > kMaxTokenId)
      return invalidFile("added_tokens_decoder has the id '" + digits + "'");
    auto same = [&](const AddedToken &token) { return token.id == id; };
    if (std::any_of(spec.added.begin(), spec.added.end(), same))
      continue;
    AddedToken token;
    token.id = static_cast<int32_t>(id);
    LLMRT_ASSIGN_OR_RETURN(token.content, readString(entry, "content"));
    if (token.content.empty())
      return invalidFile("added_tokens_decoder[" + digits + "] has an empty content");
    LLMRT_ASSIGN_OR_RETURN(token.special, readBool(entry, "special", false));
    LLMRT_ASSIGN_OR_RETURN(token.normalized, readBool(entry, "normalized", !token.special));
    LLMRT_ASSIGN_OR_RETURN(token.singleWord, readBool(entry, "single_word", false));
    LLMRT_ASSIGN_OR_RETURN(token.lstrip, readBool(entry, "lstrip", false));
    LLMRT_ASSIGN_OR_RETURN(token.rstrip, readBool(entry, "rstrip", false));
    spec.added.push_back(std::move(token));
  }
  return Status::ok();
}

/// A name that no token has is no error: files often name a pad token that was never added.
void takeSpecial(JsonValue file, TokenizerSpec &spec) {
  for (auto [key, id] :
       {std::pair("bos_token", &spec.bos), std::pair("eos_token", &spec.eos),
        std::pair("pad_token", &spec.pad), std::pair("unk_token", &spec.unknown)}) {
    std::string_view content = tokenContent(file[key]);
    if (!content.empty())
      if (std::optional<int32_t> found = findId(spec, content))
        *id = found;
  }
}

/// add_bos_token and add_eos_token. False always counts; true counts for the classes that
/// rebuild the template from it, since other classes write these keys and ignore them.
Status applyAddFlags(JsonValue config, TokenizerSpec &spec) {
  LLMRT_ASSIGN_OR_RETURN(std::string tokenizerClass, readString(config, "tokenizer_class", ""));
  bool rebuilds = false;
  for (std::string_view known : {"Llama", "CodeLlama", "Gemma", "Cohere"})
    rebuilds |= tokenizerClass.starts_with(known);
  if (JsonValue flag = config["add_bos_token"]; flag.isBool() && spec.bos) {
    bool there = !spec.prefixIds.empty() && spec.prefixIds.front() == *spec.bos;
    if (!flag.asBool() && there)
      spec.prefixIds.erase(spec.prefixIds.begin());
    else if (flag.asBool() && !there && rebuilds)
      spec.prefixIds.insert(spec.prefixIds.begin(), *spec.bos);
  }
  if (JsonValue flag = config["add_eos_token"]; flag.isBool() && spec.eos) {
    bool there = !spec.suffixIds.empty() && spec.suffixIds.back() == *spec.eos;
    if (!flag.asBool() && there)
      spec.suffixIds.pop_back();
    else if (flag.asBool() && !there && rebuilds)
      spec.suffixIds.push_back(*spec.eos);
  }
  return Status::ok();
}

} // namespace

Status readSentencePieceCompanions(std::string_view configJson, std::string_view mapJson,
                                   TokenizerSpec &spec) {
  // Classes whose ids are the file's, and whether they put a beginning (end) around a text.
  struct Class {
    std::string_view name;
    bool bos, eos;
  };
  static constexpr Class kClasses[] = {{"", true, false},
                                       {"LlamaTokenizer", true, false},
                                       {"CodeLlamaTokenizer", true, false},
                                       {"GemmaTokenizer", true, false},
                                       {"YiTokenizer", false, false},
                                       {"BaichuanTokenizer", false, false},
                                       {"InternLMTokenizer", true, false},
                                       {"InternLM2Tokenizer", true, false},
                                       {"MiniCPMTokenizer", true, false},
                                       {"T5Tokenizer", false, true}};
  std::string name;
  if (!configJson.empty()) {
    Result<JsonDocument> doc = JsonDocument::parse(configJson);
    if (!doc || !doc->root().isObject())
      return (doc ? invalidFile("must hold an object") : doc.status())
          .withContext("tokenizer_config.json");
    LLMRT_ASSIGN_OR_RETURN(name, readString(doc->root(), "tokenizer_class", ""));
    if (name.ends_with("Fast"))
      name.resize(name.size() - 4);
  }
  const Class *found = std::find_if(std::begin(kClasses), std::end(kClasses),
                                    [&](const Class &known) { return known.name == name; });
  if (found == std::end(kClasses)) {
    std::string known;
    for (const Class &entry : kClasses)
      known += (known.empty() ? "" : ", ") + std::string(entry.name);
    return unsupported("tokenizer_config.json: tokenizer_class '" + name +
                       "' may number the tokens of a tokenizer.model in another way; known: " +
                       known + "; with a tokenizer.json the class does not matter");
  }
  // The file's names count unless the companions name tokens.
  if (found->bos && spec.bos)
    spec.prefixIds = {*spec.bos};
  if (found->eos && spec.eos)
    spec.suffixIds = {*spec.eos};
  return readCompanions(configJson, mapJson, spec);
}

Status readCompanions(std::string_view configJson, std::string_view mapJson, TokenizerSpec &spec) {
  // The map first: where both name a token, tokenizer_config.json counts.
  for (auto [name, text] : {std::pair("special_tokens_map.json", mapJson),
                            std::pair("tokenizer_config.json", configJson)}) {
    if (text.empty())
      continue;
    Result<JsonDocument> doc = JsonDocument::parse(text);
    if (!doc)
      return doc.status().withContext(name);
    JsonValue root = doc->root();
    if (!root.isObject())
      return invalidFile(std::string(name) + " must hold an object, it holds " + root.typeName());
    auto read = [&]() -> Status {
      LLMRT_RETURN_IF_ERROR(readAddedDecoder(root["added_tokens_decoder"], spec));
      takeSpecial(root, spec);
      if (text.data() != configJson.data())
        return Status::ok();
      LLMRT_ASSIGN_OR_RETURN(spec.cleanUpSpaces,
                             readBool(root, "clean_up_tokenization_spaces", false));
      return applyAddFlags(root, spec);
    };
    if (Status status = read(); !status)
      return status.withContext(name);
  }
  return Status::ok();
}

} // namespace llmrt
