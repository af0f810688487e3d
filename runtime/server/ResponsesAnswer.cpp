#include "runtime/server/ResponsesAnswer.h"

namespace llmrt::server {
namespace {

Json textPart(const std::string &text) {
  return {{"type", "output_text"},
          {"text", text},
          {"annotations", Json::array()},
          {"logprobs", Json::array()}};
}
Json reasoningPart(const std::string &text) { return {{"type", "reasoning_text"}, {"text", text}}; }

} // namespace

const char *ResponsesAnswer::status() const {
  return reason_ == FinishReason::Length ? "incomplete" : "completed";
}

std::string ResponsesAnswer::itemId(const Block &block) const {
  return (block.kind == Block::Kind::Call   ? "fc_"
          : block.kind == Block::Kind::Text ? "msg_"
                                            : "rs_") +
         block.id;
}

Json ResponsesAnswer::item(const Block &block, const char *status) const {
  switch (block.kind) {
  case Block::Kind::Text: {
    Json content = Json::array();
    if (!block.text.empty())
      content.push_back(textPart(block.text));
    return {{"type", "message"},
            {"id", itemId(block)},
            {"status", status},
            {"role", "assistant"},
            {"content", std::move(content)}};
  }
  case Block::Kind::Reasoning: {
    Json content = Json::array();
    if (!block.text.empty())
      content.push_back(reasoningPart(block.text));
    return {{"type", "reasoning"},
            {"id", itemId(block)},
            {"status", status},
            {"summary", Json::array()},
            {"content", std::move(content)}};
  }
  case Block::Kind::Call:
    break;
  }
  return {{"type", "function_call"}, {"id", itemId(block)},     {"call_id", "call_" + block.id},
          {"name", block.name},      {"arguments", block.text}, {"status", status}};
}

Json ResponsesAnswer::response(const char *status, const Usage *usage) const {
  Json json = {{"id", head_.id},       {"object", "response"},   {"created_at", head_.created},
               {"status", status},     {"error", nullptr},       {"incomplete_details", nullptr},
               {"model", head_.model}, {"output", Json::array()}};
  json.update(echoed_);
  if (!usage) {
    json["usage"] = nullptr;
    return json;
  }
  if (reason_ == FinishReason::Length)
    json["incomplete_details"] = {{"reason", "max_output_tokens"}};
  for (const Block &block : blocks_)
    json["output"].push_back(item(block, status));
  json["usage"] = {{"input_tokens", usage->promptTokens},
                   {"input_tokens_details", {{"cached_tokens", usage->cachedTokens}}},
                   {"output_tokens", usage->completionTokens},
                   {"output_tokens_details", {{"reasoning_tokens", 0}}},
                   {"total_tokens", usage->promptTokens + usage->completionTokens}};
  return json;
}

void ResponsesAnswer::event(const char *type, Json members, std::string &events) {
  Json json = {{"type", type}, {"sequence_number", sequence_++}};
  json.update(members);
  appendEvent(events, type, json);
}

void ResponsesAnswer::begin(std::string &events) {
  event("response.created", {{"response", response("in_progress", nullptr)}}, events);
  event("response.in_progress", {{"response", response("in_progress", nullptr)}}, events);
}

void ResponsesAnswer::open(size_t index, std::string &events) {
  Block empty = blocks_[index];
  empty.text.clear();
  event("response.output_item.added",
        {{"output_index", index}, {"item", item(empty, "in_progress")}}, events);
  if (empty.kind == Block::Kind::Call)
    return;
  event("response.content_part.added",
        {{"item_id", itemId(empty)},
         {"output_index", index},
         {"content_index", 0},
         {"part", empty.kind == Block::Kind::Text ? textPart("") : reasoningPart("")}},
        events);
}

void ResponsesAnswer::grow(size_t index, std::string_view text, std::string &events) {
  const Block &block = blocks_[index];
  Json members = {{"item_id", itemId(block)}, {"output_index", index}};
  if (block.kind != Block::Kind::Call)
    members["content_index"] = 0;
  members["delta"] = text;
  if (block.kind == Block::Kind::Text)
    members["logprobs"] = Json::array();
  event(block.kind == Block::Kind::Call   ? "response.function_call_arguments.delta"
        : block.kind == Block::Kind::Text ? "response.output_text.delta"
                                          : "response.reasoning_text.delta",
        std::move(members), events);
}

void ResponsesAnswer::close(size_t index, std::string &events) {
  const Block &block = blocks_[index];
  Json members = {{"item_id", itemId(block)}, {"output_index", index}};
  if (block.kind == Block::Kind::Call) {
    members["name"] = block.name;
    members["arguments"] = block.text;
    event("response.function_call_arguments.done", std::move(members), events);
  } else {
    bool isText = block.kind == Block::Kind::Text;
    members["content_index"] = 0;
    Json done = members;
    done["text"] = block.text;
    if (isText)
      done["logprobs"] = Json::array();
    event(isText ? "response.output_text.done" : "response.reasoning_text.done", std::move(done),
          events);
    members["part"] = isText ? textPart(block.text) : reasoningPart(block.text);
    event("response.content_part.done", std::move(members), events);
  }
  event("response.output_item.done", {{"output_index", index}, {"item", item(block, "completed")}},
        events);
}

void ResponsesAnswer::end(const Usage &usage, std::string &events) {
  event(reason_ == FinishReason::Length ? "response.incomplete" : "response.completed",
        {{"response", response(status(), &usage)}}, events);
}

std::string ResponsesAnswer::whole(const Usage &usage) { return dump(response(status(), &usage)); }

void ResponsesAnswer::error(const ApiError &error, std::string &events) {
  event("error", {{"code", error.type}, {"message", error.message}, {"param", nullptr}}, events);
}

} // namespace llmrt::server
