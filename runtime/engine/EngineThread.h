//===- EngineThread.h - an engine with a thread of its own ------------------===//
//
// For programs whose threads submit requests and go on: a server, an application with a user
// interface. All functions may be called from any thread. Listeners hear on the engine's thread and
// must not wait for it; they may submit and cancel.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_ENGINE_ENGINETHREAD_H
#define LLMRT_ENGINE_ENGINETHREAD_H

#include "runtime/engine/Engine.h"

#include <condition_variable>
#include <shared_mutex>
#include <thread>

namespace llmrt {

class EngineThread {
public:
  explicit EngineThread(std::unique_ptr<Engine> engine);
  /// Ends what is left as cancelled; the listeners still hear of it.
  ~EngineThread();
  EngineThread(const EngineThread &) = delete;

  /// Engine::add; StatusCode::Unavailable after drain() or in the destructor.
  Result<RequestId> submit(RequestOptions options);
  void cancel(RequestId id);
  /// Takes no more requests, and returns when those that were taken have ended. Not from a
  /// listener.
  void drain();
  /// The same without waiting.
  void refuse();

  const EngineMetrics &metrics() const { return engine_->metrics(); }
  const ModelShape &shape() const { return engine_->shape(); }
  const EngineLimits &limits() const { return engine_->limits(); }
  Status check(const RequestOptions &options) const { return engine_->check(options); }
  /// How long the step that runs now has been running; zero between steps. A step that takes many
  /// times what others took is stuck.
  std::chrono::nanoseconds stepAge() const;

private:
  using Clock = std::chrono::steady_clock;
  void run();
  void wake();

  std::unique_ptr<Engine> engine_;
  std::shared_mutex gate_; ///< shared while a request is added
  bool refusing_ = false;  ///< under gate_
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false, idle_ = false, stopping_ = false; ///< under mutex_
  std::atomic<int64_t> stepStart_{0};                    ///< of Clock; 0: between steps
  std::thread thread_;
};

} // namespace llmrt

#endif // LLMRT_ENGINE_ENGINETHREAD_H
