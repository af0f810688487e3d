// Engines and requests of the C API.
#include "runtime/api/Handles.h"
#include "runtime/engine/DeviceEngine.h"
#include "runtime/engine/StreamSink.h"

#include <algorithm>

using namespace llmrt;
using namespace llmrt::capi;

namespace llmrt::capi {

bool ApiRequest::onToken(const TokenEvent &event) {
  last_ = Clock::now();
  if (event.index == 0)
    first_ = last_;
  bool goOn = true;
  if (options_.on_token) {
    static_assert(sizeof(TokenLogprob) == sizeof(llmrt_token_logprob));
    llmrt_token token = {};
    token.request = event.request;
    token.index = event.index;
    token.id = event.token.id;
    token.logprob = event.token.logprob;
    llmrt_token_logprob top[maxLogprobs];
    for (int32_t i = 0; i < event.token.topCount; ++i)
      top[i] = {event.token.top[size_t(i)].id, event.token.top[size_t(i)].logprob};
    token.top = event.token.topCount ? top : nullptr;
    token.top_count = static_cast<size_t>(event.token.topCount);
    goOn = options_.on_token(options_.user, &token) == 0;
  }
  return giveText(event.text) && goOn;
}

void ApiRequest::onFinish(const FinishEvent &event) {
  auto seconds = [](Clock::duration d) { return std::chrono::duration<double>(d).count(); };
  giveText(event.text);
  status_ = event.status;
  stopString_ = event.stopString;
  result_.request = event.request;
  result_.reason = static_cast<llmrt_finish_reason>(event.reason);
  result_.status = static_cast<llmrt_status>(event.status.code());
  result_.stop_string = stopString_.empty() ? nullptr : stopString_.c_str();
  result_.output_tokens = event.outputTokens;
  result_.prefill_seconds = seconds((event.outputTokens ? first_ : Clock::now()) - start_);
  result_.decode_seconds = event.outputTokens ? seconds(last_ - first_) : 0;
  if (options_.on_finish)
    options_.on_finish(options_.user, &result_);
}

} // namespace llmrt::capi

namespace {

/// Holds an engine for one call.
class EngineLock {
public:
  explicit EngineLock(llmrt_engine *engine) : engine_(engine) {
    locked_ = !engine->inUse.exchange(true, std::memory_order_acquire);
  }
  ~EngineLock() {
    if (locked_)
      engine_->inUse.store(false, std::memory_order_release);
  }
  EngineLock(const EngineLock &) = delete;
  Status status() const {
    return locked_ ? Status::ok()
                   : invalidArgument("the engine is in use by another call; an engine belongs to "
                                     "one thread at a time, and its callbacks may only cancel");
  }

private:
  llmrt_engine *engine_;
  bool locked_;
};

Status missing(const char *what) { return invalidArgument(std::string(what) + " is NULL"); }

llmrt_generate_options defaultOptions(const llmrt_plan *plan) {
  SamplingParams sampling = plan ? plan->model->samplingDefaults() : SamplingParams();
  llmrt_generate_options options = {};
  options.size = sizeof(options);
  options.max_new_tokens = -1;
  options.temperature = sampling.temperature;
  options.top_k = sampling.topK;
  options.top_p = sampling.topP;
  options.min_p = sampling.minP;
  options.repetition_penalty = sampling.repetitionPenalty;
  options.logprobs = -1;
  return options;
}

Status requestOptions(const Model &model, const llmrt_generate_options &o, const int32_t *prompt,
                      size_t count, RequestOptions &request) {
  request.prompt.assign(prompt, prompt + count);
  request.maxNewTokens = o.max_new_tokens;
  SamplingParams &s = request.sampling;
  s.temperature = o.temperature;
  s.topK = o.top_k;
  s.topP = o.top_p;
  s.minP = o.min_p;
  s.repetitionPenalty = o.repetition_penalty;
  s.presencePenalty = o.presence_penalty;
  s.frequencyPenalty = o.frequency_penalty;
  s.seed = o.seed;
  s.logprobs = o.logprobs;
  LLMRT_ASSIGN_OR_RETURN(request.endIds, model.endIds());
  request.ignoreEnd = o.ignore_eos != 0;
  if ((o.stop_id_count && !o.stop_ids) || (o.stop_string_count && !o.stop_strings))
    return missing("an array of stops");
  request.stopIds.assign(o.stop_ids, o.stop_ids + o.stop_id_count);
  std::vector<std::string> stops;
  for (size_t i = 0; i < o.stop_string_count; ++i) {
    if (!o.stop_strings[i])
      return missing("a stop string");
    stops.push_back(o.stop_strings[i]);
  }
  if (o.on_text || !stops.empty()) {
    LLMRT_ASSIGN_OR_RETURN(auto tokenizer, model.tokenizer());
    LLMRT_ASSIGN_OR_RETURN(request.text, StreamSink::create(tokenizer, std::move(stops)));
  }
  return Status::ok();
}

/// Queues a request; the engine is locked.
Result<ApiRequest *> submit(llmrt_engine &engine, const int32_t *prompt, size_t count,
                            const llmrt_generate_options *given, RequestId &id) {
  if (!prompt && count > 0)
    return missing("prompt");
  llmrt_plan plan{engine.model};
  llmrt_generate_options options = defaultOptions(&plan);
  LLMRT_RETURN_IF_ERROR(readOptions(given, options, "llmrt_generate_options"));
  RequestOptions request;
  LLMRT_RETURN_IF_ERROR(requestOptions(*engine.model, options, prompt, count, request));
  auto listener = std::make_unique<ApiRequest>(options, static_cast<int64_t>(count));
  request.listener = listener.get();
  engine.requests.push_back(std::move(listener));
  Result<RequestId> added = engine.engine->add(std::move(request));
  if (!added) {
    engine.requests.pop_back();
    return added.status();
  }
  id = *added;
  return engine.requests.back().get();
}

/// Requests that ended are kept until the engine is used again, for their results' strings.
void forgetFinished(llmrt_engine &engine) {
  std::erase_if(engine.requests, [](const auto &r) { return r->finished(); });
}

} // namespace

