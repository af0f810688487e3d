#include "runtime/engine/CpuEngine.h"

#include "runtime/engine/DraftModel.h"
#include "runtime/speculate/PromptLookup.h"
#include "runtime/speculate/SuffixAutomaton.h"

#include <algorithm>

namespace llmrt {
namespace {

constexpr int64_t defaultBatchedTokens = 512;

/// Rows of logits for guesses, all sequences together: more would take memory without paying, as a
/// full batch has little time to spare.
constexpr int64_t maxGuessRows = 64;

Result<std::unique_ptr<Drafter>> makeDraftModel(const CpuEngineOptions &options,
                                                const EngineLimits &target, int64_t kvTokens) {
  ModelShape shape = modelShape(options.draftPlan->head());
  if (shape.vocabulary < target.sampledVocabulary)
    return invalidArgument(options.draftPlan->name() + ": the draft model knows " +
                           std::to_string(shape.vocabulary) + " tokens, the model " +
                           std::to_string(target.sampledVocabulary));
  DraftModelLimits limits;
  limits.maxSequences = std::min(target.maxSequences, shape.maxSequences);
  limits.maxBatchedTokens =
      std::clamp(target.maxBatchedTokens, limits.maxSequences, shape.maxTokens);
  limits.blockTokens = shape.blockTokens;
  limits.kvBlocks = (kvTokens + limits.blockTokens - 1) / limits.blockTokens;
  limits.sampledVocabulary = target.sampledVocabulary;
  EngineLimits pools;
  pools.maxSequences = limits.maxSequences;
  pools.maxBatchedTokens = limits.maxBatchedTokens;
  pools.blockTokens = limits.blockTokens;
  pools.prefixCaching = false;
  limits.windowBlocks = windowBlocks(shape, pools, limits.kvBlocks);
  CpuExecutorOptions device;
  device.threads = options.threads;
  device.largest = {limits.maxBatchedTokens, limits.maxSequences, limits.maxSequences,
                    maxQueryTiles(limits.maxBatchedTokens, limits.maxSequences, shape.queryTile)};
  LLMRT_ASSIGN_OR_RETURN(auto executor, CpuExecutor::create(options.draftPlan, device));
  LLMRT_ASSIGN_OR_RETURN(auto drafter, DraftModel::create(std::move(executor), limits));
  return std::unique_ptr<Drafter>(std::move(drafter));
}

} // namespace

Result<std::unique_ptr<Drafter>> makeDrafter(const CpuEngineOptions &options,
                                             const EngineLimits &target) {
  const SpeculativeConfig &config = options.speculation;
  switch (config.method) {
  case SpeculativeConfig::Method::None:
    return std::unique_ptr<Drafter>();
  case SpeculativeConfig::Method::Ngram:
    return std::unique_ptr<Drafter>(new PromptLookup(config.lookupMin, config.lookupMax));
  case SpeculativeConfig::Method::Suffix:
    return std::unique_ptr<Drafter>(new SuffixDrafter(config.lookupMin));
  case SpeculativeConfig::Method::DraftModel:
    if (!options.draftPlan)
      return internalError("the draft model's plan was not opened");
    return makeDraftModel(options, target, target.kvBlocks * target.blockTokens);
  }
  return internalError("no such speculative method");
}

std::vector<int64_t> windowBlocks(const ModelShape &shape, const EngineLimits &limits,
                                  int64_t kvBlocks) {
  auto blocks = [&](int64_t tokens) {
    return (tokens + limits.blockTokens - 1) / limits.blockTokens;
  };
  std::vector<int64_t> counts;
  for (size_t group = 1; group < shape.kvGroups.size(); ++group) {
    // What a window and guesses touch, the new tokens of a step, and a block that is copied; as
    // much again for the prefix cache.
    int64_t most = limits.maxSequences * (blocks(shape.kvGroups[group].window + maxGuesses) + 2) +
                   blocks(limits.maxBatchedTokens) + 1;
    counts.push_back(std::min(kvBlocks, limits.prefixCaching ? 2 * most : most));
  }
  return counts;
}

void sizeKvPools(const ModelShape &shape, const CpuEngineOptions &options, EngineLimits &limits,
                 uint64_t room) {
  auto blocks = [&](int64_t tokens) {
    return (tokens + limits.blockTokens - 1) / limits.blockTokens;
  };
  auto fits = [&](int64_t kvBlocks) {
    using Wide = unsigned __int128;
    Wide bytes = shape.kvGroups.empty() ? 0 : Wide(kvBlocks) * shape.kvGroups[0].bytesPerToken;
    std::vector<int64_t> windows = windowBlocks(shape, limits, kvBlocks);
    for (size_t i = 0; i < windows.size(); ++i)
      bytes += Wide(windows[i]) * shape.kvGroups[i + 1].bytesPerToken;
    return bytes * Wide(limits.blockTokens) <= room;
  };
  if (options.kvTokens > 0) {
    limits.kvBlocks = blocks(options.kvTokens);
  } else {
    // The most that fit, up to what all sequences together could use.
    int64_t low = 1, high = limits.maxSequences * blocks(shape.maxContext);
    while (low < high) {
      int64_t middle = low + (high - low + 1) / 2;
      fits(middle) ? low = middle : high = middle - 1;
    }
    limits.kvBlocks = low;
  }
  limits.windowBlocks = windowBlocks(shape, limits, limits.kvBlocks);
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
  limits.speculation = {options.speculation.tokens, options.speculation.adaptive,
                        options.speculation.classical, options.speculation.tree};
  if (options.speculation.tokens > 0) {
    // A window is one sequence's tokens of one step.
    limits.maxBatchedTokens =
        std::clamp(limits.maxBatchedTokens,
                   std::min(options.speculation.tokens + 1, shape.maxTokens), shape.maxTokens);
    int64_t guesses = std::min(limits.maxSequences * options.speculation.tokens,
                               std::max(options.speculation.tokens, maxGuessRows));
    limits.maxRows = std::min({std::max(limits.maxRows, limits.maxSequences + guesses),
                               limits.maxBatchedTokens, shape.maxRows});
  }
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
  sizeKvPools(shape, options, limits, availableMemory() / 2);
  CpuExecutorOptions device;
  device.threads = options.threads;
  device.largest = largestStep(limits, shape);
  LLMRT_ASSIGN_OR_RETURN(auto executor, CpuExecutor::create(std::move(plan), device));
  LLMRT_ASSIGN_OR_RETURN(auto drafter, makeDrafter(options, limits));
  return Engine::create(std::move(executor), limits, std::move(drafter));
}

} // namespace llmrt
