#include "runtime/text/chat/ChatTemplateSet.h"

namespace llmrt {

using Json = nlohmann::ordered_json;

Status ChatTemplateSet::add(std::string name, std::string source) {
  if (find(name))
    return invalidFile("there are two chat templates with the name '" + name + "'");
  Result<ChatTemplate> parsed = ChatTemplate::parse(std::move(source));
  if (!parsed)
    return templates_.empty() && name == "default"
               ? parsed.status()
               : parsed.status().withContext("the template '" + name + "'");
  templates_.emplace_back(std::move(name), std::move(*parsed));
  return Status::ok();
}

Result<ChatTemplateSet> ChatTemplateSet::fromText(std::string source) {
  ChatTemplateSet set;
  LLMRT_RETURN_IF_ERROR(set.add("default", std::move(source)));
  return set;
}

Result<ChatTemplateSet> ChatTemplateSet::fromJson(const Json &field) {
  ChatTemplateSet set;
  if (field.is_null())
    return set;
  if (field.is_string())
    return fromText(field.get<std::string>());
  if (field.is_object()) {
    for (const auto &[name, source] : field.items()) {
      if (!source.is_string())
        return invalidFile("chat_template: the template '" + name + "' is not a string");
      LLMRT_RETURN_IF_ERROR(set.add(name, source.get<std::string>()));
    }
    return set;
  }
  if (!field.is_array())
    return invalidFile("chat_template must be a string or a list of named templates");
  for (const Json &entry : field) {
    const bool ok = entry.is_object() && entry.contains("name") && entry["name"].is_string() &&
                    entry.contains("template") && entry["template"].is_string();
    if (!ok)
      return invalidFile("chat_template: each entry of the list needs a string 'name' and a "
                         "string 'template'");
    LLMRT_RETURN_IF_ERROR(
        set.add(entry["name"].get<std::string>(), entry["template"].get<std::string>()));
  }
  return set;
}

const ChatTemplate *ChatTemplateSet::find(std::string_view name) const {
  for (const auto &[key, chatTemplate] : templates_)
    if (key == name)
      return &chatTemplate;
  return nullptr;
}

Result<ChatTemplate> ChatTemplateSet::choose(bool hasTools,
                                             std::optional<std::string_view> name) const {
  if (empty())
    return invalidArgument("the model has no chat template; name one (a file with --chat-template) "
                           "or use the completions endpoint");
  std::string names;
  for (const auto &[key, chatTemplate] : templates_)
    names += (names.empty() ? "'" : ", '") + key + "'";
  if (name) {
    if (const ChatTemplate *found = find(*name))
      return *found;
    return invalidArgument("the model has no chat template '" + std::string(name->substr(0, 100)) +
                           "'; it has " + names);
  }
  if (hasTools)
    if (const ChatTemplate *found = find("tool_use"))
      return *found;
  if (const ChatTemplate *found = find("default"))
    return *found;
  if (templates_.size() == 1)
    return templates_[0].second;
  return invalidArgument("the model has no default chat template; name one of " + names);
}

} // namespace llmrt
