#include "runtime/engine/CpuEngine.h"

#include <algorithm>

namespace llmrt {
namespace {

constexpr int64_t defaultBatchedTokens = 512;

/// Blocks for \p options, at least one.
int64_t poolBlocks(const ModelShape &shape, const CpuEngineOptions &options, int64_t sequences,
                   int64_t blockTokens) {
  auto blocks = [&](int64_t tokens) { return (tokens + blockTokens - 1) / blockTokens; };
  if (options.kvTokens > 0)
    return blocks(options.kvTokens);
  int64_t wanted = sequences * blocks(shape.maxContext);
  if (shape.kvBytesPerToken == 0)
    return wanted;
  uint64_t room = availableMemory() / 2 / shape.kvBytesPerToken / uint64_t(blockTokens);
  return std::max<int64_t>(1, int64_t(std::min<uint64_t>(uint64_t(wanted), room)));
}

} // namespace

Result<std::unique_ptr<Engine>> createCpuEngine(std::shared_ptr<const Plan> plan,
                                                const CpuEngineOptions &options) {
  ModelShape shape = modelShape(plan->head());
  EngineLimits limits;
  limits.maxBatchedTokens = options.maxBatchedTokens > 0
                                ? options.maxBatchedTokens
                                : std::min(defaultBatchedTokens, shape.maxTokens);
  if (limits.maxBatchedTokens > shape.maxTokens)
    return invalidArgument("max-num-batched-tokens is " + std::to_string(limits.maxBatchedTokens) +
                           "; the plan allows up to " + std::to_string(shape.maxTokens) +
                           " tokens a step");
  limits.maxSequences = std::max<int64_t>(1, options.maxSequences);
  if (limits.maxSequences > shape.maxSequences)
    return invalidArgument(std::to_string(limits.maxSequences) +
                           " sequences at a time; the plan allows up to " +
                           std::to_string(shape.maxSequences));
  // Every running sequence gets a token a step.
  limits.maxBatchedTokens = std::max(limits.maxBatchedTokens, limits.maxSequences);
  limits.blockTokens = options.blockTokens > 0 ? options.blockTokens : shape.blockTokens;
  limits.kvBlocks = poolBlocks(shape, options, limits.maxSequences, limits.blockTokens);
  limits.maxRows =
      options.promptLogits ? std::min(limits.maxBatchedTokens, shape.maxRows) : limits.maxSequences;
  limits.sampledVocabulary = options.sampledVocabulary > 0
                                 ? std::min(options.sampledVocabulary, shape.vocabulary)
                                 : shape.vocabulary;

  limits.maxQueued = options.maxQueued;
  limits.prefixCaching = options.prefixCaching;
  limits.swapBlocks = (options.swapTokens + limits.blockTokens - 1) / limits.blockTokens;
  limits.preemption = options.preemption;
  limits.allocationCount = options.allocationCount;

  CpuExecutorOptions device;
  device.threads = options.threads;
  device.largest = {limits.maxBatchedTokens, limits.maxSequences, limits.maxRows,
                    maxQueryTiles(limits.maxBatchedTokens, limits.maxSequences, shape.queryTile)};
  LLMRT_ASSIGN_OR_RETURN(auto executor, CpuExecutor::create(std::move(plan), device));
  return Engine::create(std::move(executor), limits);
}

} // namespace llmrt
