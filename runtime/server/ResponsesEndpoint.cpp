#include "runtime/server/ResponsesEndpoint.h"

#include "runtime/server/ChatRequest.h"
#include "runtime/server/GrammarFields.h"
#include "runtime/server/ResponsesAnswer.h"

namespace llmrt::server {
namespace {

/// input_text and output_text parts as the text parts of chats; others stay, and are refused there.
Json convertContent(const Json &content) {
  if (!content.is_array())
    return content;
  Json parts = content;
  for (Json &part : parts)
    if (part.is_object() &&
        (part.value("type", Json()) == "input_text" || part.value("type", Json()) == "output_text"))
      part = {{"type", "text"}, {"text", part.value("text", Json())}};
  return parts;
}

std::optional<ApiError> convertItem(const Json &item, const std::string &path, Json &list) {
  Json type = item.is_object() ? item.value("type", Json("message")) : Json();
  if (type == "message") {
    list.push_back({{"role", item.value("role", Json())},
                    {"content", convertContent(item.value("content", Json()))}});
  } else if (type == "function_call") {
    Json call = {
        {"id", item.value("call_id", Json(""))},
        {"type", "function"},
        {"function",
         {{"name", item.value("name", Json())}, {"arguments", item.value("arguments", Json(""))}}}};
    // Calls of one turn stand in one message.
    if (!list.empty() && list.back().contains("tool_calls"))
      list.back()["tool_calls"].push_back(std::move(call));
    else
      list.push_back(
          {{"role", "assistant"}, {"content", ""}, {"tool_calls", Json::array({std::move(call)})}});
  } else if (type == "function_call_output") {
    list.push_back({{"role", "tool"},
                    {"tool_call_id", item.value("call_id", Json(""))},
                    {"content", convertContent(item.value("output", Json()))}});
  } else if (type != "reasoning") {
    return badRequest("'" + path + "' has the type " + dump(type).substr(0, 40) +
                          "; message, function_call, function_call_output and reasoning are "
                          "supported",
                      path);
  }
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
    if (!tool.is_object() || tool.value("type", Json()) != "function")
      return badRequest("'tools' may only have functions", "tools");
    Json function = tool;
    function.erase("type");
    list.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return std::nullopt;
}

Json convertChoice(const Json &choice) {
  if (!choice.is_object() || !choice.contains("name"))
    return choice;
  return {{"type", "function"}, {"function", {{"name", choice["name"]}}}};
}

/// What only this endpoint has and can't be honoured.
void refuseState(Fields &fields) {
  for (const char *name : {"previous_response_id", "conversation", "prompt"})
    if (fields.value(name))
      fields.fail(name, "is not supported: answers are not kept");
  if (fields.boolean("background").value_or(false))
    fields.fail("background", "may only be false");
  if (auto truncation = fields.string("truncation"); truncation && *truncation != "disabled")
    fields.fail("truncation", "may only be 'disabled': a prompt is never cut");
  if (JsonValue include = fields.value("include"); include && include.size() > 0)
    fields.fail("include", "is not supported");
  if (JsonValue reasoning = fields.value("reasoning"); reasoning && reasoning.size() > 0)
    fields.fail("reasoning", "is not supported");
}

} // namespace

std::variant<PreparedRequest, ApiError> prepareResponse(JsonValue body, const Served &served) {
  Fields fields(body);
  PreparedRequest prepared;
  GenerationRequest &request = prepared.generation;
  request.promptField = "input";
  AnswerHead head;
  ChatInput inputs;
  readModel(fields, served);
  readSampling(fields, served, request);
  refuseChoices(fields, request);
  request.stream = head.stream = fields.boolean("stream").value_or(false);
  if (auto limit = fields.integer("max_output_tokens", 1, INT64_MAX))
    request.maxNewTokens = std::min(*limit, served.maxContext);
  refuseState(fields);
  readTextFormat(fields, served, request);
  std::optional<std::string> instructions = fields.string("instructions");
  bool parallel = fields.boolean("parallel_tool_calls").value_or(true);

  Json &list = inputs.conversation.messages;
  list = Json::array();
  if (instructions)
    list.push_back({{"role", "system"}, {"content", *instructions}});
  Result<Json> input = toJson(fields.value("input"));
  Result<Json> tools = toJson(fields.value("tools")), choice = toJson(fields.value("tool_choice"));
  Result<Json> metadata = toJson(fields.value("metadata"));
  for (const Result<Json> *part : {&input, &tools, &choice, &metadata})
    if (!*part)
      fields.fail(fromStatus(part->status()));
  if (fields.ok() && input->is_string())
    list.push_back({{"role", "user"}, {"content", *input}});
  else if (fields.ok() && (!input->is_array() || input->empty()))
    fields.fail("input", "must be a string or an array of items");
  else
    for (size_t i = 0; fields.ok() && i < input->size(); ++i)
      if (auto error = convertItem((*input)[i], "input[" + std::to_string(i) + "]", list))
        fields.fail(*error);
  if (fields.ok())
    if (auto error = checkMessages(list))
      fields.fail(*error);
  Json converted;
  if (fields.ok())
    if (auto error = convertTools(*tools, converted))
      fields.fail(*error);
  if (fields.ok())
    if (auto error = checkTools(converted, convertChoice(*choice), served, inputs))
      fields.fail(*error);
  prepared.unknown = checkUnread(fields);
  if (fields.error())
    return *fields.error();

  Json format = {{"type", "text"}};
  if (JsonValue text = fields.value("text"); text && text["format"].isObject())
    if (Result<Json> given = toJson(text["format"]))
      format = std::move(*given);
  Json echoed = {
      {"instructions", instructions ? Json(*instructions) : Json(nullptr)},
      {"max_output_tokens", request.maxNewTokens < 0 ? Json(nullptr) : Json(request.maxNewTokens)},
      {"metadata", metadata->is_object() ? *metadata : Json::object()},
      {"parallel_tool_calls", parallel},
      {"previous_response_id", nullptr},
      {"store", false},
      {"temperature", request.sampling.temperature},
      {"text", {{"format", format}}},
      {"tool_choice", choice->is_null() ? Json("auto") : *choice},
      {"tools", tools->is_null() ? Json::array() : *tools},
      {"top_p", request.sampling.topP},
      {"truncation", "disabled"}};
  inputs.conversation.addGenerationPrompt = true;
  MessageForm form;
  form.singleCall = !parallel;
  if (auto error = encodeConversation(served, inputs, request, form))
    return *error;
  head.id = newAnswerId("resp");
  head.model = served.name();
  head.created = static_cast<int64_t>(std::time(nullptr));
  prepared.answer = std::make_unique<ResponsesAnswer>(std::move(head), form, std::move(echoed));
  return prepared;
}

} // namespace llmrt::server
