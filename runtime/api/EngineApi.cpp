// Engines of the C API: calls of a request's life, by the caller's thread or the engine's own.
#include "runtime/api/Handles.h"
#include "runtime/engine/DeviceEngine.h"
#include "runtime/engine/SetSpeculation.h"

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <mutex>

using namespace llmrt;
using namespace llmrt::capi;

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

Result<llmrt_generate_options> readGenerateOptions(const llmrt_engine &engine,
                                                   const llmrt_generate_options *given) {
  llmrt_plan plan{engine.model};
  llmrt_generate_options options = defaultOptions(&plan);
  LLMRT_RETURN_IF_ERROR(readOptions(given, options, "llmrt_generate_options"));
  return options;
}

/// Queues a request; the engine is locked.
Result<ApiRequest *> submit(llmrt_engine &engine, const int32_t *prompt, size_t count,
                            const llmrt_generate_options *given, RequestId &id) {
  LLMRT_ASSIGN_OR_RETURN(llmrt_generate_options options, readGenerateOptions(engine, given));
  LLMRT_ASSIGN_OR_RETURN(RequestOptions request,
                         requestOf(*engine.model, options, prompt, count, false));
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

/// A request of a started engine: it goes with its last end.
class OwnRequest final : public ApiRequest {
public:
  using ApiRequest::ApiRequest;
  void onFinish(const FinishEvent &event) override {
    ApiRequest::onFinish(event);
    if (event.last)
      delete this;
  }
};

Status submitToThread(llmrt_engine &engine, const int32_t *prompt, size_t count,
                      const llmrt_generate_options *given, uint64_t *id) {
  LLMRT_ASSIGN_OR_RETURN(llmrt_generate_options options, readGenerateOptions(engine, given));
  LLMRT_ASSIGN_OR_RETURN(RequestOptions request,
                         requestOf(*engine.model, options, prompt, count, false));
  auto listener = std::make_unique<OwnRequest>(options, static_cast<int64_t>(count));
  request.listener = listener.get();
  Result<RequestId> added = engine.thread->submit(std::move(request));
  if (!added)
    return added.status();
  (void)listener.release();
  if (id)
    *id = *added;
  return Status::ok();
}

/// A request that a thread waits for.
class AwaitedRequest final : public RequestListener {
public:
  AwaitedRequest(const llmrt_generate_options &options, int64_t promptTokens)
      : request(options, promptTokens) {}
  bool onToken(const TokenEvent &event) override { return request.onToken(event); }
  void onFinish(const FinishEvent &event) override {
    std::lock_guard lock(mutex_);
    request.onFinish(event);
    if (event.last)
      ended_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return request.finished(); });
  }
  ApiRequest request;

private:
  std::mutex mutex_;
  std::condition_variable ended_;
};

Status giveResult(const ApiRequest &request, llmrt_result *result) {
  if (result) {
    size_t size = result->size;
    std::memcpy(static_cast<void *>(result), &request.result(),
                std::min(size, sizeof(llmrt_result)));
    result->size = size;
  }
  if (request.result().reason == LLMRT_FINISH_CANCELLED)
    return Status(StatusCode::Cancelled, "the request was cancelled");
  return request.status();
}

Status generateOnThread(llmrt_engine &engine, const int32_t *prompt, size_t count,
                        const llmrt_generate_options *given, llmrt_result *result) {
  LLMRT_ASSIGN_OR_RETURN(llmrt_generate_options options, readGenerateOptions(engine, given));
  LLMRT_ASSIGN_OR_RETURN(RequestOptions request,
                         requestOf(*engine.model, options, prompt, count, false));
  AwaitedRequest awaited(options, static_cast<int64_t>(count));
  request.listener = &awaited;
  LLMRT_ASSIGN_OR_RETURN([[maybe_unused]] RequestId id, engine.thread->submit(std::move(request)));
  awaited.wait();
  // A stop string lives until the engine is used again.
  if (result && result->size >= sizeof(size_t)) {
    Status status = giveResult(awaited.request, result);
    if (awaited.request.result().stop_string &&
        result->size > offsetof(llmrt_result, stop_string)) {
      thread_local std::string kept;
      kept = awaited.request.result().stop_string;
      result->stop_string = kept.c_str();
    }
    return status;
  }
  return giveResult(awaited.request, nullptr);
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
    chosen.maxQueued = read.max_queued;
    chosen.prefixCaching = read.no_prefix_caching == 0;
    if (read.swap_tokens > static_cast<uint64_t>(INT64_MAX) / 2)
      return invalidArgument("swap_tokens is " + std::to_string(read.swap_tokens));
    chosen.swapTokens = static_cast<int64_t>(read.swap_tokens);
    if (read.speculative_config)
      LLMRT_RETURN_IF_ERROR(setSpeculation(*plan->model, read.speculative_config, chosen));
    LLMRT_ASSIGN_OR_RETURN(chosen.sampledVocabulary, plan->model->sampledVocabulary());
    LLMRT_ASSIGN_OR_RETURN(auto made, createEngine(plan->model->plan(), chosen));
    auto handle = std::make_unique<llmrt_engine>();
    handle->model = plan->model;
    handle->metrics = &made->metrics();
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
    if (engine->thread)
      return generateOnThread(*engine, prompt, count, options, result);
    EngineLock lock(engine);
    LLMRT_RETURN_IF_ERROR(lock.status());
    forgetFinished(*engine);
    RequestId id = 0;
    LLMRT_ASSIGN_OR_RETURN(ApiRequest * request, submit(*engine, prompt, count, options, id));
    while (!request->finished())
      (void)engine->engine->step(); // a failure of the step is one of its requests, too
    return giveResult(*request, result);
  });
}

