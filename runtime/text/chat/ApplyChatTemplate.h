//===- ApplyChatTemplate.h - a conversation to the text of a prompt -------------------------===//
#ifndef LLMRT_TEXT_CHAT_APPLYCHATTEMPLATE_H
#define LLMRT_TEXT_CHAT_APPLYCHATTEMPLATE_H

#include "runtime/text/chat/ChatTemplate.h"

#include <nlohmann/json.hpp>

namespace llmrt {

struct ApplyOptions {
  /// Whether the prompt ends with the header of an assistant's answer. By default it does, unless
  /// the last message is the assistant's. A template without such a header stays without.
  std::optional<bool> addGenerationPrompt;
  nlohmann::ordered_json tools;     ///< an array of function schemas, or null
  nlohmann::ordered_json documents; ///< an array of documents for retrieval models, or null
  std::string bosToken;             ///< empty if the model has none
  std::string eosToken;
  /// More variables (`enable_thinking`, other special tokens, ...), an object or null. They win
  /// over all others but `messages`.
  nlohmann::ordered_json extra;
  RenderOptions render{.now = {}, .limits = {}, .parseToolArguments = true};
};

/// Renders \p messages, an array of objects that each have a string `role`, with the variables
/// that Hugging Face's apply_chat_template gives: messages, tools, documents (None if there are
/// none), add_generation_prompt, bos_token, eos_token and the extra ones.
///
/// A content of text parts ([{"type": "text", "text": ...}, ...]) is joined with newlines for
/// templates that take only strings. Texts of messages are data: nothing in them is ever read as
/// template code.
Result<std::string> applyChatTemplate(const ChatTemplate &chatTemplate,
                                      const nlohmann::ordered_json &messages,
                                      const ApplyOptions &options = {});

} // namespace llmrt

#endif // LLMRT_TEXT_CHAT_APPLYCHATTEMPLATE_H
