//===- FuseGateUp.cpp - a gated MLP's first half as one projection -------------===//

#include "compiler/passes/Passes.h"
#include "compiler/passes/fuse/FuseUtils.h"

namespace llmc {
#define GEN_PASS_DEF_FUSEGATEUPPASS
#include "compiler/passes/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

namespace {
struct FuseGateUpPass : llmc::impl::FuseGateUpPassBase<FuseGateUpPass> {
  void runOnOperation() override {
    SmallVector<GluOp> glus;
    getOperation().walk([&](GluOp op) { glus.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (GluOp glu : glus)
      fuse(glu, rewriter);
  }

  void fuse(GluOp glu, IRRewriter &rewriter) {
    auto gate = glu.getGate().getDefiningOp<LinearOp>();
    auto up = glu.getUp().getDefiningOp<LinearOp>();
    if (!gate || !up || gate == up || !isPlainLinear(gate) || !isPlainLinear(up) ||
        gate.getInput() != up.getInput() ||
        gate.getWeight().getType() != up.getWeight().getType() || gate.getBias() || up.getBias() ||
        !canJoin(gate.getWeight(), up.getWeight()) || !gate->hasOneUse() || !up->hasOneUse())
      return;
    // (The kernel has no bias for a GLU.)
    constexpr int64_t tile = WeightInterleaveOp::tileRows;
    int64_t n = dim(gate.getWeight(), 0), k = dim(gate.getWeight(), 1);
    int64_t rows = 2 * ((n + tile - 1) / tile * tile);
    Location loc = rewriter.getFusedLoc({gate.getLoc(), up.getLoc(), glu.getLoc()});
    Type f32 = rewriter.getF32Type();
    rewriter.setInsertionPoint(glu);
    Value weight = WeightInterleaveOp::create(rewriter, loc, RankedTensorType::get({rows, k}, f32),
                                              gate.getWeight(), up.getWeight());
    auto fused = LinearOp::create(rewriter, loc, glu.getType(), gate.getInput(), weight);
    fused.setActivation(glu.getActivation());
    fused.setGlu(true);
    rewriter.replaceOp(glu, fused);
    rewriter.eraseOp(gate);
    rewriter.eraseOp(up);
  }
};
} // namespace
