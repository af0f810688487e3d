#include "runtime/server/MessagesEndpoint.h"

#include "runtime/server/BlockAnswer.h"
#include "runtime/server/ChatRequest.h"

namespace llmrt::server {
namespace {

class MessagesAnswer final : public BlockAnswer {
public:
  MessagesAnswer(AnswerHead head, const MessageForm &form, int64_t promptTokens)
      : BlockAnswer(std::move(head), form), promptTokens_(promptTokens) {}

  void begin(std::string &events) override {
    Json message = shell();
    message["content"] = Json::array();
    message["stop_reason"] = nullptr;
    message["stop_sequence"] = nullptr;
    message["usage"] = {{"input_tokens", promptTokens_}, {"output_tokens", 0}};
    appendEvent(events, "message_start", {{"type", "message_start"}, {"message", message}});
  }
  void end(const Usage &usage, std::string &events) override {
    appendEvent(events, "message_delta",
                {{"type", "message_delta"},
                 {"delta", {{"stop_reason", stopReason()}, {"stop_sequence", stopSequence()}}},
                 {"usage", usageOf(usage)}});
    appendEvent(events, "message_stop", {{"type", "message_stop"}});
  }
  std::string whole(const Usage &usage) override {
    Json message = shell();
    message["content"] = Json::array();
    for (const Block &block : blocks_)
      message["content"].push_back(blockJson(block));
    message["stop_reason"] = stopReason();
    message["stop_sequence"] = stopSequence();
    message["usage"] = usageOf(usage);
    return dump(message);
  }
  void error(const ApiError &error, std::string &events) override {
    appendEvent(
        events, "error",
        {{"type", "error"}, {"error", {{"type", "api_error"}, {"message", error.message}}}});
  }

protected:
  void open(size_t index, std::string &events) override {
    Block empty = blocks_[index];
    empty.text.clear();
    appendEvent(
        events, "content_block_start",
        {{"type", "content_block_start"}, {"index", index}, {"content_block", blockJson(empty)}});
  }
  void grow(size_t index, std::string_view text, std::string &events) override {
    Json delta;
    switch (blocks_[index].kind) {
    case Block::Kind::Text:
      delta = {{"type", "text_delta"}, {"text", text}};
      break;
    case Block::Kind::Reasoning:
      delta = {{"type", "thinking_delta"}, {"thinking", text}};
      break;
    case Block::Kind::Call:
      delta = {{"type", "input_json_delta"}, {"partial_json", text}};
      break;
    }
    appendEvent(events, "content_block_delta",
                {{"type", "content_block_delta"}, {"index", index}, {"delta", std::move(delta)}});
  }
  void close(size_t index, std::string &events) override {
    appendEvent(events, "content_block_stop", {{"type", "content_block_stop"}, {"index", index}});
  }

private:
  Json shell() const {
    return {{"id", head_.id}, {"type", "message"}, {"role", "assistant"}, {"model", head_.model}};
  }
  static Json blockJson(const Block &block) {
    if (block.kind == Block::Kind::Text)
      return {{"type", "text"}, {"text", block.text}};
    if (block.kind == Block::Kind::Reasoning)
      return {{"type", "thinking"}, {"thinking", block.text}, {"signature", ""}};
    // An answer that was cut off may have half of the arguments: they are no JSON.
    Json input = Json::parse(block.text, nullptr, false);
    return {{"type", "tool_use"},
            {"id", "toolu_" + block.id},
            {"name", block.name},
            {"input", input.is_object() ? input : Json::object()}};
  }
  static Json usageOf(const Usage &usage) {
    return {{"input_tokens", usage.promptTokens - usage.cachedTokens},
            {"cache_read_input_tokens", usage.cachedTokens},
            {"cache_creation_input_tokens", 0},
            {"output_tokens", usage.completionTokens}};
  }
  Json stopReason() const {
    if (reason_ == FinishReason::Length)
      return "max_tokens";
    return called_ ? "tool_use" : stopString_.empty() ? "end_turn" : "stop_sequence";
  }
  Json stopSequence() const { return stopString_.empty() ? Json(nullptr) : Json(stopString_); }

