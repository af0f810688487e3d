//===- SamplingFields.h - the fields that all generating endpoints share ----===//
#ifndef LLMRT_SERVER_SAMPLINGFIELDS_H
#define LLMRT_SERVER_SAMPLINGFIELDS_H

#include "runtime/server/CompletionAnswer.h"
#include "runtime/server/Fields.h"
#include "runtime/server/GenerationRequest.h"
#include "runtime/server/Served.h"

namespace llmrt::server {

/// The model that the request names, which must be served: 404 otherwise.
void readModel(Fields &fields, const Served &served);
/// Temperature, penalties, filters, seed, stops, n, ...: everything that means the same in
/// completions and chats. The length limit is the endpoint's own.
void readSampling(Fields &fields, const Served &served, GenerationRequest &request);
/// For endpoints whose answers are one text.
void refuseChoices(Fields &fields, const GenerationRequest &request);
/// stream and stream_options.
void readStream(Fields &fields, GenerationRequest &request, AnswerHead &head);
/// Refuses fields that are known and not honoured, unless their value changes nothing. The names
/// that nobody knows are returned, for the log.
std::vector<std::string> checkUnread(Fields &fields);

} // namespace llmrt::server

#endif // LLMRT_SERVER_SAMPLINGFIELDS_H
