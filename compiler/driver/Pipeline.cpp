//===- Pipeline.cpp - the passes of a compilation, as one list --------------------------===//

#include "compiler/driver/Pipeline.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/raise/Passes.h"
#include "compiler/target/Target.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace llmc;

StringRef llmc::phaseName(Phase phase) {
  static constexpr StringLiteral names[] = {
#define LLMC_PHASE(Id, Name, What) Name,
#include "compiler/driver/Phases.inc"
  };
  return names[static_cast<size_t>(phase)];
}

std::optional<Phase> llmc::phaseByName(StringRef name) {
#define LLMC_PHASE(Id, Name, What)                                                                 \
  if (name == Name)                                                                                \
    return Phase::Id;
#include "compiler/driver/Phases.inc"
  return std::nullopt;
}

std::vector<std::pair<std::string, std::string>> llmc::phaseHelp() {
  return {
#define LLMC_PHASE(Id, Name, What) {Name, What},
#include "compiler/driver/Phases.inc"
  };
}

int llmc::machineCodeLevel(int optLevel) { return optLevel >= 3 ? 3 : optLevel >= 1 ? 2 : 1; }

namespace {

using Factory = std::function<std::unique_ptr<Pass>(const CompileOptions &)>;

/// One pass of the pipeline. `level` is the least -O that runs it; a pass of level 0 is needed for
/// a plan and can't be disabled.
struct Step {
  Phase phase;
  StringRef name;
  int level;
  Factory make;
};

/// Tensor cores take f16 inputs: int8 rows are for the CPU.
bool hasCpu(const CompileOptions &options) {
  llmrt::Result<TargetSet> targets = parseTargets(options.targets);
  return !targets || targets->cpu;
}

bool hasCuda(const CompileOptions &options) {
  llmrt::Result<TargetSet> targets = parseTargets(options.targets);
  return targets && !targets->cuda.empty();
}

std::string kvElement(const CompileOptions &options) {
  const std::string &dtype = options.kvCacheDtype;
  return dtype == "auto" ? "f16" : dtype == "int8" ? "i8" : dtype;
}

const std::vector<Step> &steps() {
  static const std::vector<Step> list = {
      {Phase::Fuse, "canonicalize", 1, [](auto &) { return createCanonicalizerPass(); }},
      {Phase::Fuse, "cse", 1, [](auto &) { return createCSEPass(); }},
      {Phase::Fuse, "llmc-fuse-qkv", 2, [](auto &) { return createFuseQkvPass(); }},
      {Phase::Fuse, "llmc-fuse-rope-append", 0, [](auto &) { return createFuseRopeAppendPass(); }},
      {Phase::Fuse, "llmc-split-columns", 0, [](auto &) { return createSplitColumnsPass(); }},
      {Phase::Fuse, "llmc-fuse-gate-up", 2, [](auto &) { return createFuseGateUpPass(); }},
      {Phase::Fuse, "llmc-fuse-epilogue", 1, [](auto &) { return createFuseEpiloguePass(); }},
      {Phase::Fuse, "llmc-hoist-gather-rows", 2,
       [](auto &) { return createHoistGatherRowsPass(); }},
      {Phase::Fuse, "cse", 1, [](auto &) { return createCSEPass(); }},
      {Phase::Quantize, "llmc-quantize-weights", 0,
       [](const CompileOptions &options) {
         QuantizeWeightsPassOptions o;
         o.scheme = options.quantization;
         o.head = options.quantization == "int4" && options.head != "int8" ? "int4" : "int8";
         o.widenE2m1 = hasCuda(options);
         return createQuantizeWeightsPass(o);
       }},
      {Phase::Quantize, "llmc-quantize-activations", 0,
       [](const CompileOptions &options) -> std::unique_ptr<Pass> {
         if (options.activations == "f32" || (options.activations == "auto" && !hasCpu(options)))
           return nullptr;
         // 8-bit weights are chosen for quality: there the inputs' rounding is most of the error.
         QuantizeActivationsPassOptions o;
         o.group = options.quantization == "int8" ? 16 : 32;
         return createQuantizeActivationsPass(o);
       }},
      {Phase::Quantize, "llmc-fuse-norm-quantize", 1,
       [](auto &) { return createFuseNormQuantizePass(); }},
      {Phase::Kv, "llmc-select-kv-layout", 0,
       [](const CompileOptions &options) {
         SelectKvLayoutPassOptions o;
         o.element = kvElement(options);
         return createSelectKvLayoutPass(o);
       }},
      {Phase::Attention, "llmc-tile-attention", 0,
       [](const CompileOptions &options) {
         // CUDA's kernels have splits of their own. 512 keys are as much work as a barrier is not.
         TileAttentionPassOptions o;
         o.keySplit = hasCpu(options) ? 512 : 0;
         return createTileAttentionPass(o);
       }},
      {Phase::Plan, "llmc-lower-to-plan", 0,
       [](const CompileOptions &options) {
         LowerToPlanPassOptions o;
         o.maxTokens = options.maxBatchedTokens;
         o.maxSequences = options.maxSequences;
         return createLowerToPlanPass(o);
       }},
  };
  return list;
}

} // namespace

std::vector<std::string> llmc::optionalPasses() {
  std::vector<std::string> names;
  for (const Step &step : steps())
    if (step.level > 0 && !llvm::is_contained(names, step.name))
      names.push_back(step.name.str());
  return names;
}

LogicalResult llmc::runPipeline(ModuleOp module, const CompileOptions &options, Phase last,
                                const std::function<LogicalResult(Phase)> &after) {
  for (int i = static_cast<int>(Phase::Raise); i <= static_cast<int>(last); ++i) {
    Phase phase = static_cast<Phase>(i);
    PassManager manager(module.getContext());
    // Importers of the other files write the llm dialect themselves.
    if (phase == Phase::Raise && !module.lookupSymbol(llm::kStepFunction))
      buildRaisePipeline(manager);
    for (const Step &step : steps()) {
      if (step.phase != phase || options.optLevel < step.level ||
          llvm::is_contained(options.disabledPasses, step.name))
        continue;
      if (std::unique_ptr<Pass> pass = step.make(options))
        manager.addPass(std::move(pass));
    }
    if (failed(manager.run(module)) || failed(after(phase)))
      return failure();
  }
  return success();
}
