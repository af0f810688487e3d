//===- MaskWorker.h - grammars' masks, made while the device works ----------===//
#ifndef LLMRT_ENGINE_MASKWORKER_H
#define LLMRT_ENGINE_MASKWORKER_H

#include "runtime/engine/Scheduler.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace llmrt {

/// A thread that sleeps unless a step has sequences with a grammar. Between start() and finish() it
/// alone uses their matchers.
class MaskWorker {
public:
  explicit MaskWorker(int64_t maxSequences);
  ~MaskWorker();
  /// Begins with the masks that the rows of \p chunks will need.
  void start(std::span<const Chunk> chunks);
  /// Waits for them; false if they were done.
  bool finish();

private:
  struct Job {
    GrammarMatcher *matcher;
    std::span<const int32_t> drafted;
  };
  void run();

  std::vector<Job> jobs_;
  bool busy_ = false, stopping_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_; ///< started with the first job
};

} // namespace llmrt

#endif // LLMRT_ENGINE_MASKWORKER_H
