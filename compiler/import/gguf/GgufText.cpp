#include "compiler/import/gguf/GgufText.h"

#include "runtime/text/Tokenizer.h"

#include <algorithm>

using namespace llmrt;

namespace llmc {
namespace {

Result<std::optional<int64_t>> tokenId(const GgufFile &file, const char *key, size_t tokens) {
  LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> id, file.unsignedInteger(key));
  // Some writers store 0xffffffff for "none".
  if (!id || *id == UINT32_MAX)
    return std::optional<int64_t>();
  if (*id >= tokens)
    return invalidFile(file.files().front().path() + ": '" + key + "' is " + std::to_string(*id) +
                       "; the vocabulary has " + std::to_string(tokens) + " tokens");
  return std::optional(static_cast<int64_t>(*id));
}

/// Names of tokens that end a turn of a conversation, for files that say only what ends a text.
constexpr const char *turnEnds[] = {"<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<|end|>"};

Status readSampling(const GgufFile &file, ImportedText &text) {
  const auto number = [&](const char *key, double most, float &to, bool &found) -> Status {
    LLMRT_ASSIGN_OR_RETURN(const std::optional<double> value, file.number(key));
    if (value && !(*value >= 0 && *value <= most))
      return invalidFile(file.files().front().path() + ": '" + key + "' is " +
                         std::to_string(*value) + "; 0 to " + std::to_string(most) +
                         " is possible");
    if (value) {
      to = static_cast<float>(*value);
      found = true;
    }
    return Status::ok();
  };
  bool found = false, ignored = false;
  LLMRT_RETURN_IF_ERROR(number("general.sampling.temp", 1000, text.temperature, found));
  LLMRT_RETURN_IF_ERROR(number("general.sampling.top_p", 1, text.topP, found));
  LLMRT_RETURN_IF_ERROR(number("general.sampling.min_p", 1, text.minP, found));
  LLMRT_RETURN_IF_ERROR(
      number("general.sampling.penalty_repeat", 1000, text.repetitionPenalty, ignored));
  LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> topK,
                         file.unsignedInteger("general.sampling.top_k"));
  text.topK = static_cast<int32_t>(std::min<uint64_t>(topK.value_or(0), INT32_MAX));
  text.doSample = (found || topK) && text.temperature > 0;
  return Status::ok();
}

} // namespace

