#include "runtime/text/chat/ApplyChatTemplate.h"

#include "runtime/text/chat/jinja/Json.h"

namespace llmrt {

using Json = nlohmann::ordered_json;

/// Copies of JSON recurse, and a template has no use for deeper values.
static constexpr size_t maxNesting = 100;

static Status checkMessages(const Json &messages) {
  if (!messages.is_array())
    return invalidArgument("messages must be an array");
  if (messages.empty())
    return invalidArgument("messages is empty; at least one message is needed");
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string name = "messages[" + std::to_string(i) + "]";
    if (!messages[i].is_object())
      return invalidArgument(name + " must be an object");
    auto role = messages[i].find("role");
    if (role == messages[i].end() || !role->is_string())
      return invalidArgument(name + ".role must be a string");
  }
  return Status::ok();
}

/// The text of a content that has only text parts; nothing for any other content.
static std::optional<std::string> textOfParts(const Json &content) {
  if (!content.is_array())
    return std::nullopt;
  std::string text;
  for (const Json &part : content) {
    if (!part.is_object() || part.value("type", Json()) != "text")
      return std::nullopt;
    auto piece = part.find("text");
    if (piece == part.end() || !piece->is_string())
      return std::nullopt;
    if (&part != &content.front())
      text += '\n';
    text += piece->get_ref<const std::string &>();
  }
  return text;
}

Result<std::string> applyChatTemplate(const ChatTemplate &chatTemplate, const Json &messages,
                                      const ApplyOptions &options) {
  const std::pair<const char *, const Json *> parts[] = {{"messages", &messages},
                                                         {"tools", &options.tools},
                                                         {"documents", &options.documents},
                                                         {"the extra variables", &options.extra}};
  for (const auto &[name, json] : parts)
    if (jinja::nestsDeeperThan(*json, maxNesting))
      return invalidArgument(std::string(name) + " must not nest more than " +
                             std::to_string(maxNesting) + " levels deep");
  LLMRT_RETURN_IF_ERROR(checkMessages(messages));
  if (!options.tools.is_null() && !options.tools.is_array())
    return invalidArgument("tools must be an array");
  if (!options.documents.is_null() && !options.documents.is_array())
    return invalidArgument("documents must be an array");
  if (!options.extra.is_null() && !options.extra.is_object())
    return invalidArgument("the extra variables of the chat template must be an object");

  Json context = Json::object();
  context["messages"] = messages;
  context["tools"] = options.tools;
  context["documents"] = options.documents;
  context["add_generation_prompt"] =
      options.addGenerationPrompt.value_or(messages.back()["role"] != "assistant");
  context["bos_token"] = options.bosToken;
  context["eos_token"] = options.eosToken;
  if (options.extra.is_object())
    for (const auto &[name, value] : options.extra.items())
      if (name != "messages")
        context[name] = value;

  if (!chatTemplate.takesContentParts())
    for (Json &message : context["messages"])
      if (auto content = message.find("content"); content != message.end())
        if (std::optional<std::string> text = textOfParts(*content))
          *content = *text;
  return chatTemplate.render(context, options.render);
}

} // namespace llmrt
