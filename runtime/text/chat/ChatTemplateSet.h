//===- ChatTemplateSet.h - the chat templates that a model file holds -------------------------===//
#ifndef LLMRT_TEXT_CHAT_CHATTEMPLATESET_H
#define LLMRT_TEXT_CHAT_CHATTEMPLATESET_H

#include "runtime/text/chat/ChatTemplate.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace llmrt {

/// Most models have one template; some have several by name: "default", "tool_use", "rag".
/// Every one of them must parse. A model without a template has none: nothing stands in for it.
class ChatTemplateSet {
public:
  ChatTemplateSet() = default;
  /// A single template, as in chat_template.jinja or GGUF's tokenizer.chat_template.
  static Result<ChatTemplateSet> fromText(std::string source);
  /// The field chat_template of tokenizer_config.json: null, a string, an array of
  /// {"name", "template"}, or an object of names and templates.
  static Result<ChatTemplateSet> fromJson(const nlohmann::ordered_json &field);

  bool empty() const { return templates_.empty(); }
  /// Null if there is none of that name.
  const ChatTemplate *find(std::string_view name) const;
  /// The template \p name if one is given; else "tool_use" if there are tools and such a
  /// template, else "default", else the only one.
  /// Fails if there is no such template, naming those that exist.
  Result<ChatTemplate> choose(bool hasTools, std::optional<std::string_view> name = {}) const;

private:
  Status add(std::string name, std::string source);
  std::vector<std::pair<std::string, ChatTemplate>> templates_;
};

} // namespace llmrt

#endif // LLMRT_TEXT_CHAT_CHATTEMPLATESET_H
