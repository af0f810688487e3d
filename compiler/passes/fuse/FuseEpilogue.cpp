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

  /// A projection, or the sum of a mixture's experts, that can add a residual.
  static bool takesResidual(Operation *op) {
    if (!op || !op->hasOneUse())
      return false;
    if (auto linear = dyn_cast<LinearOp>(op))
      return !linear.getResidual();
    auto combine = dyn_cast<CombineOp>(op);
    return combine && !combine.getResidual();
  }

  static void fuseResidual(AddOp add, IRRewriter &rewriter) {
    // The later operation takes the sum, so that the other operand is there when it runs.
    Operation *lhs = add.getLhs().getDefiningOp(), *rhs = add.getRhs().getDefiningOp();
    Operation *last = takesResidual(rhs) ? rhs : nullptr;
    if (takesResidual(lhs) && (!last || last->isBeforeInBlock(lhs)))
      last = lhs;
    if (!last || add.getLhs() == add.getRhs())
      return;
    Value other = last == lhs ? add.getRhs() : add.getLhs();
    Operation *source = other.getDefiningOp();
    if (source && !(source->getBlock() == last->getBlock() && source->isBeforeInBlock(last)))
      return;
    if (auto linear = dyn_cast<LinearOp>(last))
      linear.getResidualMutable().assign(other);
    else
      cast<CombineOp>(last).getResidualMutable().assign(other);
    rewriter.replaceOp(add, last);
  }
};
} // namespace
