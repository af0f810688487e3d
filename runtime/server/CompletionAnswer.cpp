#include "runtime/server/CompletionAnswer.h"

#include "runtime/server/Served.h"

#include <algorithm>

namespace llmrt::server {
namespace {

Json emptyLists() {
  return {{"tokens", Json::array()},
          {"token_logprobs", Json::array()},
          {"top_logprobs", Json::array()},
          {"text_offset", Json::array()}};
}

int64_t characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; });
}

} // namespace

Json usageJson(const Usage &usage) {
  return {{"prompt_tokens", usage.promptTokens},
          {"completion_tokens", usage.completionTokens},
          {"total_tokens", usage.promptTokens + usage.completionTokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cachedTokens}}}};
}

CompletionAnswer::CompletionAnswer(AnswerHead head, std::shared_ptr<const Tokenizer> tokenizer,
                                   size_t prompts, size_t choicesPerPrompt,
                                   std::vector<std::string> echo)
    : head_(std::move(head)), tokenizer_(std::move(tokenizer)),
      choices_(prompts * choicesPerPrompt), echo_(std::move(echo)) {
  for (size_t i = 0; i < choices_.size(); ++i) {
    if (!echo_.empty()) {
      choices_[i].text = echo_[i / choicesPerPrompt];
      choices_[i].offset = characters(choices_[i].text);
    }
    if (head_.logprobs >= 0)
      choices_[i].logprobs = emptyLists();
  }
}

Json CompletionAnswer::chunk() const {
  return {{"id", head_.id},
          {"object", "text_completion"},
          {"created", head_.created},
          {"model", head_.model}};
}

void CompletionAnswer::appendChunk(size_t choice, std::string_view text, Json logprobs,
                                   const Usage *usage, std::string &events) const {
  Json json = chunk();
  json["choices"] = Json::array({{{"index", choice},
                                  {"text", text},
                                  {"logprobs", std::move(logprobs)},
                                  {"finish_reason", choices_[choice].finishReason},
                                  {"stop_reason", choices_[choice].stopReason}}});
  if (usage && head_.continuousUsage)
    json["usage"] = usageJson(*usage);
  else if (head_.includeUsage)
    json["usage"] = nullptr;
  appendEvent(events, json);
}

void CompletionAnswer::begin(std::string &events) {
  for (size_t i = 0; i < choices_.size() && !echo_.empty(); ++i)
    appendChunk(i, choices_[i].text, nullptr, nullptr, events);
}

void CompletionAnswer::addLogprobs(Choice &choice, const SampledToken &token, Json &lists) const {
  TokenText text = tokenText(*tokenizer_, token.id);
  lists["tokens"].push_back(text.text);
  lists["token_logprobs"].push_back(token.logprob);
  auto top = Json::object();
  for (int32_t i = 0; i < token.topCount; ++i)
    top[tokenText(*tokenizer_, token.top[size_t(i)].id).text] = token.top[size_t(i)].logprob;
  lists["top_logprobs"].push_back(std::move(top));
  lists["text_offset"].push_back(choice.offset);
  choice.offset += characters(text.text);
}

void CompletionAnswer::token(size_t index, const SampledToken &token, std::string_view text,
                             const Usage &usage, std::string &events) {
  Choice &choice = choices_[index];
  if (!head_.stream) {
    choice.text += text;
    if (head_.logprobs >= 0)
      addLogprobs(choice, token, choice.logprobs);
    return;
  }
  Json logprobs = nullptr;
  if (head_.logprobs >= 0) {
    logprobs = emptyLists();
    addLogprobs(choice, token, logprobs);
  } else if (text.empty()) {
    return;
  }
  appendChunk(index, text, std::move(logprobs), &usage, events);
}

void CompletionAnswer::finish(size_t index, FinishReason reason, std::string_view text,
                              std::string_view stopString, std::string &events) {
  Choice &choice = choices_[index];
  choice.finishReason = finishReasonName(reason);
  if (!stopString.empty())
    choice.stopReason = stopString;
  if (head_.stream)
    appendChunk(index, text, nullptr, nullptr, events);
  else
    choice.text += text;
}

void CompletionAnswer::end(const Usage &usage, std::string &events) {
  if (head_.includeUsage) {
    Json json = chunk();
    json["choices"] = Json::array();
    json["usage"] = usageJson(usage);
    appendEvent(events, json);
  }
  events += "data: [DONE]\n\n";
}

std::string CompletionAnswer::whole(const Usage &usage) {
  Json json = chunk();
  json["choices"] = Json::array();
  for (size_t i = 0; i < choices_.size(); ++i)
    json["choices"].push_back({{"index", i},
                               {"text", choices_[i].text},
                               {"logprobs", std::move(choices_[i].logprobs)},
                               {"finish_reason", choices_[i].finishReason},
                               {"stop_reason", choices_[i].stopReason}});
  json["usage"] = usageJson(usage);
  return dump(json);
}

} // namespace llmrt::server