  const int64_t promptTokens_;
};

/// The text of a string or of text blocks.
std::optional<std::string> textOf(const Json &content) {
  if (content.is_string())
    return content.get<std::string>();
  if (!content.is_array())
    return std::nullopt;
  std::string text;
  for (const Json &block : content) {
    if (!block.is_object() || block.value("type", Json()) != "text" ||
        !block.value("text", Json()).is_string())
      return std::nullopt;
    text += (text.empty() ? "" : "\n") + block["text"].get<std::string>();
  }
  return text;
}

/// One of Anthropic's messages as one or more of OpenAI's.
std::optional<ApiError> convertMessage(const Json &message, const std::string &path, Json &list) {
  auto wrong = [&](const std::string &what) { return badRequest("'" + path + "' " + what, path); };
  if (!message.is_object())
    return wrong("must be an object");
  Json role = message.value("role", Json()), content = message.value("content", Json());
  if (role != "user" && role != "assistant")
    return wrong("must have the role 'user' or 'assistant'");
  if (std::optional<std::string> text = textOf(content)) {
    list.push_back({{"role", role}, {"content", *text}});
    return std::nullopt;
  }
  if (!content.is_array())
    return wrong("must have a content: a string or an array of blocks");
  std::string text;
  Json calls = Json::array();
  for (const Json &block : content) {
    Json type = block.is_object() ? block.value("type", Json()) : Json();
    if (type == "text" && block.value("text", Json()).is_string()) {
      text += (text.empty() ? "" : "\n") + block["text"].get<std::string>();
    } else if (type == "tool_use" && block.value("name", Json()).is_string()) {
      calls.push_back(
          {{"id", block.value("id", Json(""))},
           {"type", "function"},
           {"function",
            {{"name", block["name"]}, {"arguments", dump(block.value("input", Json::object()))}}}});
    } else if (type == "tool_result") {
      std::optional<std::string> result = textOf(block.value("content", Json("")));
      if (!result)
        return wrong("has a tool_result that is no text; this model takes text only");
      list.push_back({{"role", "tool"},
                      {"tool_call_id", block.value("tool_use_id", Json(""))},
                      {"content", *result}});
    } else if (type != "thinking" && type != "redacted_thinking") {
      return wrong("has a block of type " + dump(type).substr(0, 40) +
                   "; text, tool_use and tool_result are supported");
    }
  }
  if (calls.empty() && text.empty())
    return std::nullopt; // tool results only
  Json converted = {{"role", role}, {"content", text}};
  if (!calls.empty())
    converted["tool_calls"] = std::move(calls);
  list.push_back(std::move(converted));
  return std::nullopt;
}

std::optional<ApiError> convertTools(const Json &tools, Json &list) {
  list = nullptr;
  if (tools.is_null())
    return std::nullopt;
  if (!tools.is_array())
    return badRequest("'tools' must be an array", "tools");
  list = Json::array();
  for (const Json &tool : tools) {
    if (!tool.is_object() || !tool.value("name", Json()).is_string())
      return badRequest("'tools' must be objects with a name and an input_schema", "tools");
    Json function = {{"name", tool["name"]}};
    if (tool.contains("description"))
      function["description"] = tool["description"];
    function["parameters"] = tool.value("input_schema", Json::object());
    list.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return std::nullopt;
}

Json convertChoice(const Json &choice) {
  if (!choice.is_object())
    return choice;
  Json type = choice.value("type", Json());
  if (type == "any")
    return "required";
  if (type == "tool")
    return {{"type", "function"}, {"function", {{"name", choice.value("name", Json())}}}};
  return type;
}

} // namespace

std::variant<PreparedRequest, ApiError> prepareMessages(JsonValue body, const Served &served) {
  Fields fields(body);
  PreparedRequest prepared;
  GenerationRequest &request = prepared.generation;
  request.promptField = "messages";
  AnswerHead head;
  ChatInput input;
  readModel(fields, served);
  readSampling(fields, served, request);
  refuseChoices(fields, request);
  request.stream = head.stream = fields.boolean("stream").value_or(false);
  if (auto limit = fields.integer("max_tokens", 1, INT64_MAX))
    request.maxNewTokens = std::min(*limit, served.maxContext);
  else
    fields.fail("max_tokens", "is missing");
  if (JsonValue stops = fields.value("stop_sequences")) {
    for (JsonValue stop : stops.elements())
      if (stop.isString() && !stop.asString().empty() && request.stops.size() < 64)
        request.stops.emplace_back(stop.asString());
      else
        fields.fail("stop_sequences", "must be up to 64 strings that are not empty");
    if (!stops.isArray())
      fields.fail("stop_sequences", "must be an array of strings");
  }
  if (JsonValue thinking = fields.value("thinking"))
    if (!thinking.isObject() || !thinking["type"].isString() ||
        thinking["type"].asString() != "disabled")
      fields.fail("thinking", "may only be disabled: the model decides whether it thinks");

  input.conversation.messages = Json::array();
  Json &list = input.conversation.messages;
  Result<Json> system = toJson(fields.value("system")), messages = toJson(fields.value("messages"));
  Result<Json> tools = toJson(fields.value("tools")), choice = toJson(fields.value("tool_choice"));
  for (const Result<Json> *part : {&system, &messages, &tools, &choice})
    if (!*part)
      fields.fail(fromStatus(part->status()));
  if (fields.ok() && !system->is_null()) {
    if (std::optional<std::string> text = textOf(*system))
      list.push_back({{"role", "system"}, {"content", *text}});
    else
      fields.fail("system", "must be a string or text blocks");
  }
  if (fields.ok() && (!messages->is_array() || messages->empty()))
    fields.fail("messages", "must be an array of messages");
  for (size_t i = 0; fields.ok() && i < messages->size(); ++i)
    if (auto error = convertMessage((*messages)[i], "messages[" + std::to_string(i) + "]", list))
      fields.fail(*error);
  Json converted;
  if (fields.ok())
    if (auto error = convertTools(*tools, converted))
      fields.fail(*error);
  if (fields.ok())
    if (auto error = checkTools(converted, convertChoice(*choice), served, input))
      fields.fail(*error);
  prepared.unknown = checkUnread(fields);
  if (fields.error())
    return *fields.error();

  input.conversation.addGenerationPrompt = true;
  MessageForm form;
  form.singleCall =
      choice->is_object() && choice->value("disable_parallel_tool_use", Json()) == true;
  if (auto error = encodeConversation(served, input, request, form))
    return *error;
  head.id = newAnswerId("msg");
  head.model = served.name();
  prepared.answer =
      std::make_unique<MessagesAnswer>(std::move(head), form, int64_t(request.prompts[0].size()));
  return prepared;
}

} // namespace llmrt::server
