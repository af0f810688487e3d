//===- MessagesEndpoint.h - /v1/messages, as Anthropic's API has it ---------===//
#ifndef LLMRT_SERVER_MESSAGESENDPOINT_H
#define LLMRT_SERVER_MESSAGESENDPOINT_H

#include "runtime/server/CompletionRequest.h"

namespace llmrt::server {

std::variant<PreparedRequest, ApiError> prepareMessages(JsonValue body, const Served &served);

} // namespace llmrt::server

#endif // LLMRT_SERVER_MESSAGESENDPOINT_H
