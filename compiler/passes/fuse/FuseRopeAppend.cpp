//===- FuseRopeAppend.cpp - rotate and append in one pass -----------------------===//

#include "compiler/passes/Passes.h"
#include "compiler/passes/fuse/FuseUtils.h"

namespace llmc {
#define GEN_PASS_DEF_FUSEROPEAPPENDPASS
#include "compiler/passes/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

namespace {

/// A query or key tensor as it is before its norm and rotation, both optional.
struct Rotated {
  Value source;
  RopeOp rope;
  RmsNormOp norm;
};

Rotated peel(Value value, int64_t headSize, bool withNorm) {
  Rotated result{value, nullptr, nullptr};
  if (auto rope = result.source.getDefiningOp<RopeOp>(); rope && rope->hasOneUse()) {
    result.rope = rope;
    result.source = rope.getInput();
  }
  if (auto norm = result.source.getDefiningOp<RmsNormOp>();
      norm && withNorm && isHeadNorm(norm, headSize) && norm->hasOneUse()) {
    result.norm = norm;
    result.source = norm.getInput();
  }
  return result;
}

struct FuseRopeAppendPass : llmc::impl::FuseRopeAppendPassBase<FuseRopeAppendPass> {
  void runOnOperation() override {
    SmallVector<AttentionOp> attentions;
    getOperation().walk([&](AttentionOp op) { attentions.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (AttentionOp attention : attentions)
      fuse(attention, rewriter);
  }

  static void fuse(AttentionOp attention, IRRewriter &rewriter) {
    auto append = attention.getCache().getDefiningOp<KvAppendOp>();
    if (!append || !append->hasOneUse())
      return;
    int64_t size = append.getCache().getType().getKeySize();
    Rotated q = peel(attention.getQuery(), size, true), k = peel(append.getKeys(), size, true);
    // What they disagree on stays outside: an operation of its own, or an error of the lowering.
    if (!agree(q, k, attention, append)) {
      q = peel(attention.getQuery(), size, false);
      k = peel(append.getKeys(), size, false);
    }
    if (!agree(q, k, attention, append)) {
      q = {attention.getQuery(), nullptr, nullptr};
      k = {append.getKeys(), nullptr, nullptr};
    }
    rewriter.setInsertionPoint(attention);
    SmallVector<Location> locations = {append.getLoc()};
    if (q.rope)
      locations.push_back(q.rope.getLoc());
    auto fused = RopeAppendOp::create(
        rewriter, rewriter.getFusedLoc(locations), q.source.getType(), append.getType(), q.source,
        k.source, append.getValues(), append.getCache(), q.rope ? q.rope.getAngles() : Value(),
        q.norm ? q.norm.getWeight() : Value(), k.norm ? k.norm.getWeight() : Value(),
        rewriter.getI64IntegerAttr(attention.getHeads()),
        q.rope && q.rope.getInterleaved() ? rewriter.getUnitAttr() : UnitAttr(),
        q.norm ? q.norm.getEpsAttr() : FloatAttr(),
        q.norm && q.norm.getPlusOne() ? rewriter.getUnitAttr() : UnitAttr());
    rewriter.modifyOpInPlace(attention, [&] {
      attention.getQueryMutable().assign(fused.getRotated());
      attention.getCacheMutable().assign(fused.getResult());
    });
    rewriter.eraseOp(append);
    for (Operation *op : {q.rope.getOperation(), q.norm.getOperation(), k.rope.getOperation(),
                          k.norm.getOperation()})
      if (op && op->use_empty())
        rewriter.eraseOp(op);
  }

  static bool agree(const Rotated &q, const Rotated &k, AttentionOp attention, KvAppendOp append) {
    KvType kv = append.getCache().getType();
    if (bool(q.rope) != bool(k.rope) || bool(q.norm) != bool(k.norm))
      return false;
    if (q.rope) {
      RopeOp a = q.rope, b = k.rope;
      if (a.getAngles() != b.getAngles() || a.getInterleaved() != b.getInterleaved() ||
          a.getHeads() != attention.getHeads() ||
          static_cast<int64_t>(b.getHeads()) != kv.getHeads())
        return false;
    }
    if (q.norm) {
      RmsNormOp a = q.norm, b = k.norm;
      if (a.getEps() != b.getEps() || a.getPlusOne() != b.getPlusOne())
        return false;
    }
    return true;
  }
};
} // namespace
