//===- ChatEncoder.h - a conversation to token ids, users' text kept text ---===//
//
// A chat template's output holds control tokens ("<|im_end|>"), which must become tokens, around
// messages, in which the same spelling must stay text: otherwise whoever writes a message could
// end it and speak as the system. So control tokens in messages are hidden from the template behind
// marks, and what the marks stand for is encoded apart, as plain text.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_ENGINE_CHATENCODER_H
#define LLMRT_ENGINE_CHATENCODER_H

#include "runtime/support/Status.h"
#include "runtime/text/Tokenizer.h"

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace llmrt {

struct ChatMessage {
  std::string role, content;
};

/// What a chat template is given, in the form of OpenAI's and Hugging Face's APIs.
struct Conversation {
  nlohmann::ordered_json messages;  ///< objects with a role and a content, tool calls, ...
  nlohmann::ordered_json tools;     ///< function schemas, or null
  nlohmann::ordered_json documents; ///< or null
  nlohmann::ordered_json extra;     ///< more variables of the template (`enable_thinking`), or null
  /// The prompt ends with the header of an assistant's answer; by default if the last message is
  /// not the assistant's.
  std::optional<bool> addGenerationPrompt;
};

class ChatEncoder {
public:
  using Render = std::function<Result<std::string>(const Conversation &)>;

  explicit ChatEncoder(std::shared_ptr<const Tokenizer> tokenizer);

  /// Renders \p conversation with \p render and encodes the result; nothing is put around it. All
  /// its texts and names are data.
  Result<std::vector<int32_t>> encode(Conversation conversation, const Render &render) const;

private:
  struct Hidden;
  void hide(std::string &text, Hidden &hidden) const;
  void hide(nlohmann::ordered_json &value, Hidden &hidden) const;
  /// The length of the longest control token spelled at \p at of \p text, or 0.
  size_t controlTokenAt(std::string_view text, size_t at) const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<std::string> controlTokens_; ///< the longest first
  bool begins_[256] = {};                  ///< first bytes of control tokens
};

} // namespace llmrt

#endif // LLMRT_ENGINE_CHATENCODER_H
