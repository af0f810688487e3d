//===- ResponsesEndpoint.h - /v1/responses ----------------------------------===//
#ifndef LLMRT_SERVER_RESPONSESENDPOINT_H
#define LLMRT_SERVER_RESPONSESENDPOINT_H

#include "runtime/server/CompletionRequest.h"

namespace llmrt::server {

/// Answers are not kept: `store` may only be false and previous_response_id is refused.
std::variant<PreparedRequest, ApiError> prepareResponse(JsonValue body, const Served &served);

} // namespace llmrt::server

#endif // LLMRT_SERVER_RESPONSESENDPOINT_H
