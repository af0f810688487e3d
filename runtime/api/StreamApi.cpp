// Requests of the C API whose events are fetched.
#include "runtime/api/Handles.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>

using namespace llmrt;
using namespace llmrt::capi;

namespace {

struct Event {
  llmrt_event_kind kind = LLMRT_EVENT_NONE;
  llmrt_token token = {};
  std::array<llmrt_token_logprob, maxLogprobs> top;
  llmrt_result result = {};
  std::string text, stopString;
};

/// Between the engine's thread and the stream's.
class EventQueue final : public RequestListener {
public:
  bool onToken(const TokenEvent &event) override {
    Event e;
    e.kind = LLMRT_EVENT_TOKEN;
    e.token = tokenOf(event, e.top.data());
    e.text = event.text;
    return put(std::move(e), false);
  }
  void onFinish(const FinishEvent &event) override {
    Event e;
    e.kind = LLMRT_EVENT_FINISH;
    e.result = resultOf(event, e.stopString);
    e.text = event.text;
    std::shared_ptr<EventQueue> alive = self; // until this returns
    (void)put(std::move(e), event.last);
    if (event.last)
      self.reset(); // the engine won't call again
  }

  bool next(int timeoutMs, Event &event) {
    std::unique_lock lock(mutex_);
    auto ready = [this] { return !events_.empty() || ended_; };
    if (timeoutMs < 0)
      changed_.wait(lock, ready);
    else
      changed_.wait_for(lock, std::chrono::milliseconds(timeoutMs), ready);
    if (!events_.empty()) {
      event = std::move(events_.front());
      events_.pop_front();
    } else {
      event.kind = ended_ ? LLMRT_EVENT_END : LLMRT_EVENT_NONE;
    }
    return event.kind != LLMRT_EVENT_NONE;
  }
  void close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    events_.clear();
  }

  /// Held by the request until its end.
  std::shared_ptr<EventQueue> self;

private:
  bool put(Event event, bool last) {
    std::lock_guard lock(mutex_);
    if (!closed_)
      events_.push_back(std::move(event));
    ended_ = ended_ || last;
    changed_.notify_all();
    return !closed_;
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Event> events_;
  bool ended_ = false, closed_ = false;
};

} // namespace

struct llmrt_stream {
  llmrt_engine *engine;
  std::shared_ptr<EventQueue> queue;
  RequestId id = 0;
  Event event; ///< the last one given out
};

extern "C" {

llmrt_status llmrt_stream_open(llmrt_engine *engine, const int32_t *prompt, size_t count,
                               const llmrt_generate_options *given, int wantText,
                               llmrt_stream **stream) {
  return guarded([&]() -> Status {
    if (!engine || !stream)
      return missing(engine ? "stream" : "engine");
    *stream = nullptr;
    if (!engine->thread)
      return invalidArgument("streams need an engine that was started (llmrt_engine_start)");
    llmrt_plan plan{engine->model};
    llmrt_generate_options options = defaultOptions(&plan);
    LLMRT_RETURN_IF_ERROR(readOptions(given, options, "llmrt_generate_options"));
    if (options.on_token || options.on_text || options.on_choice_text || options.on_finish)
      return invalidArgument("a stream's events are fetched; its options have no callbacks");
    LLMRT_ASSIGN_OR_RETURN(RequestOptions request,
                           requestOf(*engine->model, options, prompt, count, wantText != 0));
    auto made = std::make_unique<llmrt_stream>();
    made->engine = engine;
    made->queue = std::make_shared<EventQueue>();
    made->queue->self = made->queue;
    request.listener = made->queue.get();
    Result<RequestId> id = engine->thread->submit(std::move(request));
    if (!id) {
      made->queue->self.reset();
      return id.status();
    }
    made->id = *id;
    *stream = made.release();
    return Status::ok();
  });
}

llmrt_status llmrt_stream_next(llmrt_stream *stream, int timeoutMs, llmrt_event *event) {
  return guarded([&]() -> Status {
    if (!stream || !event)
      return missing(stream ? "event" : "stream");
    if (event->size < sizeof(size_t))
      return invalidArgument("llmrt_event.size is not set; it must be sizeof(llmrt_event)");
    Event &e = stream->event;
    e = Event();
    (void)stream->queue->next(timeoutMs, e);
    llmrt_event out = {};
    out.size = event->size;
    out.kind = e.kind;
    out.token = e.token;
    out.token.top = e.token.top_count ? e.top.data() : nullptr; // they moved with the event
    out.result = e.result;
    out.result.stop_string = e.stopString.empty() ? nullptr : e.stopString.c_str();
    out.text = e.text.data();
    out.text_length = e.text.size();
    std::memcpy(static_cast<void *>(event), &out, std::min(event->size, sizeof(out)));
    return Status::ok();
  });
}

void llmrt_stream_close(llmrt_stream *stream) {
  if (!stream)
    return;
  stream->queue->close();
  stream->engine->thread->cancel(stream->id);
  delete stream;
}

} // extern "C"
