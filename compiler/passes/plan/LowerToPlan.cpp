//===- LowerToPlan.cpp - from the step to the plan ---------------------------------===//

#include "compiler/passes/Passes.h"
#include "compiler/passes/plan/ArenaPlanner.h"
#include "compiler/passes/plan/StepLowering.h"

namespace llmc {
#define GEN_PASS_DEF_LOWERTOPLANPASS
#include "compiler/passes/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;

namespace {

/// The caches of a step, by layer; the layers must be 0, 1, 2, ... without a gap.
FailureOr<SmallVector<llm::KvType>> collectCaches(func::FuncOp step) {
  SmallVector<llm::KvType> caches;
  LogicalResult result = success();
  step.walk([&](llm::KvCacheOp op) {
    size_t layer = op.getLayer();
    if (layer > 4096) {
      result = op.emitOpError() << "layer " << layer << " is out of range";
      return;
    }
    if (caches.size() <= layer)
      caches.resize(layer + 1);
    if (caches[layer] && caches[layer] != op.getType())
      result = op.emitOpError() << "gives layer " << layer << " a second type";
    if (!op.getType().getPaged())
      result = op.emitOpError() << "is not paged (is llmc-select-kv-layout missing?)";
    caches[layer] = op.getType();
  });
  if (failed(result))
    return failure();
  if (llvm::is_contained(caches, llm::KvType()))
    return step.emitOpError() << "has layers without a KV cache";
  return caches;
}

/// The layer of a cache value, seen through the appends.
std::optional<int64_t> layerOf(Value cache) {
  while (Operation *op = cache.getDefiningOp()) {
    if (auto source = dyn_cast<llm::KvCacheOp>(op))
      return source.getLayer();
    if (auto append = dyn_cast<llm::RopeAppendOp>(op))
      cache = append.getCache();
    else if (auto append = dyn_cast<llm::LatentAppendOp>(op))
      cache = append.getCache();
    else
      break;
  }
  return std::nullopt;
}

struct LowerToPlanPass : llmc::impl::LowerToPlanPassBase<LowerToPlanPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto step = module.lookupSymbol<func::FuncOp>(llm::kStepFunction);
    if (!step) {
      emitError(module.getLoc()) << "module has no function @" << llm::kStepFunction;
      return signalPassFailure();
    }
    FailureOr<SmallVector<llm::KvType>> caches = collectCaches(step);
    if (failed(caches))
      return signalPassFailure();

    SmallVector<int64_t> prefixBytes, windows(caches->size(), 0);
    int64_t bytes = 0;
    for (llm::KvType kv : *caches) {
      prefixBytes.push_back(bytes);
      bytes += kv.getBytesPerToken();
    }
    int64_t keyTile = 64, queryTile = 1;
    step.walk([&](llm::AttentionOp op) {
      if (op.getKeyTile())
        keyTile = *op.getKeyTile();
      if (op.getQueryTile())
        queryTile = *op.getQueryTile();
      if (op.getWindow())
        if (std::optional<int64_t> layer = layerOf(op.getCache()))
          windows[*layer] = *op.getWindow();
    });

    OpBuilder builder(step);
    SmallVector<Attribute> types;
    for (llm::KvType kv : *caches)
      types.push_back(TypeAttr::get(kv));
    auto model = module->getAttrOfType<DictionaryAttr>(llm::kModelAttr);
    if (!model)
      model = builder.getDictionaryAttr({});
    auto program = plan::ProgramOp::create(
        builder, step.getLoc(), builder.getStringAttr("program"),
        plan::LimitsAttr::get(&getContext(), maxTokens, maxSequences, maxTokens, queryTile),
        builder.getArrayAttr(types), builder.getDenseI64ArrayAttr(windows),
        builder.getI64IntegerAttr(keyTile), model);
    program.getBody().emplaceBlock();
    ProgramBuilder programBuilder(program);
    if (failed(StepLowering(programBuilder, prefixBytes).lower(step)))
      return signalPassFailure();
    planArena(program);
    step.erase();
  }
};

} // namespace
