#include "runtime/server/ChatRequest.h"

#include "runtime/server/GrammarFields.h"

#include <algorithm>

namespace llmrt::server {
namespace {

constexpr std::string_view roles[] = {"system", "developer", "user", "assistant", "tool"};

std::string typeOf(const Json &value) {
  return value.is_null()     ? "null"
         : value.is_string() ? "a string"
         : value.is_array()  ? "an array"
         : value.is_object() ? "an object"
         : value.is_number() ? "a number"
                             : "a boolean";
}

/// The first fault of a message; \p path names it.
std::optional<ApiError> checkContent(const Json &content, const std::string &path) {
  if (content.is_string())
    return std::nullopt;
  if (!content.is_array())
    return badRequest(
        "'" + path + "' must be a string or an array of text parts, not " + typeOf(content), path);
  for (size_t i = 0; i < content.size(); ++i) {
    const Json &part = content[i];
    std::string where = path + "[" + std::to_string(i) + "]";
    if (!part.is_object() || !part.contains("type") || !part["type"].is_string())
      return badRequest("'" + where + "' must be an object with a type", where);
    const auto &type = part["type"].get_ref<const std::string &>();
    if (type != "text")
      return badRequest("'" + where + "' has the type '" + type.substr(0, 40) +
                            "'; this model takes text only",
                        where);
    if (!part.contains("text") || !part["text"].is_string())
      return badRequest("'" + where + ".text' must be a string", where + ".text");
  }
  return std::nullopt;
}

std::optional<ApiError> checkToolCalls(const Json &calls, const std::string &path) {
  if (!calls.is_array() || calls.empty())
    return badRequest("'" + path + "' must be an array of calls", path);
  for (size_t i = 0; i < calls.size(); ++i) {
    std::string where = path + "[" + std::to_string(i) + "].function";
    if (!calls[i].is_object() || !calls[i].contains("function") ||
        !calls[i]["function"].is_object())
      return badRequest("'" + where + "' must be an object", where);
    const Json &function = calls[i]["function"];
    if (!function.contains("name") || !function["name"].is_string())
      return badRequest("'" + where + ".name' must be a string", where + ".name");
    if (function.contains("arguments") && !function["arguments"].is_string() &&
        !function["arguments"].is_object())
      return badRequest("'" + where + ".arguments' must be a string of JSON", where + ".arguments");
  }
  return std::nullopt;
}

std::optional<ApiError> checkMessage(Json &message, const std::string &path) {
  if (!message.is_object())
    return badRequest("'" + path + "' must be an object, not " + typeOf(message), path);
  // Clients send null for what a message does not have; templates ask whether it is there.
  bool nullContent = message.contains("content") && message["content"].is_null();
  for (auto it = message.begin(); it != message.end();) {
    if (it->is_null())
      it = message.erase(it);
    else
      ++it;
  }
  if (!message.contains("role") || !message["role"].is_string())
    return badRequest("'" + path + ".role' must be a string", path + ".role");
  const auto role = message["role"].get<std::string>();
  if (std::find(std::begin(roles), std::end(roles), role) == std::end(roles))
    return badRequest("'" + path + ".role' is '" + role.substr(0, 40) +
                          "'; it must be system, developer, user, assistant or tool",
                      path + ".role");
  bool calls = message.contains("tool_calls");
  if (calls)
    if (auto error = checkToolCalls(message["tool_calls"], path + ".tool_calls"))
      return error;
  if (message.contains("content"))
    return checkContent(message["content"], path + ".content");
  if (role == "assistant" && calls) {
    message["content"] = nullContent ? Json(nullptr) : Json("");
    return std::nullopt;
  }
  return badRequest("'" + path + ".content' is missing", path + ".content");
}

} // namespace

std::optional<ApiError> checkMessages(Json &messages) {
  for (size_t i = 0; i < messages.size(); ++i)
    if (auto error = checkMessage(messages[i], "messages[" + std::to_string(i) + "]"))
      return error;
  return std::nullopt;
}

void readMessages(Fields &fields, Conversation &conversation) {
  JsonValue messages = fields.value("messages");
  if (!messages || !messages.isArray() || messages.size() == 0)
    return fields.fail("messages",
                       messages ? std::string("must be an array of messages, not ") +
                                      (messages.isArray() ? "an empty one" : messages.typeName())
                                : "is missing: an array of messages");
  Result<Json> list = toJson(messages);
  if (!list)
    return fields.fail(fromStatus(list.status(), "messages"));
  if (auto error = checkMessages(*list))
    return fields.fail(*error);
  conversation.messages = std::move(*list);
}

namespace {

std::optional<ApiError> checkTool(const Json &tool, const std::string &where,
                                  std::vector<std::string> &names) {
  if (!tool.is_object() || tool.value("type", Json()) != "function" || !tool.contains("function") ||
      !tool["function"].is_object())
    return badRequest("'" + where + "' must be an object of type 'function'", where);
  const Json &function = tool["function"];
  if (!function.contains("name") || !function["name"].is_string() ||
      function["name"].get_ref<const std::string &>().empty())
    return badRequest("'" + where + ".function.name' must be a string", where + ".function.name");
  if (function.contains("parameters") && !function["parameters"].is_object() &&
      !function["parameters"].is_null())
    return badRequest("'" + where + ".function.parameters' must be a JSON schema, an object",
                      where + ".function.parameters");
  names.push_back(function["name"].get<std::string>());
  return std::nullopt;
}

/// tool_choice, for tools of these names.
std::optional<ApiError> checkToolChoice(const Json &choice, const std::vector<std::string> &names,
                                        ToolChoice &result) {
  auto wrong = [](const std::string &message) {
    return badRequest("'tool_choice' " + message, "tool_choice");
  };
  result.mode = names.empty() ? ToolChoice::Mode::None : ToolChoice::Mode::Auto;
  if (choice.is_null() || choice == "auto")
    return std::nullopt;
  if (choice == "none") {
    result.mode = ToolChoice::Mode::None;
    return std::nullopt;
  }
  if (choice == "required") {
    if (names.empty())
      return wrong("is 'required', and there are no tools");
    result.mode = ToolChoice::Mode::Required;
    return std::nullopt;
  }
  if (choice.is_object() && choice.contains("function") && choice["function"].is_object() &&
      choice["function"].value("name", Json()).is_string()) {
    auto name = choice["function"]["name"].get<std::string>();
    if (std::find(names.begin(), names.end(), name) == names.end())
      return wrong("names the function '" + name.substr(0, 80) + "', which is none of the tools");
    result = {ToolChoice::Mode::Named, name};
    return std::nullopt;
  }
  return wrong("must be 'none', 'auto', 'required' or "
               "{\"type\": \"function\", \"function\": {\"name\": ...}}");
}

} // namespace

std::optional<ApiError> checkTools(const Json &tools, const Json &choice, const Served &served,
                                   ChatInput &input) {
  std::vector<std::string> names;
  if (!tools.is_null() && !tools.is_array())
    return badRequest("'tools' must be an array, not " + typeOf(tools), "tools");
  for (size_t i = 0; i < tools.size(); ++i)
    if (auto error = checkTool(tools[i], "tools[" + std::to_string(i) + "]", names))
      return error;
  if (auto error = checkToolChoice(choice, names, input.toolChoice))
    return error;
  input.conversation.tools = nullptr; // nothing tempts the model to call one
  if (input.toolChoice.mode == ToolChoice::Mode::None)
    return std::nullopt;
  if (served.toolForm == ToolForm::None)
    return badRequest("'tools' can't be used: the model's chat template takes none, or writes "
                      "calls in a form that is not known; see --tool-call-parser",
                      "tools");
  input.conversation.tools = tools;
  return std::nullopt;
}

void readTools(Fields &fields, const Served &served, ChatInput &input) {
  fields.boolean("parallel_tool_calls");
  Result<Json> tools = toJson(fields.value("tools")), choice = toJson(fields.value("tool_choice"));
  if (!tools || !choice)
    return fields.fail(fromStatus(!tools ? tools.status() : choice.status(), "tools"));
  if (auto error = checkTools(*tools, *choice, served, input))
    fields.fail(*error);
}

MessageForm messageForm(const Served &served, const ChatInput &input,
                        const std::vector<int32_t> &prompt) {
  MessageForm form;
  if (input.toolChoice.mode == ToolChoice::Mode::Auto)
    form.tools = served.toolForm;
  else if (input.toolChoice.mode != ToolChoice::Mode::None)
    form.tools = ToolForm::Llama; // forced: nothing but the object, see forceCall
  form.reasoning = served.reasoning;
  if (!form.reasoning)
    return form;
  // Some templates begin the reasoning themselves.
  size_t tail = std::min<size_t>(prompt.size(), 8);
  Result<std::string> text = served.tokenizer->decode(
      std::span(prompt).subspan(prompt.size() - tail), {.skipSpecial = false});
  if (text) {
    text->resize(text->find_last_not_of(" \n") + 1);
    form.startsReasoning = text->ends_with("<think>");
  }
  return form;
}

namespace {

/// What only chats have beside messages and tools.
void readChatExtras(Fields &fields, const Served &served, Conversation &conversation) {
  if (JsonValue extra = fields.value("chat_template_kwargs")) {
    Result<Json> json = toJson(extra);
    if (!json || !json->is_object())
      return fields.fail("chat_template_kwargs", "must be an object");
    conversation.extra = std::move(*json);
  }
  if (JsonValue documents = fields.value("documents")) {
    Result<Json> json = toJson(documents);
    if (!json || !json->is_array())
      return fields.fail("documents", "must be an array");
    conversation.documents = std::move(*json);
  }
  if (auto effort = fields.string("reasoning_effort")) {
    if (!served.chatTemplate || !served.chatTemplate->mentions("reasoning_effort"))
      return fields.fail("reasoning_effort", "is not supported by this model's chat template");
    if (!conversation.extra.is_object())
      conversation.extra = Json::object();
    conversation.extra["reasoning_effort"] = *effort;
  }
  conversation.addGenerationPrompt = fields.boolean("add_generation_prompt").value_or(true);
  if (fields.boolean("continue_final_message").value_or(false))
    fields.fail("continue_final_message", "may only be false");
  if (fields.boolean("add_special_tokens").value_or(false))
    fields.fail("add_special_tokens", "may only be false: the chat template writes them");
}

void readLength(Fields &fields, const Served &served, GenerationRequest &request) {
  auto older = fields.integer("max_tokens", 0, INT64_MAX);
  auto newer = fields.integer("max_completion_tokens", 0, INT64_MAX);
  if (newer ? newer : older)
    request.maxNewTokens = std::min(newer ? *newer : *older, served.maxContext);
}

} // namespace

std::optional<ApiError> encodeConversation(const Served &served, ChatInput &input,
                                           GenerationRequest &request, MessageForm &form) {
  // No template but those made for it knows the newer name of the system's role.
  if (served.chatTemplate && served.chatTemplate->source().find("developer") == std::string::npos)
    for (Json &message : input.conversation.messages)
      if (message["role"] == "developer")
        message["role"] = "system";
  if (input.toolChoice.mode == ToolChoice::Mode::Required ||
      input.toolChoice.mode == ToolChoice::Mode::Named)
    if (auto error = forceCall(input.conversation.tools, input.toolChoice, served, request))
      return error;
  Result<std::vector<int32_t>> prompt = served.model->encodeChat(std::move(input.conversation));
  if (!prompt)
    return fromStatus(prompt.status(), request.promptField);
  bool single = form.singleCall;
  form = messageForm(served, input, *prompt);
  form.singleCall = single;
  // The marks of these are control tokens.
  if (served.toolForm != ToolForm::Hermes && form.tools != ToolForm::None)
    request.skipSpecial = false;
  request.prompts.push_back(std::move(*prompt));
  return std::nullopt;
}

std::variant<PreparedRequest, ApiError> prepareChat(JsonValue body, const Served &served) {
  Fields fields(body);
  PreparedRequest prepared;
  GenerationRequest &request = prepared.generation;
  request.promptField = "messages";
  AnswerHead head;
  ChatInput input;
  readModel(fields, served);
  readSampling(fields, served, request);
  readStream(fields, request, head);
  readLength(fields, served, request);
  if (request.choices > request.answers)
    fields.fail("best_of", "is a field of /v1/completions; ask for several choices with n");
  bool logprobs = fields.boolean("logprobs").value_or(false);
  auto top = fields.integer("top_logprobs", 0, maxLogprobs);
  if (top && !logprobs)
    fields.fail("top_logprobs", "needs 'logprobs': true");
  if (logprobs)
    request.sampling.logprobs = head.logprobs = static_cast<int32_t>(top.value_or(0));
  readMessages(fields, input.conversation);
  readTools(fields, served, input);
  readGrammar(fields, served, request);
  readChatExtras(fields, served, input.conversation);
  prepared.unknown = checkUnread(fields);
  if (fields.error())
    return *fields.error();

  bool named = input.toolChoice.mode == ToolChoice::Mode::Named;
  MessageForm form;
  form.singleCall = fields.boolean("parallel_tool_calls") == false;
  if (auto error = encodeConversation(served, input, request, form))
    return *error;
  head.id = newAnswerId("chatcmpl");
  head.model = served.name();
  head.created = static_cast<int64_t>(std::time(nullptr));
  prepared.answer =
      std::make_unique<ChatAnswer>(std::move(head), served.tokenizer, request.choices, form, named);
  return prepared;
}

} // namespace llmrt::server
