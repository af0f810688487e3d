#include "compiler/import/huggingface/FolderText.h"

#include "compiler/import/common/ConfinedPath.h"
#include "compiler/import/huggingface/JsonFile.h"
#include "runtime/text/Tiktoken.h"
#include "runtime/text/Tokenizer.h"
#include "runtime/text/Utf8.h"

#include <algorithm>
#include <filesystem>

using namespace llmrt;

namespace llmc {
namespace fs = std::filesystem;

namespace {

/// A special token in tokenizer_config.json: a string, or an object with its content.
Result<std::string> specialToken(const JsonFile &file, const char *key) {
  const JsonValue value = file.root()[key];
  if (value.isNull())
    return std::string();
  if (value.isString())
    return std::string(value.asString());
  if (value.isObject() && value["content"].isString())
    return std::string(value["content"].asString());
  return file.wrongType(key, value, "a string or an object with 'content'");
}

/// The template called `default` where there are several.
Result<std::string> templateOf(const JsonFile &config) {
  const JsonValue value = config.root()["chat_template"];
  if (value.isNull())
    return std::string();
  if (value.isString())
    return std::string(value.asString());
  if (!value.isArray())
    return config.wrongType("chat_template", value, "a string or an array");
  for (JsonValue entry : value.elements())
    if (entry.isObject() && entry["name"].isString() && entry["name"].asString() == "default" &&
        entry["template"].isString())
      return std::string(entry["template"].asString());
  return config.fail("chat_template has several templates, but none called 'default'");
}

/// Adds eos_token_id, a number or an array of numbers.
Status addStopIds(const JsonFile &file, std::vector<int32_t> &ids) {
  const JsonValue value = file.root()["eos_token_id"];
  const auto add = [&](JsonValue id) {
    const std::optional<int64_t> number =
        id && id.type() == JsonType::Number ? id.asInteger() : std::nullopt;
    if (!number || *number < 0 || *number > INT32_MAX)
      return file.wrongType("eos_token_id", id, "a token id or an array of them");
    ids.push_back(static_cast<int32_t>(*number));
    return Status::ok();
  };
  if (value.isNull())
    return Status::ok();
  if (!value.isArray())
    return add(value);
  for (JsonValue id : value.elements())
    LLMRT_RETURN_IF_ERROR(add(id));
  return Status::ok();
}

Status readGeneration(const JsonFile &file, ImportedText &text) {
  const JsonValue root = file.root();
  const auto number = [&](const char *key, double least, double most, float &to) -> Status {
    LLMRT_ASSIGN_OR_RETURN(const std::optional<double> value, file.number(root, key));
    if (value && !(*value >= least && *value <= most))
      return file.fail("'" + std::string(key) + "' is " + std::to_string(*value) + "; " +
                       std::to_string(least) + " to " + std::to_string(most) + " is possible");
    if (value)
      to = static_cast<float>(*value);
    return Status::ok();
  };
  LLMRT_RETURN_IF_ERROR(number("temperature", 0, 1000, text.temperature));
  LLMRT_RETURN_IF_ERROR(number("top_p", 0, 1, text.topP));
  LLMRT_RETURN_IF_ERROR(number("min_p", 0, 1, text.minP));
  LLMRT_RETURN_IF_ERROR(number("repetition_penalty", 0, 1000, text.repetitionPenalty));
  LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> topK, file.unsignedInteger(root, "top_k"));
  text.topK = static_cast<int32_t>(std::min<uint64_t>(topK.value_or(0), INT32_MAX));
  LLMRT_ASSIGN_OR_RETURN(const std::optional<bool> sample, file.boolean(root, "do_sample"));
  text.doSample = sample.value_or(false);
  return Status::ok();
}

/// Up to eight of \p names, and how many more there are.
std::string join(const std::vector<std::string> &names) {
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(names.size(), 8); ++i)
    text += (i ? ", '" : "'") + names[i] + "'";
  return names.size() > 8 ? text + " and " + std::to_string(names.size() - 8) + " more" : text;
}

class FolderReader {
public:
  /// \p only names the tokenizer's file, unless it is empty.
  FolderReader(std::string folder, uint64_t rows, std::string only = {})
      : folder_(std::move(folder)), only_(std::move(only)),
        rows_{rows ? static_cast<int64_t>(rows) : kMaxTokenId + 1, {}} {}

