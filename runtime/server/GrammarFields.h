//===- GrammarFields.h - fields that say what form an answer must have ------===//
#ifndef LLMRT_SERVER_GRAMMARFIELDS_H
#define LLMRT_SERVER_GRAMMARFIELDS_H

#include "runtime/server/ChatRequest.h"

namespace llmrt::server {

/// Reads response_format (OpenAI), guided_json, guided_regex, guided_choice, guided_grammar and
/// structured_outputs (vLLM), grammar and json_schema (llama.cpp): one of them at most.
void readGrammar(Fields &fields, const Served &served, GenerationRequest &request);
/// `text.format` of /v1/responses, which is response_format without its inner object.
void readTextFormat(Fields &fields, const Served &served, GenerationRequest &request);
/// Calls that are forced: the answer is one JSON object {"name", "arguments"} of a tool that the
/// choice allows, with arguments of the tool's schema.
std::optional<ApiError> forceCall(const Json &tools, const ToolChoice &choice, const Served &served,
                                  GenerationRequest &request);

} // namespace llmrt::server

#endif // LLMRT_SERVER_GRAMMARFIELDS_H
