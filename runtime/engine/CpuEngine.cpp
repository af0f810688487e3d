#include "runtime/engine/CpuEngine.h"

#include <algorithm>

namespace llmrt {
namespace {

constexpr int64_t defaultBatchedTokens = 512;

} // namespace

int64_t kvPoolBlocks(const ModelShape &shape, const CpuEngineOptions &options,
                     const EngineLimits &limits, uint64_t room) {
  auto blocks = [&](int64_t tokens) {
    return (tokens + limits.blockTokens - 1) / limits.blockTokens;
  };
  if (options.kvTokens > 0)
    return blocks(options.kvTokens);
  int64_t wanted = limits.maxSequences * blocks(shape.maxContext);
  if (shape.kvBytesPerToken == 0)
    return wanted;
  uint64_t most = room / shape.kvBytesPerToken / uint64_t(limits.blockTokens);
  return std::max<int64_t>(1, int64_t(std::min<uint64_t>(uint64_t(wanted), most)));
}

StepDims largestStep(const EngineLimits &limits, const ModelShape &shape) {
  return {limits.maxBatchedTokens, limits.maxSequences, limits.maxRows,
          maxQueryTiles(limits.maxBatchedTokens, limits.maxSequences, shape.queryTile)};
}

Result<EngineLimits> engineLimits(const ModelShape &shape, const CpuEngineOptions &options) {
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
  return limits;
}

Result<std::unique_ptr<Engine>> createCpuEngine(std::shared_ptr<const Plan> plan,
                                                const CpuEngineOptions &options) {
  ModelShape shape = modelShape(plan->head());
  LLMRT_ASSIGN_OR_RETURN(EngineLimits limits, engineLimits(shape, options));
  limits.kvBlocks = kvPoolBlocks(shape, options, limits, availableMemory() / 2);
  CpuExecutorOptions device;
  device.threads = options.threads;
  device.largest = largestStep(limits, shape);
  LLMRT_ASSIGN_OR_RETURN(auto executor, CpuExecutor::create(std::move(plan), device));
  return Engine::create(std::move(executor), limits);
}

} // namespace llmrt
