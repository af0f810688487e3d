//===- ThreadPool.h - one parallel region a step ----------------------------===//
//
// A step is a list of phases (commands), each with a number of tasks; a phase starts when every
// task of the one before is done. What is waited for is the *tasks*, never the threads: a thread
// that the system took off its CPU holds up nobody unless it sleeps inside a task, and joins
// whatever phase is current when it comes back. That is what keeps a step fast beside a busy
// neighbour, where a barrier of threads would lose a scheduler's slice a phase.
//
// Tasks are handed out in contiguous ranges that shrink as a phase nears its end (guided
// self-scheduling, Polychronopoulos and Kuck 1987), so cores of unequal speed end together. Which
// thread runs which task never decides a result.
//
// One 64-bit word holds [region | phase | next task]. A range is taken by compare-and-swap on that
// word, so a late thread with an old word takes nothing. Whoever finishes the last task of a phase
// publishes the next one. Waiting is a bounded spin, then a futex.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_DEVICE_CPU_THREADPOOL_H
#define LLMRT_DEVICE_CPU_THREADPOOL_H

#include "runtime/support/Status.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

namespace llmrt {

class ThreadPool {
public:
  /// Runs tasks [begin, end) of \p phase on thread \p thread (0 is the caller of run).
  using Task = void (*)(void *context, uint32_t phase, int64_t begin, int64_t end, unsigned thread);

  /// Limits that follow from the word's fields.
  static constexpr int64_t maxTasks = (int64_t(1) << 24) - 1;
  static constexpr uint32_t maxPhases = (1u << 20) - 2;

  /// \p threads counts the calling thread too, and is at least 1; \p phases is the most phases a
  /// region will have (nothing is allocated later).
  static Result<std::unique_ptr<ThreadPool>> create(unsigned threads, uint32_t phases);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  unsigned threads() const { return threadCount_; }

  /// Runs all phases in order and returns when the last task is done. \p taskCounts has one number
  /// a phase, each from 0 to maxTasks. One caller at a time.
  void run(std::span<const int64_t> taskCounts, Task task, void *context);

private:
  ThreadPool(unsigned threads, uint32_t phases);
  void worker(unsigned thread);
  /// Works on region \p region until it is over.
  void work(uint64_t region, unsigned thread);
  void publish(uint64_t word);
  uint64_t waitForChange(uint64_t seen, int64_t spinNanoseconds);
  /// The first phase from \p phase on that has tasks, or regionOver.
  uint32_t firstBusy(uint32_t phase) const;

  static constexpr int nextBits = 24, phaseBits = 20;
  /// The phase of a word between two regions. No phase count equals it, so that a late thread
  /// can't mistake the end of one region for a phase of the next.
  static constexpr uint32_t regionOver = (1u << phaseBits) - 1;
  static uint64_t makeWord(uint64_t region, uint32_t phase, uint64_t next) {
    return (region << (nextBits + phaseBits)) | (uint64_t(phase) << nextBits) | next;
  }
  static uint64_t regionOf(uint64_t word) { return word >> (nextBits + phaseBits); }
  static uint32_t phaseOf(uint64_t word) {
    return uint32_t(word >> nextBits) & ((1u << phaseBits) - 1);
  }
  static int64_t nextOf(uint64_t word) { return int64_t(word & ((1u << nextBits) - 1)); }

  const unsigned threadCount_;
  [[maybe_unused]] const uint32_t phaseCapacity_;
  // Written between regions only; atomic because a late thread may still look (and then fails its
  // compare-and-swap).
  std::unique_ptr<std::atomic<uint32_t>[]> counts_;
  std::atomic<uint32_t> phases_{0};
  std::atomic<Task> task_{nullptr};
  std::atomic<void *> context_{nullptr};
  std::vector<std::thread> workers_;

  alignas(64) std::atomic<uint64_t> word_{makeWord(0, regionOver, 0)};
  alignas(64) std::atomic<int64_t> done_{0};
  alignas(64) std::atomic<uint32_t> wake_{0}; ///< the futex: changes when sleepers must look
  std::atomic<uint32_t> sleepers_{0};
  std::atomic<bool> stop_{false};
};

} // namespace llmrt

#endif // LLMRT_DEVICE_CPU_THREADPOOL_H
