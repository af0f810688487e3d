//===- FuseEpilogue.cpp - activation and residual in a projection ---------------===//

#include "compiler/passes/Passes.h"

namespace llmc {
#define GEN_PASS_DEF_FUSEEPILOGUEPASS
#include "compiler/passes/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

namespace {
struct FuseEpiloguePass : llmc::impl::FuseEpiloguePassBase<FuseEpiloguePass> {
  void runOnOperation() override {
    SmallVector<Operation *> candidates;
    getOperation().walk([&](Operation *op) {
      if (isa<ActivateOp, AddOp>(op))
        candidates.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    // Activations stand before sums in program order, as they do in the epilogue.
    for (Operation *op : candidates) {
      if (auto activate = dyn_cast<ActivateOp>(op))
        fuseActivation(activate, rewriter);
      else
        fuseResidual(cast<AddOp>(op), rewriter);
    }
  }

  static void fuseActivation(ActivateOp activate, IRRewriter &rewriter) {
    auto linear = activate.getInput().getDefiningOp<LinearOp>();
    if (!linear || !linear->hasOneUse() || linear.getGlu() || linear.getResidual() ||
        linear.getActivation() != Activation::None)
      return;
    linear.setActivation(activate.getActivation());
    rewriter.replaceOp(activate, linear);
  }

  static void fuseResidual(AddOp add, IRRewriter &rewriter) {
    // The later projection takes the sum, so that the other operand is there when it runs.
    auto lhs = add.getLhs().getDefiningOp<LinearOp>();
    auto rhs = add.getRhs().getDefiningOp<LinearOp>();
    auto fits = [](LinearOp op) { return op && op->hasOneUse() && !op.getResidual(); };
    LinearOp linear = fits(rhs) ? rhs : LinearOp();
    if (fits(lhs) && (!linear || linear->isBeforeInBlock(lhs)))
      linear = lhs;
    if (!linear || add.getLhs() == add.getRhs())
      return;
    Value other = linear == lhs ? add.getRhs() : add.getLhs();
    Operation *source = other.getDefiningOp();
    if (source && !(source->getBlock() == linear->getBlock() && source->isBeforeInBlock(linear)))
      return;
    linear.getResidualMutable().assign(other);
    rewriter.replaceOp(add, linear);
  }
};
} // namespace
