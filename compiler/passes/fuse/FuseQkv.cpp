//===- FuseQkv.cpp - one read of x for Q, K and V -----------------------------===//

#include "compiler/passes/Passes.h"
#include "compiler/passes/fuse/FuseUtils.h"
#include "mlir/IR/PatternMatch.h"

namespace llmc {
#define GEN_PASS_DEF_FUSEQKVPASS
#include "compiler/passes/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

namespace {

/// The value that a chain of row-wise operations on one head tensor (RoPE, a head norm) starts
/// from.
Value beforeRotation(Value value, int64_t headSize) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto rope = dyn_cast<RopeOp>(op))
      value = rope.getInput();
    else if (auto norm = dyn_cast<RmsNormOp>(op); norm && isHeadNorm(norm, headSize))
      value = norm.getInput();
    else
      break;
  }
  return value;
}

struct FuseQkvPass : llmc::impl::FuseQkvPassBase<FuseQkvPass> {
  void runOnOperation() override {
    SmallVector<AttentionOp> attentions;
    getOperation().walk([&](AttentionOp op) { attentions.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (AttentionOp attention : attentions)
      fuse(attention, rewriter);
  }

  void fuse(AttentionOp attention, IRRewriter &rewriter) {
    auto append = attention.getCache().getDefiningOp<KvAppendOp>();
    if (!append)
      return;
    LinearOp parts[3];
    Value starts[3] = {attention.getQuery(), append.getKeys(), append.getValues()};
    for (int i = 0; i < 3; ++i) {
      parts[i] = beforeRotation(starts[i], append.getCache().getType().getKeySize())
                     .getDefiningOp<LinearOp>();
      if (!parts[i] || !isPlainLinear(parts[i]) || parts[i].getInput() != parts[0].getInput() ||
          bool(parts[i].getBias()) != bool(parts[0].getBias()) ||
          !canJoin(parts[i].getWeight(), parts[0].getWeight()))
        return;
    }
    if (parts[0] == parts[1] || parts[1] == parts[2] || parts[0] == parts[2])
      return;
    // The first of the three in program order dominates every reader of all three.
    LinearOp first = parts[0];
    for (LinearOp part : parts)
      if (part->isBeforeInBlock(first))
        first = part;
    for (LinearOp part : parts)
      hoistWeight(part.getWeight(), first), hoistWeight(part.getBias(), first);
    rewriter.setInsertionPoint(first);
    joinLinears(rewriter, parts);
  }
};

} // namespace