  Result<ImportedText> read() {
    LLMRT_ASSIGN_OR_RETURN(config_, JsonFile::open(folder_, "tokenizer_config.json"));
    LLMRT_RETURN_IF_ERROR(readTokenizer());
    LLMRT_RETURN_IF_ERROR(readTemplate());
    LLMRT_ASSIGN_OR_RETURN(const auto generation,
                           JsonFile::open(folder_, "generation_config.json"));
    if (generation) {
      LLMRT_RETURN_IF_ERROR(readGeneration(*generation, text_));
      LLMRT_RETURN_IF_ERROR(addStopIds(*generation, text_.stopIds));
    }
    if (text_.stopIds.empty()) {
      LLMRT_ASSIGN_OR_RETURN(const auto model, JsonFile::open(folder_, "config.json"));
      if (model)
        LLMRT_RETURN_IF_ERROR(addStopIds(*model, text_.stopIds));
    }
    if (eosId_)
      text_.stopIds.push_back(*eosId_);
    std::ranges::sort(text_.stopIds);
    text_.stopIds.erase(std::ranges::unique(text_.stopIds).begin(), text_.stopIds.end());
    return std::move(text_);
  }

private:
  Status readTokenizer() {
    LLMRT_ASSIGN_OR_RETURN(const auto special, JsonFile::open(folder_, "special_tokens_map.json"));
    const std::string_view config = config_ ? config_->text() : std::string_view();
    const std::string_view map = special ? special->text() : std::string_view();
    Result<std::shared_ptr<Tokenizer>> tokenizer = std::shared_ptr<Tokenizer>();
    if (!only_.empty() && only_ != "tokenizer.json") {
      LLMRT_ASSIGN_OR_RETURN(tokenizer, readBinary(only_, config, map));
    } else {
      LLMRT_ASSIGN_OR_RETURN(const auto json, JsonFile::open(folder_, "tokenizer.json"));
      if (json)
        tokenizer = Tokenizer::fromTokenizerJson(json->text(), config, map, &rows_);
      else if (const std::string name = otherTokenizer(); !name.empty())
        tokenizer = readBinary(name, config, map);
      else
        return Status::ok();
    }
    if (!tokenizer.isOk())
      return tokenizer.status().withContext(folder_);
    LLMRT_RETURN_IF_ERROR((*tokenizer)->checkVocabulary(rows_.count).withContext(folder_));
    if (!rows_.leftOut.empty())
      text_.notes.push_back("tokens without a row among the model's " +
                            std::to_string(rows_.count) +
                            " are left out of the tokenizer: " + join(rows_.leftOut));
    LLMRT_ASSIGN_OR_RETURN(text_.tokenizerBlob, (*tokenizer)->serialize());
    eosId_ = (*tokenizer)->eosId();
    return Status::ok();
  }

  /// The file that holds the tokenizer where there is no tokenizer.json; empty: none.
  std::string otherTokenizer() const {
    std::error_code ignored;
    for (const char *name : {"tokenizer.model", "tiktoken.model", "spiece.model"})
      if (fs::exists(fs::path(folder_) / name, ignored))
        return name;
    std::vector<std::string> found;
    for (const fs::directory_entry &entry : fs::directory_iterator(folder_, ignored))
      if (entry.path().extension() == ".tiktoken")
        found.push_back(entry.path().filename().string());
    std::ranges::sort(found);
    return found.empty() ? "" : found.front();
  }

  /// A SentencePiece model or a list of tiktoken ranks.
  Result<std::shared_ptr<Tokenizer>> readBinary(const std::string &name, std::string_view config,
                                                std::string_view map) {
    LLMRT_ASSIGN_OR_RETURN(const MappedFile file, openConfined(folder_, name, folder_));
    const std::string_view bytes(reinterpret_cast<const char *>(file.bytes().data()),
                                 file.bytes().size());
    Result<std::shared_ptr<Tokenizer>> made =
        looksLikeTiktoken(bytes) ? Tokenizer::fromTiktoken(bytes, config, &rows_)
                                 : Tokenizer::fromSentencePiece(bytes, config, map, &rows_);
    return made.isOk() ? std::move(made) : made.status().withContext(name);
  }

  Status readTemplate() {
    if (config_) {
      LLMRT_ASSIGN_OR_RETURN(text_.bosToken, specialToken(*config_, "bos_token"));
      LLMRT_ASSIGN_OR_RETURN(text_.eosToken, specialToken(*config_, "eos_token"));
    }
    std::error_code ignored;
    if (fs::exists(fs::path(folder_) / "chat_template.jinja", ignored)) {
      LLMRT_ASSIGN_OR_RETURN(const MappedFile file,
                             openConfined(folder_, "chat_template.jinja", folder_));
      text_.chatTemplate.assign(file.bytes().begin(), file.bytes().end());
      if (firstInvalidUtf8(text_.chatTemplate))
        return invalidFile(file.path() + ": is not UTF-8");
      return Status::ok();
    }
    if (config_) {
      LLMRT_ASSIGN_OR_RETURN(text_.chatTemplate, templateOf(*config_));
    }
    return Status::ok();
  }

  std::string folder_, only_;
  Tokenizer::Rows rows_;
  std::unique_ptr<JsonFile> config_; ///< tokenizer_config.json
  std::optional<int32_t> eosId_;
  ImportedText text_;
};

} // namespace

Result<ImportedText> readFolderText(const std::string &path, uint64_t rows) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    return FolderReader(path, rows).read();
  const fs::path file(path);
  if (file.filename() != "tokenizer.json" && file.extension() != ".model" &&
      file.extension() != ".tiktoken")
    return invalidArgument(path + ": neither a folder nor a file called tokenizer.json, *.model "
                                  "(SentencePiece) or *.tiktoken");
  const std::string folder = file.parent_path().string();
  return FolderReader(folder.empty() ? "." : folder, rows, file.filename().string()).read();
}

} // namespace llmc
