#include "runtime/engine/Engine.h"

#include <algorithm>
#include <string>

namespace llmrt {
namespace {

StepBudget budgetOf(const EngineLimits &limits) {
  return {limits.maxBatchedTokens, limits.maxSequences, limits.maxRows};
}

using Clock = RequestStats::Clock;

} // namespace

std::string_view finishReasonName(FinishReason reason) {
  switch (reason) {
  case FinishReason::None:
    return "";
  case FinishReason::Stop:
    return "stop";
  case FinishReason::Length:
    return "length";
  case FinishReason::Cancelled:
    return "cancelled";
  case FinishReason::Error:
    return "error";
  }
  return "";
}

Result<std::unique_ptr<Engine>> Engine::create(std::unique_ptr<StepExecutor> executor,
                                               const EngineLimits &limits,
                                               std::unique_ptr<Drafter> drafter) {
  const ModelShape &shape = executor->shape();
  auto within = [](int64_t value, int64_t low, int64_t high, const char *what) {
    return value >= low && value <= high
               ? Status::ok()
               : invalidArgument(std::string(what) + " is " + std::to_string(value) +
                                 "; it must be from " + std::to_string(low) + " to " +
                                 std::to_string(high));
  };
  LLMRT_RETURN_IF_ERROR(
      within(limits.maxBatchedTokens, 1, shape.maxTokens, "max-num-batched-tokens"));
  LLMRT_RETURN_IF_ERROR(within(limits.maxSequences, 1,
                               std::min(shape.maxSequences, limits.maxBatchedTokens),
                               "the number of sequences"));
  LLMRT_RETURN_IF_ERROR(within(limits.maxRows, limits.maxSequences,
                               std::min(shape.maxRows, limits.maxBatchedTokens),
                               "the number of logit rows"));
  LLMRT_RETURN_IF_ERROR(
      within(limits.sampledVocabulary, 1, shape.vocabulary, "the number of tokens to draw from"));
  if (limits.blockTokens <= 0 || limits.blockTokens % LLMRT_KV_RUN != 0 ||
      limits.blockTokens > 4096)
    return invalidArgument("block-size is " + std::to_string(limits.blockTokens) +
                           "; it must be a multiple of " + std::to_string(LLMRT_KV_RUN) +
                           " up to 4096");
  LLMRT_RETURN_IF_ERROR(within(limits.kvBlocks, 1, INT32_MAX, "the number of KV blocks"));
  LLMRT_RETURN_IF_ERROR(within(limits.swapBlocks, 0, INT32_MAX, "the number of swap blocks"));
  if (drafter)
    LLMRT_RETURN_IF_ERROR(
        within(limits.speculation.tokens, 1, maxGuesses, "num_speculative_tokens"));
  LLMRT_RETURN_IF_ERROR(within(limits.maxQueued, 0, INT64_MAX, "max-num-queued-reqs"));
  if (limits.windowBlocks.empty()) {
    LLMRT_RETURN_IF_ERROR(executor->createKvPool(limits.kvBlocks, limits.blockTokens));
  } else {
    if (limits.windowBlocks.size() + 1 != shape.kvGroups.size())
      return internalError("blocks of " + std::to_string(limits.windowBlocks.size() + 1) +
                           " KV groups for a model of " + std::to_string(shape.kvGroups.size()));
    std::vector<int64_t> blocks = {limits.kvBlocks};
    for (int64_t count : limits.windowBlocks) {
      LLMRT_RETURN_IF_ERROR(within(count, 1, INT32_MAX, "the number of KV blocks of a window"));
      blocks.push_back(count);
    }
    LLMRT_RETURN_IF_ERROR(executor->createKvPools(blocks, limits.blockTokens));
  }
  uint64_t blockBytes = executor->kvBlockBytes(), hostBytes = 0;
  if (limits.swapBlocks > 0 && blockBytes == 0)
    return unsupported("this device can't swap KV blocks to host memory");
  for (size_t i = 0; i < limits.windowBlocks.size(); ++i)
    blockBytes += executor->kvBlockBytes(static_cast<uint32_t>(i + 1));
  if (__builtin_mul_overflow(blockBytes, static_cast<uint64_t>(limits.swapBlocks), &hostBytes))
    return resourceExhausted("a swap space of " + std::to_string(limits.swapBlocks) +
                             " blocks is too big");
  std::unique_ptr<Engine> engine(new Engine(std::move(executor), limits, std::move(drafter)));
  if (hostBytes > 0) {
    LLMRT_ASSIGN_OR_RETURN(engine->hostMemory_, Memory::allocate(hostBytes, "the swap space"));
  }
  return engine;
}

Engine::Engine(std::unique_ptr<StepExecutor> executor, const EngineLimits &limits,
               std::unique_ptr<Drafter> drafter)
    : executor_(std::move(executor)), limits_(limits),
      cache_(static_cast<int32_t>(limits.kvBlocks), limits.blockTokens, limits.prefixCaching,
             WindowPool::make(executor_->shape().kvGroups, limits.windowBlocks, limits.kvBlocks,
                              limits.blockTokens)),
      hostBlocks_(static_cast<int32_t>(limits.swapBlocks)),
      builder_(budgetOf(limits), executor_->shape().queryTile, limits.blockTokens,
               std::min(limits.kvBlocks, blocksFor(executor_->shape().maxContext)),
               limits.windowBlocks.size()),
      sampler_(limits.sampledVocabulary), maskWorker_(limits.maxSequences) {
  running_.reserve(static_cast<size_t>(limits.maxSequences));
  chunks_.reserve(static_cast<size_t>(limits.maxSequences));
  metrics_.kvBlocks.set(limits.kvBlocks);
  for (size_t i = 0; i < limits.windowBlocks.size(); ++i)
    metrics_.windowBlocks[i].set(limits.windowBlocks[i]),
        metrics_.windowTokens[i].set(shape().kvGroups[i + 1].window);
  if (drafter && limits.speculation.tokens > 0) {
    SpeculationLimits speculation = limits.speculation;
    speculation.trees &= executor_->takesTrees() && !speculation.classical;
    speculator_ =
        std::make_unique<Speculator>(std::move(drafter), speculation, limits.maxSequences,
                                     limits.maxBatchedTokens, executor_->shape().shortContext);
  }
  measure();
}

Engine::~Engine() = default;

Status Engine::step() {
  readMail();
  if (withDeadline_ > 0)
    expire();
  admit();
  // Allocations count while nothing is admitted, added or in its prompt.
  bool decoding =
      std::all_of(running_.begin(), running_.end(), [](const auto &s) { return s->isDecoding(); });
  int64_t allocations = limits_.allocationCount ? limits_.allocationCount() : 0;
  uncounted_ = 0;

  if (speculator_)
    if (Status proposed = speculator_->propose(running_); !proposed)
      return failStep(proposed);
  StepBudget budget = budgetOf(limits_);
  budget.queryTile = shape().queryTile;
  scheduleStep(running_, budget, chunks_);
  Status allocated = allocateBlocks();
  if (chunks_.empty()) {
    // Beams that wait for one that has no place: they give way, the last ones first.
    if (!waiting_.empty() && !running_.empty() && running_.back()->parked)
      preemptLast();
    removeFinished();
    measure();
    return allocated;
  }
  LlmrtStep &step = builder_.build(chunks_);
  if (RowDraws *draws = executor_->rowDraws())
    planDraws(*draws, step.R);
  Clock::time_point start = Clock::now();
  maskWorker_.start(chunks_);
  Status executed = executor_->executeGroups(step, builder_.windowTables());
  if (maskWorker_.finish())
    ++fallbacks_.of(SlowFallback::GrammarMask);
  Clock::time_point end = Clock::now();
  if (!executed)
    return failStep(executed);
  double seconds = std::chrono::duration<double>(end - start).count();
  metrics_.steps.add(1);
  metrics_.stepSeconds.add(seconds);
  metrics_.predictedStepSeconds.add(executor_->predictSeconds(step));
  metrics_.lastStep.set(end.time_since_epoch().count());
  if (speculator_ && decoding)
    speculator_->observeStep(step.T, seconds);
  if (step.T >= 16 && !decoding) // a prompt's share of a step costs about this a token
    secondsPerToken_ += (seconds / static_cast<double>(step.T) - secondsPerToken_) * 0.1;

  Row row{executor_->logits(), shape().vocabulary, 0};
  for (const Chunk &chunk : chunks_) {
    if (!chunk.sequence->finished)
      commit(chunk, row);
    row = row + chunk.rows;
  }
  for (const std::unique_ptr<Sequence> &sequence : running_)
    if (!sequence->finished && !sequence->inLongContext &&
        static_cast<int64_t>(sequence->tokens.size()) > shape().shortContext)
      enterLongContext(*sequence);
  if (limits_.allocationCount && decoding && !anyFinished_)
    metrics_.decodeAllocations.add(limits_.allocationCount() - allocations - uncounted_);
  removeFinished();
  measure();
  return Status::ok();
}

Status Engine::failStep(const Status &failure) {
  metrics_.failedSteps.add(1);
  for (const std::unique_ptr<Sequence> &sequence : running_)
    finish(*sequence, FinishReason::Error, failure);
  removeFinished();
  measure();
  return failure;
}

void Engine::measure() {
  int64_t live = 0, held = 0;
  for (const std::unique_ptr<Sequence> &sequence : running_) {
    auto add = [&](size_t blocks, int64_t firstBlock, uint64_t bytesPerToken) {
      const int64_t bytes = static_cast<int64_t>(bytesPerToken);
      live += (sequence->computed - firstBlock * limits_.blockTokens) * bytes;
      held += (static_cast<int64_t>(blocks) - firstBlock) * limits_.blockTokens * bytes;
    };
    add(sequence->blocks.size(), sequence->firstBlock,
        sequence->windows.empty() ? shape().kvBytesPerToken : shape().kvGroups[0].bytesPerToken);
    for (size_t i = 0; i < sequence->windows.size(); ++i)
      add(sequence->windows[i].blocks.size(), sequence->windows[i].firstBlock,
          shape().kvGroups[i + 1].bytesPerToken);
  }
  metrics_.running.set(static_cast<int64_t>(running_.size()));
  metrics_.waiting.set(static_cast<int64_t>(waiting_.size()));
  metrics_.kvBytesLive.set(live);
  metrics_.kvBytesHeld.set(held);
  metrics_.kvBlocksUsed.set(cache_.capacity() - cache_.available());
  for (size_t i = 0; i < cache_.windows().size(); ++i)
    metrics_.windowBlocksUsed[i].set(cache_.windows()[i].capacity() -
                                     cache_.windows()[i].available());
  metrics_.blocksCached.set(cache_.unused());
  SlowFallbackCounts fallbacks = fallbacks_;
  executor_->addSlowFallbacks(fallbacks);
  if (speculator_)
    speculator_->drafter().addSlowFallbacks(fallbacks);
  for (size_t kind = 0; kind < slowFallbackKinds; ++kind)
    metrics_.slowFallbacks[kind].set(fallbacks[kind]);
}

} // namespace llmrt
