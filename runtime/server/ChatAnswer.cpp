#include "runtime/server/ChatAnswer.h"

#include "runtime/server/Served.h"

#include <random>

namespace llmrt::server {

std::string newToolCallId() {
  // Nine letters and digits: Mistral's templates take no other form.
  static constexpr char letters[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  thread_local std::mt19937_64 generator{std::random_device{}()};
  std::string id(9, ' ');
  for (char &c : id)
    c = letters[generator() % (sizeof letters - 1)];
  return id;
}

ChatAnswer::ChatAnswer(AnswerHead head, std::shared_ptr<const Tokenizer> tokenizer, size_t choices,
                       const MessageForm &form, bool namedTool)
    : head_(std::move(head)), tokenizer_(std::move(tokenizer)), namedTool_(namedTool),
      choices_(choices, Choice(form)) {
  if (head_.logprobs >= 0)
    for (Choice &choice : choices_)
      choice.logprobs = Json::array();
}

Json ChatAnswer::chunk() const {
  return {{"id", head_.id},
          {"object", head_.stream ? "chat.completion.chunk" : "chat.completion"},
          {"created", head_.created},
          {"model", head_.model}};
}

void ChatAnswer::appendDelta(size_t choice, Json delta, Json logprobs, const Usage *usage,
                             std::string &events) const {
  Json json = chunk();
  Json entry = {{"index", choice},
                {"delta", std::move(delta)},
                {"logprobs", std::move(logprobs)},
                {"finish_reason", choices_[choice].finishReason}};
  if (!choices_[choice].stopReason.is_null())
    entry["stop_reason"] = choices_[choice].stopReason;
  json["choices"] = Json::array();
  json["choices"].push_back(std::move(entry));
  if (usage && head_.continuousUsage)
    json["usage"] = usageJson(*usage);
  else if (head_.includeUsage)
    json["usage"] = nullptr;
  appendEvent(events, json);
}

void ChatAnswer::begin(std::string &events) {
  for (size_t i = 0; i < choices_.size(); ++i)
    appendDelta(i, {{"role", "assistant"}, {"content", ""}}, nullptr, nullptr, events);
}

Json ChatAnswer::logprobEntry(const SampledToken &token) const {
  auto entry = [&](int32_t id, float logprob) {
    TokenText text = tokenText(*tokenizer_, id);
    auto bytes = Json::array();
    for (unsigned char byte : text.bytes)
      bytes.push_back(byte);
    return Json{{"token", text.text}, {"logprob", logprob}, {"bytes", std::move(bytes)}};
  };
  Json json = entry(token.id, token.logprob);
  json["top_logprobs"] = Json::array();
  for (int32_t i = 0; i < token.topCount; ++i)
    json["top_logprobs"].push_back(entry(token.top[size_t(i)].id, token.top[size_t(i)].logprob));
  return json;
}

Json ChatAnswer::take(Choice &choice, MessagePiece &piece) const {
  switch (piece.kind) {
  case MessagePiece::Kind::Content:
    choice.content += piece.text;
    return {{"content", std::move(piece.text)}};
  case MessagePiece::Kind::Reasoning:
    choice.reasoning += piece.text;
    return {{"reasoning_content", std::move(piece.text)}};
  case MessagePiece::Kind::ToolName: {
    choice.calls.push_back({newToolCallId(), piece.text, ""});
    Json call = {{"index", choice.calls.size() - 1},
                 {"id", choice.calls.back().id},
                 {"type", "function"},
                 {"function", {{"name", std::move(piece.text)}, {"arguments", ""}}}};
    return {{"tool_calls", Json::array({std::move(call)})}};
  }
  case MessagePiece::Kind::ToolArguments: {
    choice.calls.back().arguments += piece.text;
    Json call = {{"index", choice.calls.size() - 1},
                 {"function", {{"arguments", std::move(piece.text)}}}};
    return {{"tool_calls", Json::array({std::move(call)})}};
  }
  }
  return nullptr;
}

void ChatAnswer::token(size_t index, const SampledToken &token, std::string_view text,
                       const Usage &usage, std::string &events) {
  Choice &choice = choices_[index];
  pieces_.clear();
  choice.parser.push(text, pieces_);
  Json logprobs = nullptr;
  if (head_.logprobs >= 0) {
    Json entry = logprobEntry(token);
    if (head_.stream)
      logprobs = {{"content", Json::array({std::move(entry)})}};
    else
      choice.logprobs.push_back(std::move(entry));
  }
  for (MessagePiece &piece : pieces_) {
    Json delta = take(choice, piece);
    if (head_.stream)
      appendDelta(index, std::move(delta), std::exchange(logprobs, nullptr), &usage, events);
  }
  // A token whose text is held back still has its log-probability.
  if (!logprobs.is_null())
    appendDelta(index, {{"content", ""}}, std::move(logprobs), &usage, events);
}

void ChatAnswer::finish(size_t index, FinishReason reason, std::string_view text,
                        std::string_view stopString, std::string &events) {
  Choice &choice = choices_[index];
  pieces_.clear();
  choice.parser.push(text, pieces_);
  choice.parser.finish(pieces_);
  for (MessagePiece &piece : pieces_) {
    Json delta = take(choice, piece);
    if (head_.stream)
      appendDelta(index, std::move(delta), nullptr, nullptr, events);
  }
  choice.finishReason = finishReasonName(reason);
  // Never for a call that was cut off: a client would run half of it.
  bool called = choice.parser.calls() > 0 && choice.parser.calls() == choice.parser.completeCalls();
  if (reason == FinishReason::Stop && called && !namedTool_)
    choice.finishReason = "tool_calls";
  if (!stopString.empty())
    choice.stopReason = stopString;
  if (head_.stream)
    appendDelta(index, Json::object(), nullptr, nullptr, events);
}

void ChatAnswer::end(const Usage &usage, std::string &events) {
  if (head_.includeUsage) {
    Json json = chunk();
    json["choices"] = Json::array();
    json["usage"] = usageJson(usage);
    appendEvent(events, json);
  }
  events += "data: [DONE]\n\n";
}

std::string ChatAnswer::whole(const Usage &usage) {
  Json json = chunk();
  json["choices"] = Json::array();
  for (size_t i = 0; i < choices_.size(); ++i) {
    Choice &choice = choices_[i];
    Json message = {{"role", "assistant"}, {"content", choice.content}, {"refusal", nullptr}};
    if (!choice.reasoning.empty())
      message["reasoning_content"] = choice.reasoning;
    if (!choice.calls.empty()) {
      if (choice.content.empty())
        message["content"] = nullptr;
      message["tool_calls"] = Json::array();
      for (const ToolCall &call : choice.calls)
        message["tool_calls"].push_back(
            {{"id", call.id},
             {"type", "function"},
             {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
    }
    Json logprobs = nullptr;
    if (head_.logprobs >= 0)
      logprobs = {{"content", std::move(choice.logprobs)}, {"refusal", nullptr}};
    Json entry = {{"index", i},
                  {"message", std::move(message)},
                  {"logprobs", std::move(logprobs)},
                  {"finish_reason", choice.finishReason}};
    if (!choice.stopReason.is_null())
      entry["stop_reason"] = choice.stopReason;
    json["choices"].push_back(std::move(entry));
  }
  json["usage"] = usageJson(usage);
  return dump(json);
}

} // namespace llmrt::server