llmrt_status llmrt_submit(llmrt_engine *engine, const int32_t *prompt, size_t count,
                          const llmrt_generate_options *options, uint64_t *request) {
  return guarded([&]() -> Status {
    if (!engine)
      return missing("engine");
    if (engine->thread)
      return submitToThread(*engine, prompt, count, options, request);
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
    if (engine->thread)
      return invalidArgument("the engine was started: its own thread steps");
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
    if (engine->thread)
      engine->thread->cancel(request);
    else
      engine->engine->cancel(request);
    return Status::ok();
  });
}

llmrt_status llmrt_engine_start(llmrt_engine *engine) {
  return guarded([&]() -> Status {
    if (!engine)
      return missing("engine");
    if (engine->thread)
      return invalidArgument("the engine was started before");
    EngineLock lock(engine);
    LLMRT_RETURN_IF_ERROR(lock.status());
    if (engine->engine->busy())
      return invalidArgument("the engine has requests; start it before the first one");
    engine->thread = std::make_unique<EngineThread>(std::move(engine->engine));
    return Status::ok();
  });
}

llmrt_status llmrt_engine_drain(llmrt_engine *engine) {
  return guarded([&]() -> Status {
    if (!engine)
      return missing("engine");
    if (!engine->thread)
      return invalidArgument("the engine was not started; call llmrt_step until it isn't busy");
    engine->thread->drain();
    return Status::ok();
  });
}

llmrt_status llmrt_engine_get_metrics(const llmrt_engine *engine, llmrt_metrics *metrics) {
  return guarded([&]() -> Status {
    if (!engine || !metrics)
      return missing(engine ? "metrics" : "engine");
    if (metrics->size < sizeof(size_t))
      return invalidArgument("llmrt_metrics.size is not set; it must be sizeof(llmrt_metrics)");
    const EngineMetrics &m = *engine->metrics;
    auto finished = [&](FinishReason reason) { return m.finished[size_t(reason)].get(); };
    llmrt_metrics all = {};
    all.running = m.running;
    all.waiting = m.waiting;
    all.kv_usage = m.kvUsage();
    all.kv_occupancy = m.kvOccupancy();
    all.prefix_queries = m.prefixQueries;
    all.prefix_hits = m.prefixHits;
    all.prompt_tokens = m.promptTokens;
    all.generation_tokens = m.generationTokens;
    all.preemptions = m.preemptions;
    all.swaps = m.swaps;
    all.queue_refusals = m.queueRefusals;
    all.drafts = m.drafts;
    all.draft_tokens = m.draftTokens;
    all.accepted_tokens = m.acceptedTokens;
    all.finished_stop = finished(FinishReason::Stop);
    all.finished_length = finished(FinishReason::Length);
    all.finished_cancelled = finished(FinishReason::Cancelled);
    all.finished_error = finished(FinishReason::Error);
    all.steps = m.steps;
    all.step_seconds = m.stepSeconds;
    for (const auto &count : m.slowFallbacks)
      all.slow_fallbacks += count;
    all.size = metrics->size;
    std::memcpy(static_cast<void *>(metrics), &all, std::min(metrics->size, sizeof(all)));
    return Status::ok();
  });
}

} // extern "C"
