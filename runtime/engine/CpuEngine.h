//===- CpuEngine.h - an engine for a plan on this machine's CPU -------------===//
#ifndef LLMRT_ENGINE_CPUENGINE_H
#define LLMRT_ENGINE_CPUENGINE_H

#include "runtime/device/cpu/CpuExecutor.h"
#include "runtime/engine/Engine.h"
#include "runtime/speculate/SpeculativeConfig.h"

#include <memory>

namespace llmrt {

/// 0 is "choose" everywhere.
struct CpuEngineOptions {
  unsigned threads = 0;
  int64_t maxBatchedTokens = 0; ///< default 512, within the plan's limit
  int64_t maxSequences = 0;     ///< default 1
  int64_t blockTokens = 0;      ///< default the plan's
  /// Tokens of the KV pool. The default is maxSequences times the context, or what half of the
  /// memory that is available holds, if that is less. Memory is taken as it is used.
  int64_t kvTokens = 0;
  /// Ids that may be drawn: the tokenizer's size; 0: every row of the logits.
  int32_t sampledVocabulary = 0;
  bool promptLogits = false; ///< requests may ask for them: room for a row of logits a token
  int64_t maxQueued = 0;     ///< requests that may wait; 0: no limit
  bool prefixCaching = true; ///< keep the KV of texts that later requests may begin with
  int64_t swapTokens = 0;    ///< room in host memory for the KV of preempted requests
  PreemptionMode preemption = PreemptionMode::Auto;
  int64_t (*allocationCount)() = nullptr; ///< see EngineLimits
  SpeculativeConfig speculation;          ///< of method None unless asked for
  /// For SpeculativeConfig::Method::DraftModel: a plan whose tokens mean the same (Model.h checks).
  std::shared_ptr<const Plan> draftPlan;
};

/// The limits that \p options ask for, but for the KV pools' blocks. An error where the plan allows
/// less.
Result<EngineLimits> engineLimits(const ModelShape &shape, const CpuEngineOptions &options);
/// The largest step within them.
StepDims largestStep(const EngineLimits &limits, const ModelShape &shape);
/// Blocks of each group of layers with a narrower window than others, for \p kvBlocks of the
/// widest: enough for whatever these let run.
std::vector<int64_t> windowBlocks(const ModelShape &shape, const EngineLimits &limits,
                                  int64_t kvBlocks);
/// Sets the blocks of all KV pools in \p limits: those that \p options ask for, or those of the
/// default, which takes up to \p room bytes; at least one each.
void sizeKvPools(const ModelShape &shape, const CpuEngineOptions &options, EngineLimits &limits,
                 uint64_t room);

/// What \p options speculate with, for an engine of \p target; null: nothing. A draft model runs on
/// the CPU.
Result<std::unique_ptr<Drafter>> makeDrafter(const CpuEngineOptions &options,
                                             const EngineLimits &target);

/// An engine with a CpuExecutor.
Result<std::unique_ptr<Engine>> createCpuEngine(std::shared_ptr<const Plan> plan,
                                                const CpuEngineOptions &options);

} // namespace llmrt

#endif // LLMRT_ENGINE_CPUENGINE_H
