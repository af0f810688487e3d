#include "runtime/engine/MaskWorker.h"

#include "runtime/decode/grammar/GrammarMatcher.h"

namespace llmrt {

MaskWorker::MaskWorker(int64_t maxSequences) { jobs_.reserve(static_cast<size_t>(maxSequences)); }

MaskWorker::~MaskWorker() {
  if (!thread_.joinable())
    return;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void MaskWorker::start(std::span<const Chunk> chunks) {
  jobs_.clear();
  for (const Chunk &chunk : chunks)
    if (chunk.samples && chunk.sequence->grammar)
      jobs_.push_back({chunk.sequence->grammar.get(),
                       std::span(chunk.sequence->draft).first(static_cast<size_t>(chunk.drafted))});
  if (jobs_.empty())
    return;
  if (!thread_.joinable())
    thread_ = std::thread([this] { run(); });
  {
    std::lock_guard lock(mutex_);
    busy_ = true;
  }
  changed_.notify_all();
}

bool MaskWorker::finish() {
  if (jobs_.empty())
    return false;
  std::unique_lock lock(mutex_);
  bool late = busy_;
  changed_.wait(lock, [this] { return !busy_; });
  return late;
}

void MaskWorker::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return busy_ || stopping_; });
    if (stopping_)
      return;
    lock.unlock();
    for (const Job &job : jobs_)
      job.matcher->prepare(job.drafted);
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

} // namespace llmrt
