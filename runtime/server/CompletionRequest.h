//===- CompletionRequest.h - reads a request to /v1/completions -------------===//
#ifndef LLMRT_SERVER_COMPLETIONREQUEST_H
#define LLMRT_SERVER_COMPLETIONREQUEST_H

#include "runtime/server/SamplingFields.h"

namespace llmrt::server {

/// A request that was checked, and what is needed to answer it.
struct PreparedRequest {
  GenerationRequest generation;
  std::unique_ptr<Answer> answer;
  std::vector<std::string> unknown; ///< fields that nobody knows
};

/// Reads, checks and tokenizes.
std::variant<PreparedRequest, ApiError> prepareCompletion(JsonValue body, const Served &served);

/// An id as "cmpl-..." for answers.
std::string newAnswerId(const char *prefix);

} // namespace llmrt::server

#endif // LLMRT_SERVER_COMPLETIONREQUEST_H
