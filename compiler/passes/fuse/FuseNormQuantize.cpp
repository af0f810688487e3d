//===- FuseNormQuantize.cpp - norms that write int8 rows -------------------------===//

#include "compiler/passes/Passes.h"

namespace llmc {
#define GEN_PASS_DEF_FUSENORMQUANTIZEPASS
#include "compiler/passes/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

namespace {
struct FuseNormQuantizePass : llmc::impl::FuseNormQuantizePassBase<FuseNormQuantizePass> {
  void runOnOperation() override {
    SmallVector<QuantizeOp> quantizes;
    getOperation().walk([&](QuantizeOp op) { quantizes.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (QuantizeOp quantize : quantizes) {
      Operation *norm = quantize.getInput().getDefiningOp();
      // A norm of heads has its own kernel form; one that others read as f32 must stay f32.
      auto rms = dyn_cast_if_present<RmsNormOp>(norm);
      if (!norm || !isa<RmsNormOp, LayerNormOp>(norm) || !norm->hasOneUse() ||
          (rms && rms.getGroupSize()))
        continue;
      rewriter.modifyOpInPlace(norm, [&] { norm->getResult(0).setType(quantize.getType()); });
      rewriter.replaceAllUsesWith(quantize.getResult(), norm->getResult(0));
      rewriter.eraseOp(quantize);
    }
  }
};
} // namespace
