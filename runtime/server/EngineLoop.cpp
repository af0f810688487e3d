#include "runtime/server/EngineLoop.h"

#include <algorithm>
#include <cmath>

namespace llmrt::server {

EngineLoop::EngineLoop(std::unique_ptr<Engine> engine, uint32_t maxQueued,
                       std::chrono::seconds stepTimeout)
    : engine_(std::move(engine)),
      capacity_(static_cast<uint32_t>(engine_->limits().maxSequences) + maxQueued),
      stepTimeout_(stepTimeout) {
  beat();
  thread_ = std::thread([this] { run(); });
}

void EngineLoop::stop() {
  if (!thread_.joinable())
    return;
  cancelAll();
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

EngineLoop::Ticket EngineLoop::reserve(uint32_t sequences) {
  uint32_t held = tickets_->load(std::memory_order_relaxed);
  do {
    if (sequences > capacity_ - std::min(held, capacity_))
      return {};
  } while (!tickets_->compare_exchange_weak(held, held + sequences, std::memory_order_relaxed));
  return {tickets_, sequences};
}

void EngineLoop::submit(std::vector<RequestOptions> requests,
                        std::function<void(Result<std::vector<RequestId>>)> accepted) {
  {
    std::lock_guard lock(mutex_);
    mailbox_.push_back({std::move(requests), std::move(accepted)});
  }
  wake_.notify_one();
}

void EngineLoop::cancel(const std::vector<RequestId> &ids) {
  for (RequestId id : ids)
    engine_->cancel(id);
  wake_.notify_one();
}

void EngineLoop::cancelAll() {
  std::vector<Submission> dropped;
  {
    std::lock_guard lock(mutex_);
    dropped.swap(mailbox_);
  }
  for (Submission &submission : dropped)
    submission.accepted(Status(StatusCode::Cancelled, "the server is stopping"));
  engine_->cancel(Engine::allRequests);
  wake_.notify_one();
}

bool EngineLoop::stuck() const {
  auto last = Clock::time_point(Clock::duration(heartbeat_.load()));
  return Clock::now() - last > stepTimeout_;
}

std::string EngineLoop::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

int EngineLoop::retryAfter() const {
  double seconds = std::chrono::duration<double>(Clock::now() - started_).count();
  int64_t finished = 0;
  for (const auto &count : metrics().finished)
    finished += count;
  double perSecond = static_cast<double>(finished) / seconds;
  // One place is enough; whoever comes back finds others waiting as well, so wait for a few.
  double wait = perSecond > 0 ? std::ceil(4 / perSecond) : 10;
  return static_cast<int>(std::clamp(wait, 1.0, 60.0));
}

void EngineLoop::takeSubmissions() {
  std::vector<Submission> taken;
  {
    std::lock_guard lock(mutex_);
    taken.swap(mailbox_);
  }
  for (Submission &submission : taken)
    add(std::move(submission));
}

void EngineLoop::add(Submission submission) {
  std::vector<RequestId> ids;
  for (RequestOptions &request : submission.requests) {
    Result<RequestId> id = engine_->add(std::move(request));
    if (!id) {
      for (RequestId added : ids)
        engine_->cancel(added);
      return submission.accepted(id.status());
    }
    ids.push_back(*id);
  }
  submission.accepted(std::move(ids));
}

void EngineLoop::run() {
  while (true) {
    beat();
    takeSubmissions();
    if (engine_->busy()) {
      Status status = engine_->step();
      std::lock_guard lock(mutex_);
      failure_ = status.message();
      continue;
    }
    std::unique_lock lock(mutex_);
    if (!mailbox_.empty())
      continue;
    if (stop_)
      return;
    wake_.wait_for(lock, std::chrono::seconds(1));
  }
}

} // namespace llmrt::server