extern "C" {

llmrt_status llmrt_engine_create(const llmrt_plan *plan, const llmrt_engine_options *options,
                                 llmrt_engine **engine) {
  return guarded([&]() -> Status {
    if (!plan || !engine)
      return missing(plan ? "engine" : "plan");
    *engine = nullptr;
    llmrt_engine_options read = {};
    LLMRT_RETURN_IF_ERROR(readOptions(options, read, "llmrt_engine_options"));
    if (read.kv_tokens > static_cast<uint64_t>(INT64_MAX))
      return invalidArgument("kv_tokens is " + std::to_string(read.kv_tokens));
    EngineOptions chosen;
    LLMRT_ASSIGN_OR_RETURN(chosen.device, parseDevice(read.device ? read.device : ""));
    chosen.threads = read.threads;
    chosen.maxBatchedTokens = read.max_batched_tokens;
    chosen.maxSequences = read.max_sequences;
    chosen.blockTokens = read.block_tokens;
    chosen.kvTokens = static_cast<int64_t>(read.kv_tokens);
    LLMRT_ASSIGN_OR_RETURN(chosen.sampledVocabulary, plan->model->sampledVocabulary());
    LLMRT_ASSIGN_OR_RETURN(auto made, createEngine(plan->model->plan(), chosen));
    auto handle = std::make_unique<llmrt_engine>();
    handle->model = plan->model;
    handle->engine = std::move(made);
    *engine = handle.release();
    return Status::ok();
  });
}

void llmrt_engine_destroy(llmrt_engine *engine) { delete engine; }

void llmrt_generate_options_init(const llmrt_plan *plan, llmrt_generate_options *options,
                                 size_t size) {
  if (!options || size < sizeof(size_t))
    return;
  llmrt_generate_options defaults = defaultOptions(plan);
  std::memset(static_cast<void *>(options), 0, size);
  std::memcpy(static_cast<void *>(options), &defaults, std::min(size, sizeof(defaults)));
  options->size = size;
}

llmrt_status llmrt_generate(llmrt_engine *engine, const int32_t *prompt, size_t count,
                            const llmrt_generate_options *options, llmrt_result *result) {
  return guarded([&]() -> Status {
    if (!engine)
      return missing("engine");
    if (result && result->size < sizeof(size_t))
      return invalidArgument("llmrt_result.size is not set; it must be sizeof(llmrt_result)");
    EngineLock lock(engine);
    LLMRT_RETURN_IF_ERROR(lock.status());
    forgetFinished(*engine);
    RequestId id = 0;
    LLMRT_ASSIGN_OR_RETURN(ApiRequest * request, submit(*engine, prompt, count, options, id));
    while (!request->finished())
      (void)engine->engine->step(); // a failure of the step is one of its requests, too
    if (result) {
      size_t size = result->size;
      std::memcpy(static_cast<void *>(result), &request->result(),
                  std::min(size, sizeof(llmrt_result)));
      result->size = size;
    }
    if (request->result().reason == LLMRT_FINISH_CANCELLED)
      return Status(StatusCode::Cancelled, "the request was cancelled");
    return request->status();
  });
}

llmrt_status llmrt_submit(llmrt_engine *engine, const int32_t *prompt, size_t count,
                          const llmrt_generate_options *options, uint64_t *request) {
  return guarded([&]() -> Status {
    if (!engine)
      return missing("engine");
    EngineLock lock(engine);
    LLMRT_RETURN_IF_ERROR(lock.status());
    forgetFinished(*engine);
    RequestId id = 0;
    Result<ApiRequest *> submitted = submit(*engine, prompt, count, options, id);
    if (submitted && request)
      *request = id;
    return submitted.status();
  });
}

llmrt_status llmrt_step(llmrt_engine *engine, int *busy) {
  return guarded([&]() -> Status {
    if (!engine)
      return missing("engine");
    EngineLock lock(engine);
    LLMRT_RETURN_IF_ERROR(lock.status());
    forgetFinished(*engine);
    Status status = engine->engine->busy() ? engine->engine->step() : Status::ok();
    if (busy)
      *busy = engine->engine->busy();
    return status;
  });
}

llmrt_status llmrt_cancel(llmrt_engine *engine, uint64_t request) {
  return guarded([&]() -> Status {
    if (!engine)
      return missing("engine");
    engine->engine->cancel(request);
    return Status::ok();
  });
}

} // extern "C"
