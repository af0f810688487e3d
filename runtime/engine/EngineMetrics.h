//===- EngineMetrics.h - what an engine has done and is doing ---------------===//
//
// Counters are written by the engine's thread and may be read from any thread at any time; each
// number is right for itself, the set is not one instant's.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_ENGINE_ENGINEMETRICS_H
#define LLMRT_ENGINE_ENGINEMETRICS_H

#include "runtime/plan/KvGroups.h"
#include "runtime/support/SlowFallback.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace llmrt {

/// One number that one thread writes and others read.
template <typename T> class Meter {
public:
  void set(T value) { value_.store(value, std::memory_order_relaxed); }
  void add(T value) { set(get() + value); }
  T get() const { return value_.load(std::memory_order_relaxed); }
  operator T() const { return get(); }

private:
  std::atomic<T> value_{};
};

struct EngineMetrics {
  // Now.
  Meter<int64_t> running, waiting; ///< sequences; each choice of a request is one
  Meter<int64_t> kvBlocks;         ///< of the pool
  Meter<int64_t> kvBlocksUsed;     ///< held by sequences; cached ones that nobody uses are free
  /// The same of each group of layers with a narrower window, the widest first; 0: no such group.
  std::array<Meter<int64_t>, maxKvGroups - 1> windowBlocks, windowBlocksUsed;
  std::array<Meter<int64_t>, maxKvGroups - 1> windowTokens; ///< how far they look back
  /// Bytes of all those blocks, of all groups, and how many of them have tokens in them; shared
  /// blocks count once for each holder.
  Meter<int64_t> kvBytesHeld, kvBytesLive;
  Meter<int64_t> blocksCached; ///< kept for later requests, used by nobody now

  // Since the engine was made.
  Meter<int64_t> prefixQueries, prefixHits; ///< prompt tokens looked up, found
  Meter<int64_t> promptTokens, generationTokens;
  Meter<int64_t> preemptions, swaps; ///< sequences that gave up their blocks; those by swap
  Meter<int64_t> queueRefusals;
  Meter<int64_t> drafts, draftTokens, acceptedTokens; ///< of speculation: windows, tokens in them
  std::array<Meter<int64_t>, 5> finished;             ///< answers by FinishReason
  Meter<int64_t> steps, failedSteps;
  Meter<double> stepSeconds; ///< time in the device
  Meter<double>
      predictedStepSeconds; ///< what the executor predicted for the same steps; 0: nothing
  /// Allocations inside steps that only decode, as \c EngineLimits::allocationCount counts them.
  Meter<int64_t> decodeAllocations;
  std::array<Meter<int64_t>, slowFallbackKinds> slowFallbacks; ///< by SlowFallback
  /// When the last step was done, in steady_clock's ticks; 0: none yet.
  Meter<int64_t> lastStep;

  /// The share of the pool that sequences hold.
  double kvUsage() const {
    return kvBlocks > 0 ? static_cast<double>(kvBlocksUsed) / static_cast<double>(kvBlocks) : 0;
  }
  /// Of the memory that sequences hold, the share with live tokens in it.
  double kvOccupancy() const {
    return kvBytesHeld > 0 ? static_cast<double>(kvBytesLive) / static_cast<double>(kvBytesHeld)
                           : 1;
  }
  /// Measured over predicted time of all steps; 0 where nothing is predicted.
  double stepTimeRatio() const {
    return predictedStepSeconds > 0 ? stepSeconds / predictedStepSeconds : 0;
  }
};

} // namespace llmrt

#endif // LLMRT_ENGINE_ENGINEMETRICS_H
