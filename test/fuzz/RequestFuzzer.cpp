//===- RequestFuzzer.cpp - any bytes as the body of a request -------------------===//
//
// The first byte chooses the endpoint, the rest is the body. Reading it must end in an error that
// OpenAI's clients understand, or in a request that the engine could be given, whose answer,
// streamed or whole, is well-formed JSON whatever tokens come.
//
//===----------------------------------------------------------------------===//
#include "runtime/server/ChatRequest.h"
#include "runtime/server/MessagesEndpoint.h"
#include "runtime/server/ResponsesEndpoint.h"
#include "runtime/server/TextEndpoints.h"
#include "test/unit/engine/ScriptedExecutor.h"
#include "test/unit/engine/TinyPlan.h"

#include <cstdlib>
#include <iostream>

using namespace llmrt;
using namespace llmrt::server;

namespace {

/// Stops the fuzzer, naming what is wrong.
void require(bool holds, const char *what) {
  if (holds)
    return;
  std::cerr << "RequestFuzzer: " << what << std::endl;
  std::abort();
}

template <typename T> T take(Result<T> result) {
  require(result.isOk(), "the set-up failed");
  return std::move(*result);
}

std::unique_ptr<Served> makeServed() {
  static Log log(std::cerr, Log::Level::Error, false);
  test::TinyPlanOptions plan;
  plan.tokenizer = true;
  plan.chatTemplate = "{% for m in messages %}{{ m.role }}{{ m.content or '' }}"
                      "{{ m.tool_calls | tojson if m.tool_calls else '' }}{% endfor %}"
                      "{% if tools %}<tool_call>{{ tools | tojson }}{% endif %}"
                      "{{ reasoning_effort }}</think>{{ documents }}";
  LoadedModel loaded;
  loaded.model = take(Model::fromPlan(test::tinyPlan(plan)));
  ModelShape shape;
  shape.vocabulary = test::tinyVocabulary;
  shape.maxContext = shape.maxTokens = 4096;
  shape.maxSequences = shape.maxRows = 8;
  shape.queryTile = 16;
  shape.kvBytesPerToken = 4;
  EngineLimits limits;
  limits.maxBatchedTokens = 4096;
  limits.maxSequences = limits.maxRows = 8;
  limits.kvBlocks = 256;
  limits.sampledVocabulary = test::tinyVocabulary;
  loaded.engine = take(Engine::create(
      std::make_unique<ScriptedExecutor>(shape, [](const std::vector<int32_t> &) { return 0; }),
      limits));
  return take(Served::create(std::move(loaded), ServerOptions{}, log));
}

void checkEvents(std::string_view events) {
  while (!events.empty()) {
    size_t end = events.find("\n\n");
    require(end != events.npos, "an event has no end");
    std::string_view event = events.substr(0, end);
    events.remove_prefix(end + 2);
    if (event.starts_with("event: "))
      event.remove_prefix(std::min(event.size(), event.find('\n') + 1));
    require(event.starts_with("data: "), "an event has no data");
    event.remove_prefix(6);
    require(event == "[DONE]" || Json::accept(event), "an event's data are not JSON");
  }
}

/// Answers with the bytes of the body itself, as tokens and as their text, cut anywhere.
void answer(PreparedRequest &prepared, std::string_view bytes, const Served &served) {
  const GenerationRequest &request = prepared.generation;
  require(!request.prompts.empty() && request.choices > 0, "a request without a prompt");
  for (const std::vector<int32_t> &prompt : request.prompts) {
    require(!prompt.empty(), "an empty prompt");
    for (int32_t id : prompt)
      require(id >= 0 && id < served.vocabulary, "a prompt's id is none of the model's");
  }
  Status valid = validate(request.sampling, served.vocabulary);
  require(valid.isOk(), valid.message().c_str());

  size_t choices = std::min<size_t>(request.prompts.size() * request.choices, 4);
  std::string events;
  Usage usage;
  prepared.answer->begin(events);
  for (size_t choice = 0; choice < choices; ++choice) {
    for (size_t at = 0; at < std::min<size_t>(bytes.size(), 60); at += 3) {
      SampledToken token;
      token.id = static_cast<unsigned char>(bytes[at]) % served.vocabulary;
      token.logprob = -static_cast<float>(at);
      token.topCount = std::max<int32_t>(request.sampling.logprobs, 0);
      for (int32_t i = 0; i < token.topCount; ++i)
        token.top[static_cast<size_t>(i)] = {i, -1.0f};
      ++usage.completionTokens;
      prepared.answer->token(choice, token, bytes.substr(at, 3), usage, events);
    }
    prepared.answer->finish(choice, FinishReason::Stop, "é", "", events);
  }
  if (prepared.answer->stream()) {
    prepared.answer->end(usage, events);
    checkEvents(events);
  } else {
    require(Json::accept(prepared.answer->whole(usage)), "an answer is not JSON");
  }
}

void checkError(const ApiError &error) {
  require(error.status >= 400 && error.status < 500, "a client's mistake is the server's fault");
  require(!error.message.empty(), "an error without a message");
  require(Json::accept(error.body()), "an error is not JSON");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const std::unique_ptr<Served> served = makeServed();
  if (size < 2)
    return 0;
  std::string body(reinterpret_cast<const char *>(data) + 1, size - 1);
  Result<JsonDocument> document = JsonDocument::parse(body);
  if (!document) {
    require(!document.status().message().empty(), "an error without a message");
    return 0;
  }
  JsonValue root = document->root();
  if (!root.isObject())
    return 0;
  using Prepare = std::variant<PreparedRequest, ApiError> (*)(JsonValue, const Served &);
  constexpr Prepare prepares[] = {prepareCompletion, prepareChat, prepareResponse, prepareMessages};
  using Compute = Computed (*)(JsonValue, const Served &);
  constexpr Compute computes[] = {tokenize, detokenize, applyTemplate, embeddings};
  size_t endpoint = size_t(data[0] - 'a') % (std::size(prepares) + std::size(computes));
  if (endpoint >= std::size(prepares)) {
    Computed computed = computes[endpoint - std::size(prepares)](root, *served);
    if (auto *error = std::get_if<ApiError>(&computed))
      checkError(*error);
    else
      require(Json::accept(dump(std::get<Json>(computed))), "an answer is not JSON");
    return 0;
  }
  std::variant<PreparedRequest, ApiError> prepared = prepares[endpoint](root, *served);
  if (auto *error = std::get_if<ApiError>(&prepared))
    checkError(*error);
  else
    answer(std::get<PreparedRequest>(prepared), body, *served);
  return 0;
}
