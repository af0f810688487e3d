//===- ChatRequest.h - reads a request to /v1/chat/completions --------------===//
#ifndef LLMRT_SERVER_CHATREQUEST_H
#define LLMRT_SERVER_CHATREQUEST_H

#include "runtime/server/ChatAnswer.h"
#include "runtime/server/CompletionRequest.h"

namespace llmrt::server {

/// Which tools an answer may call.
struct ToolChoice {
  enum class Mode { None, Auto, Required, Named } mode = Mode::None;
  std::string name;
};

/// A conversation, checked, in the form that templates take.
struct ChatInput {
  Conversation conversation;
  ToolChoice toolChoice;
};

/// messages: roles, contents (texts, or parts of text), tool calls.
void readMessages(Fields &fields, Conversation &conversation);
/// tools and tool_choice.
void readTools(Fields &fields, const Served &served, ChatInput &input);
/// How the model writes reasoning and calls, found in its template or told by the options.
MessageForm messageForm(const Served &served, const ChatInput &input,
                        const std::vector<int32_t> &prompt);

/// Checks what came from JSON in another form than OpenAI's chats: messages, and tools with the
/// choice among them (a JSON value as tool_choice has it). Each in \p input already, as chats have
/// it.
std::optional<ApiError> checkMessages(Json &messages);
std::optional<ApiError> checkTools(const Json &tools, const Json &choice, const Served &served,
                                   ChatInput &input);
/// Renders and tokenizes the conversation into the request's prompt.
std::optional<ApiError> encodeConversation(const Served &served, ChatInput &input,
                                           GenerationRequest &request, MessageForm &form);

std::variant<PreparedRequest, ApiError> prepareChat(JsonValue body, const Served &served);

} // namespace llmrt::server

#endif // LLMRT_SERVER_CHATREQUEST_H
