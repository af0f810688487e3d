//===- TextEndpoints.h - endpoints that compute an answer without the engine ===//
#ifndef LLMRT_SERVER_TEXTENDPOINTS_H
#define LLMRT_SERVER_TEXTENDPOINTS_H

#include "runtime/server/Answer.h"
#include "runtime/server/Served.h"
#include "runtime/text/Json.h"

#include <variant>

namespace llmrt::server {

using Computed = std::variant<Json, ApiError>;

/// POST /tokenize: {"prompt"} (also "content") or {"messages"} to {"count", "max_model_len",
/// "tokens"}.
Computed tokenize(JsonValue body, const Served &served);
/// POST /detokenize: {"tokens"} to {"prompt"}.
Computed detokenize(JsonValue body, const Served &served);
/// POST /apply-template: {"messages", "tools"} to {"prompt"}.
Computed applyTemplate(JsonValue body, const Served &served);
/// POST /v1/embeddings: 400 where the model has no embeddings, which is every model so far.
Computed embeddings(JsonValue body, const Served &served);
/// GET /plan: what runs.
Json planJson(const Served &served);

} // namespace llmrt::server

#endif // LLMRT_SERVER_TEXTENDPOINTS_H
