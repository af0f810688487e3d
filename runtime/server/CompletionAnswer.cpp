#include "runtime/server/CompletionAnswer.h"

#include "runtime/server/Served.h"

#include <algorithm>
#include <numeric>

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
                                   CompletionLayout layout)
    : head_(std::move(head)), tokenizer_(std::move(tokenizer)),
      choices_(layout.prompts * layout.choices), layout_(std::move(layout)),
      promptTokens_(layout_.prompts) {
  if (head_.logprobs >= 0)
    for (Choice &choice : choices_)
      choice.logprobs = emptyLists();
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
  // With logprobs it has to wait for those of the prompt.
  for (size_t i = 0; i < choices_.size() && head_.logprobs < 0; ++i)
    echo(i, events);
}

void CompletionAnswer::promptToken(size_t choice, const SampledToken &token) {
  promptTokens_[choice / layout_.choices].push_back(token);
}

void CompletionAnswer::echo(size_t index, std::string &events) {
  Choice &choice = choices_[index];
  if (layout_.echo.empty() || choice.echoed)
    return;
  choice.echoed = true;
  size_t prompt = index / layout_.choices;
  Json lists = head_.logprobs >= 0 ? promptLists(prompt) : Json();
  choice.offset = characters(layout_.echo[prompt]);
  if (head_.stream)
    return appendChunk(index, layout_.echo[prompt], std::move(lists), nullptr, events);
  choice.text = layout_.echo[prompt];
  choice.logprobs = std::move(lists);
}

Json CompletionAnswer::promptLists(size_t prompt) const {
  Choice place;
  Json lists = emptyLists();
  SampledToken first;
  first.id = layout_.firstIds[prompt];
  addLogprobs(place, first, lists);
  lists["token_logprobs"][0] = nullptr;
  lists["top_logprobs"][0] = nullptr;
  for (const SampledToken &token : promptTokens_[prompt])
    addLogprobs(place, token, lists);
  // What the tokens spell beyond the text stands before it: a token that begins texts, a space.
  int64_t before = place.offset - characters(layout_.echo[prompt]);
  for (Json &offset : lists["text_offset"])
    offset = std::max<int64_t>(0, offset.get<int64_t>() - before);
  return lists;
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
  echo(index, events);
  Choice &choice = choices_[index];
  choice.sumLogprob += static_cast<double>(token.logprob);
  ++choice.tokens;
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
  echo(index, events);
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

std::vector<size_t> CompletionAnswer::best() const {
  auto mean = [&](size_t i) {
    return choices_[i].sumLogprob / static_cast<double>(std::max<int64_t>(1, choices_[i].tokens));
  };
  std::vector<size_t> kept;
  for (size_t prompt = 0; prompt < layout_.prompts; ++prompt) {
    std::vector<size_t> own(layout_.choices);
    std::iota(own.begin(), own.end(), prompt * layout_.choices);
    if (layout_.answers < layout_.choices)
      std::sort(own.begin(), own.end(),
                [&](size_t a, size_t b) { return mean(a) != mean(b) ? mean(a) > mean(b) : a < b; });
    kept.insert(kept.end(), own.begin(), own.begin() + static_cast<ptrdiff_t>(layout_.answers));
  }
  return kept;
}

std::string CompletionAnswer::whole(const Usage &usage) {
  Json json = chunk();
  json["choices"] = Json::array();
  for (size_t i : best())
    json["choices"].push_back({{"index", json["choices"].size()},
                               {"text", choices_[i].text},
                               {"logprobs", std::move(choices_[i].logprobs)},
                               {"finish_reason", choices_[i].finishReason},
                               {"stop_reason", choices_[i].stopReason}});
  json["usage"] = usageJson(usage);
  return dump(json);
}

} // namespace llmrt::server
