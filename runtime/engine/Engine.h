//===- Engine.h - runs many requests on one model ---------------------------===//
//
// One thread owns an engine and calls step() while busy(): take in what was added, admit,
// schedule, build the step, execute, sample, commit, tell the listeners. add(), cancel() and
// metrics() may be called from any thread. A step takes a lock only to take in new requests or
// cancellations and, but for text that a TextSink makes, allocates nothing while it decodes.
//
// Memory: a request that could never fit (context, KV pool) is refused by add() with the numbers.
// One that fits but not now waits. A running sequence takes blocks as it grows; when none is left,
// the one that is last in rank (least urgent priority, newest) gives up its own: they are dropped
// and computed again later, or moved to host memory and back. Neither changes its output by a bit,
// as a token's logits follow from the tokens before it and nothing else.
//
// Layers with narrower windows than others have blocks of their own (cache/WindowPool.h), in pools
// that suffice for whatever the main pool lets run (windowBlocks(), CpuEngine.h).
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_ENGINE_ENGINE_H
#define LLMRT_ENGINE_ENGINE_H

#include "runtime/cache/PrefixCache.h"
#include "runtime/device/Memory.h"
#include "runtime/device/StepExecutor.h"
#include "runtime/engine/EngineMetrics.h"
#include "runtime/engine/MaskWorker.h"
#include "runtime/engine/Scheduler.h"
#include "runtime/engine/Speculator.h"
#include "runtime/engine/StepBuilder.h"

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace llmrt {

/// What a sequence does that gives up its blocks.
enum class PreemptionMode {
  Auto,      ///< what takes less time, by the speeds seen so far; recompute without swapBlocks
  Recompute, ///< drop them; tokens are computed again, but for what the prefix cache still has
  Swap       ///< move them to host memory; recompute where that is full
};

struct EngineLimits {
  int64_t maxBatchedTokens = 512; ///< new tokens a step: the prefill chunk
  int64_t maxSequences = 1;       ///< running at a time
  int64_t blockTokens = 16;       ///< a multiple of LLMRT_KV_RUN
  int64_t kvBlocks = 0;           ///< of the pool, at least 1
  int64_t maxRows = 0;            ///< rows of logits a step; at least maxSequences
  int32_t sampledVocabulary = 0;  ///< ids that may be drawn: those that the tokenizer has
  /// Requests that may wait beside those that can start at once; more get StatusCode::QueueFull.
  /// 0: no limit.
  int64_t maxQueued = 0;
  bool prefixCaching = true;
  int64_t swapBlocks = 0; ///< room in host memory for preempted sequences
  PreemptionMode preemption = PreemptionMode::Auto;
  /// Counts the calling thread's allocations so far, for EngineMetrics::decodeAllocations. A
  /// program that wants the number gives one; the library replaces no allocator.
  int64_t (*allocationCount)() = nullptr;
  SpeculationLimits speculation = {}; ///< for the drafter, if there is one
  /// Blocks of each of ModelShape::kvGroups but the first, which has kvBlocks. Empty: all layers
  /// share blocks, which are free when they left the widest window.
  std::vector<int64_t> windowBlocks = {};
};

class Engine {
public:
  /// \p executor was made for steps of these limits.
  static Result<std::unique_ptr<Engine>> create(std::unique_ptr<StepExecutor> executor,
                                                const EngineLimits &limits,
                                                std::unique_ptr<Drafter> drafter = nullptr);
  ~Engine();

  /// Checks and queues a request. A failure says what would be right, and leaves others alone; a
  /// full queue is StatusCode::QueueFull. Any thread.
  Result<RequestId> add(RequestOptions options);
  /// The checks of add() alone: whether the request could run on an idle engine. Any thread.
  Status check(const RequestOptions &options) const;
  /// Work is left: running, waiting or just added requests.
  bool busy() const {
    return !running_.empty() || !waiting_.empty() || anyMail_.load(std::memory_order_acquire);
  }
  /// One iteration. A failure is of the engine itself; requests' failures go to their listeners.
  Status step();
  /// Ends a request, with all of its answers, before its next token; unknown ids are ignored. Any
  /// thread.
  void cancel(RequestId id);
  /// As an id for cancel(): every request there is. No request has it.
  static constexpr RequestId allRequests = 0;

  const EngineMetrics &metrics() const { return metrics_; }
  const ModelShape &shape() const { return executor_->shape(); }
  const EngineLimits &limits() const { return limits_; }
  /// Null: no speculation.
  const Speculator *speculator() const { return speculator_.get(); }
  /// Blocks that no sequence holds, those kept for later requests included.
  int32_t freeBlocks() const { return static_cast<int32_t>(cache_.available()); }
  size_t runningCount() const { return running_.size(); }
  size_t waitingCount() const { return waiting_.size(); }
  StepExecutor &executor() { return *executor_; }

private:
  Engine(std::unique_ptr<StepExecutor> executor, const EngineLimits &limits,
         std::unique_ptr<Drafter> drafter);
  int64_t blocksFor(int64_t tokens) const {
    return (tokens + limits_.blockTokens - 1) / limits_.blockTokens;
  }

  // EngineRequests.cpp: coming and going.
  Status checkPrompt(const RequestOptions &options) const;
  Status checkGrammar(const RequestOptions &options) const;
  Status checkChoices(const RequestOptions &options) const;
  Status checkBeams(const RequestOptions &options, int64_t limit) const;
  /// Tokens at which the request ends by length; an error if it can't fit.
  Result<int64_t> lengthLimit(const RequestOptions &options) const;
  std::unique_ptr<Sequence> makeSequence(std::shared_ptr<RequestState> request, int32_t choice,
                                         std::vector<int32_t> prompt, int64_t limit) const;
  bool takePlaceInQueue();
  void readMail();
  void cancelNamed(const std::vector<RequestId> &ids);
  void expire();
  void wait(std::unique_ptr<Sequence> sequence);

  // EngineMemory.cpp: who holds which block.
  void admit();
  bool admitFirst();
  void begin(std::unique_ptr<Sequence> sequence);
  Status restore(Sequence &sequence);
  /// Gives the sequences of chunks_ the blocks for their new tokens; preempts until that works.
  Status allocateBlocks();
  Status makeRoom(const Sequence &sequence, int64_t tokens, bool &fits);
  bool grow(Sequence &sequence, int64_t tokens);
  bool ownLastBlock(Sequence &sequence, Status &status);
  void preemptLast();
  void saveToHost(Sequence &sequence);
  void shareBlocks(const Sequence &from, Sequence &to);
  /// Bytes of a block in host memory, with those of all groups beside it.
  uint64_t hostBlockBytes() const;
  void freeHostBlocks(Sequence &sequence);
  /// Where its blocks are found in the prefix cache: tokens have other keys in long contexts.
  PrefixCache::Serial rootOf(const Sequence &sequence);
  /// The sequence has grown over ModelShape::shortContext.
  void enterLongContext(Sequence &sequence);
  void keepFullBlocks(Sequence &sequence);
  void slideWindow(Sequence &sequence);

  // EngineCommit.cpp: what came out of a step.
  /// A row of the step: its logits, unless the device drew its token.
  struct Row {
    const float *logits;
    int64_t width; ///< logits a row
    int64_t index;
    Row operator+(int64_t rows) const { return {logits + rows * width, width, index + rows}; }
  };
  /// Lets the device draw the tokens of \p rows rows of chunks_ that it can.
  void planDraws(RowDraws &draws, int64_t rows);
  /// Takes the results of \p chunk, whose rows start with \p first.
  void commit(const Chunk &chunk, Row first);
  void givePromptRows(Sequence &sequence, std::span<const float> logits);
  void fork(Sequence &sequence, Row row);
  /// Draws the next token from a row of logits, if the device has not, and commits it; returns it,
  /// or -1 after a failure.
  /// \p guess is the index of the guess that is verified, for the classical rule; -1: none.
  int32_t draw(Sequence &sequence, Row row, int64_t guess = -1);
  Result<SampledToken> drawnByDevice(const Sequence &sequence, int32_t token) const;
  /// Compares the guesses behind \p parent with the token that came; the one that is it, or
  /// DraftTree::root.
  int32_t followGuess(Sequence &sequence, int32_t parent, int32_t token);
  /// Moves the keys and values of a guess from one place of the sequence to another.
  void moveKv(const Sequence &sequence, int64_t from, int64_t to);
  /// Adds the drawn token and ends the sequence if that is due.
  void commitToken(Sequence &sequence, const SampledToken &token);
  // EngineBeams.cpp: beam search.
  static void beginBeams(RequestState &request, int64_t maxNewTokens);
  /// Reports what could follow; the last one of the live beams to do so moves all of them on.
  void commitBeam(Sequence &sequence, const float *row);
  void moveBeams(Sequence &sequence);
  void copyBeam(const Sequence &from, Sequence &to);
  void answerBeams(RequestState &request, const Sequence &sequence);
  /// The end of all answers, and of all beams.
  void finishBeams(Sequence &sequence, FinishReason reason, const Status &status);
  /// Tells the listener; the sequence goes with the next removeFinished().
  void finish(Sequence &sequence, FinishReason reason, Status status = {},
              std::string_view stopString = {});
  void finishRequest(const RequestState &request, FinishReason reason);
  void removeFinished();
  void measure();
  /// The device or the drafter failed: what runs ends with that.
  Status failStep(const Status &failure);

  std::unique_ptr<StepExecutor> executor_;
  EngineLimits limits_;
  PrefixCache cache_;
  BlockPool hostBlocks_;
  Memory hostMemory_;
  StepBuilder builder_;
  Sampler sampler_;
  MaskWorker maskWorker_;
  std::unique_ptr<Speculator> speculator_;         ///< null: no speculation
  std::deque<std::unique_ptr<Sequence>> waiting_;  ///< in order of rank
  std::vector<std::unique_ptr<Sequence>> running_; ///< in order of rank
  std::vector<Chunk> chunks_;
  std::vector<TokenLogprob> likeliest_; ///< of the beam at hand
  std::vector<BeamSearch::Candidate> beamCandidates_;
  bool anyFinished_ = false;
  int64_t withDeadline_ = 0;   ///< sequences
  double secondsPerToken_ = 0; ///< of prefill, a moving average
  EngineMetrics metrics_;
  SlowFallbackCounts fallbacks_{}; ///< but those that device and drafter count
  int64_t uncounted_ = 0;          ///< allocations of listeners and text in this step

  /// What other threads left for this one.
  std::atomic<bool> anyMail_{false};
  std::atomic<int64_t> queued_{0}; ///< requests that never ran
  std::atomic<RequestId> nextId_{1};
  std::mutex mailMutex_;
  std::vector<std::unique_ptr<Sequence>> added_;
  std::vector<RequestId> cancelled_;
};

} // namespace llmrt

#endif // LLMRT_ENGINE_ENGINE_H
