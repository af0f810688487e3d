//===- EngineLoop.h - the thread that owns the engine -----------------------===//
//
// Requests come from any thread through a mailbox, which the loop empties between steps; events go
// to listeners on the loop's thread. The queue is bounded by tickets: one a sequence, taken before
// any work is done for it.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_SERVER_ENGINELOOP_H
#define LLMRT_SERVER_ENGINELOOP_H

#include "runtime/engine/Engine.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace llmrt::server {

class EngineLoop {
public:
  using Clock = std::chrono::steady_clock;

  /// Sequences that may be in the engine: those that run at a time and \p maxQueued more.
  EngineLoop(std::unique_ptr<Engine> engine, uint32_t maxQueued, std::chrono::seconds stepTimeout);
  ~EngineLoop() { stop(); }
  /// Cancels what is left and ends the thread.
  void stop();

  /// Room for sequences, given back when it goes; it may outlive the loop.
  class Ticket {
  public:
    Ticket() = default;
    Ticket(Ticket &&o) noexcept : held_(std::move(o.held_)), count_(o.count_) {}
    Ticket &operator=(Ticket &&o) noexcept {
      release();
      held_ = std::move(o.held_);
      count_ = o.count_;
      return *this;
    }
    ~Ticket() { release(); }
    explicit operator bool() const { return held_ != nullptr; }
    void release() {
      if (held_)
        held_->fetch_sub(count_, std::memory_order_relaxed);
      held_.reset();
    }

  private:
    friend class EngineLoop;
    Ticket(std::shared_ptr<std::atomic<uint32_t>> held, uint32_t count)
        : held_(std::move(held)), count_(count) {}
    std::shared_ptr<std::atomic<uint32_t>> held_;
    uint32_t count_ = 0;
  };
  /// An empty ticket if the queue is full.
  Ticket reserve(uint32_t sequences);
  uint32_t capacity() const { return capacity_; }

  /// Adds all requests or none. \p accepted is called on the loop's thread with their ids before
  /// any of their events, or with the reason why not. Listeners must live until their onFinish.
  void submit(std::vector<RequestOptions> requests,
              std::function<void(Result<std::vector<RequestId>>)> accepted);
  /// Ends requests before their next token; their listeners hear of it.
  void cancel(const std::vector<RequestId> &ids);
  /// Ends all requests, those in the mailbox too.
  void cancelAll();

  const EngineMetrics &metrics() const { return engine_->metrics(); }
  /// Sequences that hold tickets.
  uint32_t inFlight() const { return tickets_->load(std::memory_order_relaxed); }
  /// No iteration came to its end for the step timeout.
  bool stuck() const;
  /// Why the last step failed; empty if it did not.
  std::string failure() const;
  /// Seconds until a place in the queue is likely to be free, from how fast requests end.
  int retryAfter() const;

  const ModelShape &shape() const { return engine_->shape(); }
  const EngineLimits &limits() const { return engine_->limits(); }

private:
  struct Submission {
    std::vector<RequestOptions> requests;
    std::function<void(Result<std::vector<RequestId>>)> accepted;
  };
  void run();
  void takeSubmissions();
  void add(Submission submission);
  void beat() { heartbeat_.store(Clock::now().time_since_epoch().count()); }

  std::unique_ptr<Engine> engine_;
  const uint32_t capacity_;
  const std::chrono::seconds stepTimeout_;
  /// Sequences that hold tickets; shared with them.
  const std::shared_ptr<std::atomic<uint32_t>> tickets_ =
      std::make_shared<std::atomic<uint32_t>>(0);

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Submission> mailbox_;
  bool stop_ = false;
  std::string failure_;

  std::atomic<Clock::rep> heartbeat_{0};
  const Clock::time_point started_ = Clock::now();
  std::thread thread_;
};

} // namespace llmrt::server

#endif // LLMRT_SERVER_ENGINELOOP_H
