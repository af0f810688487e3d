//===- Engine.h - runs many requests on one model ---------------------------===//
//
// One thread owns an engine and calls step() while busy(): admit, schedule, build the step,
// execute, sample, commit, tell the listeners. cancel() may come from any thread. step() takes no
// lock and, but for text that a TextSink makes, allocates nothing.
//
// A request that could never fit (context, KV pool) is refused by add() with the numbers. One
// that fits but not now waits; it starts when the blocks of its longest course are set aside, so
// that no running request ever lacks one.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_ENGINE_ENGINE_H
#define LLMRT_ENGINE_ENGINE_H

#include "runtime/cache/BlockPool.h"
#include "runtime/device/StepExecutor.h"
#include "runtime/engine/Scheduler.h"
#include "runtime/engine/StepBuilder.h"

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace llmrt {

struct EngineLimits {
  int64_t maxBatchedTokens = 512; ///< new tokens a step: the prefill chunk
  int64_t maxSequences = 1;       ///< running at a time
  int64_t blockTokens = 16;       ///< a multiple of LLMRT_KV_RUN
  int64_t kvBlocks = 0;           ///< of the pool, at least 1
  int64_t maxRows = 0;            ///< rows of logits a step; at least maxSequences
  int32_t sampledVocabulary = 0;  ///< ids that may be drawn: those that the tokenizer has
};

class Engine {
public:
  /// \p executor was made for steps of these limits.
  static Result<std::unique_ptr<Engine>> create(std::unique_ptr<StepExecutor> executor,
                                                const EngineLimits &limits);
  ~Engine();

  /// Checks and queues a request. A failure says what would be right, and leaves others alone.
  Result<RequestId> add(RequestOptions options);
  /// Work is left: running or waiting requests.
  bool busy() const { return !running_.empty() || !waiting_.empty(); }
  /// One iteration. A failure is of the engine itself; requests' failures go to their listeners.
  Status step();
  /// Ends a request before its next token; unknown ids are ignored. Any thread.
  void cancel(RequestId id);
  /// As an id for cancel(): every request there is. No request has it.
  static constexpr RequestId allRequests = 0;

  const ModelShape &shape() const { return executor_->shape(); }
  const EngineLimits &limits() const { return limits_; }
  int32_t freeBlocks() const { return pool_.freeCount(); }
  size_t runningCount() const { return running_.size(); }
  size_t waitingCount() const { return waiting_.size(); }
  StepExecutor &executor() { return *executor_; }

private:
  Engine(std::unique_ptr<StepExecutor> executor, const EngineLimits &limits);
  Status checkPrompt(const RequestOptions &options) const;
  /// Tokens at which the request ends by length; an error if it can't fit.
  Result<int64_t> lengthLimit(const RequestOptions &options) const;
  int64_t blocksFor(int64_t tokens) const {
    return (tokens + limits_.blockTokens - 1) / limits_.blockTokens;
  }
  void applyCancellations();
  void admit();
  void allocateBlocks(std::span<const Chunk> chunks);
  /// Takes the results of \p chunk, whose rows of logits start at \p logits.
  void commit(const Chunk &chunk, const float *logits);
  /// Adds the drawn token and ends the sequence if that is due.
  void commitToken(Sequence &sequence, const SampledToken &token);
  /// Tells the listener; the sequence goes with the next removeFinished().
  void finish(Sequence &sequence, FinishReason reason, Status status = {},
              std::string_view stopString = {});
  void removeFinished();

  std::unique_ptr<StepExecutor> executor_;
  EngineLimits limits_;
  BlockPool pool_;
  StepBuilder builder_;
  Sampler sampler_;
  std::deque<std::unique_ptr<Sequence>> waiting_;
  std::vector<std::unique_ptr<Sequence>> running_; ///< in order of arrival
  std::vector<Chunk> chunks_;
  int64_t unreservedBlocks_ = 0;
  RequestId nextId_ = 1;

  std::atomic<bool> anyCancelled_{false};
  std::mutex cancelMutex_;
  std::vector<RequestId> cancelled_;
};

} // namespace llmrt

#endif // LLMRT_ENGINE_ENGINE_H
