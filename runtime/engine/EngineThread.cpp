#include "runtime/engine/EngineThread.h"

namespace llmrt {

EngineThread::EngineThread(std::unique_ptr<Engine> engine)
    : engine_(std::move(engine)), thread_([this] { run(); }) {}

EngineThread::~EngineThread() {
  refuse();
  engine_->cancel(Engine::allRequests);
  {
    std::lock_guard lock(mutex_);
    woken_ = stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void EngineThread::wake() {
  {
    std::lock_guard lock(mutex_);
    woken_ = true;
    idle_ = false;
  }
  changed_.notify_all();
}

void EngineThread::run() {
  for (;;) {
    while (engine_->busy()) {
      stepStart_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
      (void)engine_->step(); // its requests heard of a failure
      stepStart_.store(0, std::memory_order_relaxed);
    }
    std::unique_lock lock(mutex_);
    if (!woken_) {
      if (stopping_)
        return;
      idle_ = true;
      changed_.notify_all();
      changed_.wait(lock, [this] { return woken_; });
    }
    woken_ = false;
  }
}

Result<RequestId> EngineThread::submit(RequestOptions options) {
  std::shared_lock lock(gate_);
  if (refusing_)
    return Status(StatusCode::Unavailable, "the engine is shutting down and takes no requests");
  Result<RequestId> id = engine_->add(std::move(options));
  if (id)
    wake();
  return id;
}

void EngineThread::cancel(RequestId id) {
  engine_->cancel(id);
  wake();
}

void EngineThread::refuse() {
  std::unique_lock lock(gate_);
  refusing_ = true;
}

void EngineThread::drain() {
  refuse();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return idle_; });
}

std::chrono::nanoseconds EngineThread::stepAge() const {
  int64_t start = stepStart_.load(std::memory_order_relaxed);
  return start == 0 ? std::chrono::nanoseconds(0)
                    : Clock::now() - Clock::time_point(Clock::duration(start));
}

} // namespace llmrt