Result<std::optional<GgufTokenizerData>> readGgufTokenizer(const GgufFile &file) {
  LLMRT_ASSIGN_OR_RETURN(std::optional<std::string> model, file.string("tokenizer.ggml.model"));
  if (!model || *model == "none" || *model == "no_vocab")
    return std::optional<GgufTokenizerData>();
  GgufTokenizerData data;
  data.model = std::move(*model);
  const std::string &path = file.files().front().path();
  LLMRT_ASSIGN_OR_RETURN(std::optional<std::string> pre, file.string("tokenizer.ggml.pre"));
  data.pre = std::move(pre).value_or("");
  LLMRT_ASSIGN_OR_RETURN(auto tokens, file.strings("tokenizer.ggml.tokens"));
  if (!tokens || tokens->empty())
    return invalidFile(path + ": has a tokenizer, but no 'tokenizer.ggml.tokens'");
  data.tokens = std::move(*tokens);
  LLMRT_ASSIGN_OR_RETURN(auto scores, file.floats("tokenizer.ggml.scores"));
  data.scores = std::move(scores).value_or(std::vector<float>());
  LLMRT_ASSIGN_OR_RETURN(auto types, file.integers("tokenizer.ggml.token_type"));
  data.tokenTypes = std::move(types).value_or(std::vector<int32_t>());
  LLMRT_ASSIGN_OR_RETURN(auto merges, file.strings("tokenizer.ggml.merges"));
  data.merges = std::move(merges).value_or(std::vector<std::string>());
  const size_t count = data.tokens.size();
  for (const auto &[key, length] : {std::pair("tokenizer.ggml.scores", data.scores.size()),
                                    std::pair("tokenizer.ggml.token_type", data.tokenTypes.size())})
    if (length != 0 && length != count)
      return invalidFile(path + ": '" + key + "' has " + std::to_string(length) +
                         " elements; one for each of the " + std::to_string(count) +
                         " tokens is needed");
  LLMRT_ASSIGN_OR_RETURN(data.bosId, tokenId(file, "tokenizer.ggml.bos_token_id", count));
  LLMRT_ASSIGN_OR_RETURN(data.eosId, tokenId(file, "tokenizer.ggml.eos_token_id", count));
  LLMRT_ASSIGN_OR_RETURN(data.unknownId, tokenId(file, "tokenizer.ggml.unknown_token_id", count));
  LLMRT_ASSIGN_OR_RETURN(data.padId, tokenId(file, "tokenizer.ggml.padding_token_id", count));
  LLMRT_ASSIGN_OR_RETURN(data.addBos, file.boolean("tokenizer.ggml.add_bos_token"));
  LLMRT_ASSIGN_OR_RETURN(data.addEos, file.boolean("tokenizer.ggml.add_eos_token"));
  LLMRT_ASSIGN_OR_RETURN(data.addSpacePrefix, file.boolean("tokenizer.ggml.add_space_prefix"));
  LLMRT_ASSIGN_OR_RETURN(data.addSeparator, file.boolean("tokenizer.ggml.add_sep_token"));
  LLMRT_ASSIGN_OR_RETURN(data.removeExtraSpaces,
                         file.boolean("tokenizer.ggml.remove_extra_whitespaces"));
  LLMRT_ASSIGN_OR_RETURN(data.separatorId,
                         tokenId(file, "tokenizer.ggml.seperator_token_id", count));
  LLMRT_ASSIGN_OR_RETURN(auto charsMap, file.byteArray("tokenizer.ggml.precompiled_charsmap"));
  data.charsMap = std::move(charsMap).value_or("");
  return std::optional(std::move(data));
}

Result<ImportedText> readGgufText(const GgufFile &file, uint64_t vocabulary) {
  ImportedText text;
  const std::string &path = file.files().front().path();
  LLMRT_RETURN_IF_ERROR(readSampling(file, text));
  LLMRT_ASSIGN_OR_RETURN(std::optional<std::string> chat, file.string("tokenizer.chat_template"));
  text.chatTemplate = std::move(chat).value_or("");
  LLMRT_ASSIGN_OR_RETURN(const std::optional<GgufTokenizerData> data, readGgufTokenizer(file));
  if (!data)
    return text;
  Result<std::shared_ptr<Tokenizer>> tokenizer = Tokenizer::fromGguf(*data);
  if (!tokenizer.isOk())
    return tokenizer.status().withContext(path);
  LLMRT_RETURN_IF_ERROR(
      (*tokenizer)->checkVocabulary(static_cast<int64_t>(vocabulary)).withContext(path));
  LLMRT_ASSIGN_OR_RETURN(text.tokenizerBlob, (*tokenizer)->serialize());
  if (data->bosId)
    text.bosToken = data->tokens[*data->bosId];
  if (data->eosId) {
    text.eosToken = data->tokens[*data->eosId];
    text.stopIds.push_back(static_cast<int32_t>(*data->eosId));
  }
  LLMRT_ASSIGN_OR_RETURN(const std::optional<int64_t> turnEnd,
                         tokenId(file, "tokenizer.ggml.eot_token_id", data->tokens.size()));
  if (turnEnd) {
    text.stopIds.push_back(static_cast<int32_t>(*turnEnd));
  } else {
    for (const char *name : turnEnds)
      if (const std::optional<int32_t> id = (*tokenizer)->idOf(name);
          id && (*tokenizer)->isSpecial(*id))
        text.stopIds.push_back(*id);
  }
  std::ranges::sort(text.stopIds);
  text.stopIds.erase(std::ranges::unique(text.stopIds).begin(), text.stopIds.end());
  return text;
}

} // namespace llmc
