//===- RaiseRope.cpp - llmc-raise-rope ------------------------------------------===//

#include "compiler/passes/raise/Match.h"
#include "compiler/passes/raise/Passes.h"
#include "compiler/passes/raise/SampleEvaluation.h"

namespace llmc::raise {
#define GEN_PASS_DEF_RAISEROPEPASS
#include "compiler/passes/raise/RaisePasses.h.inc"
} // namespace llmc::raise

using namespace mlir;
using namespace llmc;
using namespace llmc::graph;
using namespace llmc::raise;

namespace {

struct RaiseRope : raise::impl::RaiseRopePassBase<RaiseRope> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isDeclaration())
      return;
    samples = &getAnalysis<SampleEvaluation>();
    OpBuilder builder(&getContext());
    for (Operation &op : llvm::make_early_inc_range(func.getBody().front()))
      if (auto sum = dyn_cast<BinaryOp>(op); sum && sum.getKind() == BinaryKind::Add)
        raise(sum, builder);
    markAnalysesPreserved<SampleEvaluation>();
  }

  /// If `value` is elements [start, start + count) of the last dimension of another value, that
  /// value.
  Value matchLastSlice(Value value, int64_t &start, int64_t &count) {
    auto slice = value.getDefiningOp<SliceOp>();
    if (!slice)
      return matchSplitPart(value, start, count);
    const Shape *shape = samples->shape(slice.getX(), 0);
    if (!shape || shape->empty())
      return {};
    SmallVector<Facts> facts;
    for (Value operand : slice->getOperands()) {
      facts.emplace_back();
      facts.back().data = operand == slice.getX() ? nullptr : samples->data(operand, 0);
    }
    auto ranges = sliceRanges(slice, facts, *shape);
    if (!ranges)
      return {};
    for (auto [i, range] : llvm::enumerate(*ranges))
      if (range.step != 1 || (i + 1 < ranges->size() && range.count != (*shape)[i]))
        return {};
    start = ranges->back().start;
    count = ranges->back().count;
    return slice.getX();
  }

  Value matchSplitPart(Value value, int64_t &start, int64_t &count) {
    auto split = value.getDefiningOp<SplitOp>();
    const Shape *shape = split ? samples->shape(split.getX(), 0) : nullptr;
    if (!shape ||
        placeAxis(split.getAxis(), shape->size()) != static_cast<int64_t>(shape->size()) - 1)
      return {};
    start = 0;
    for (Value part : split.getParts()) {
      const Shape *own = samples->shape(part, 0);
      if (!own)
        return {};
      count = own->back();
      if (part == value)
        return split.getX();
      start += count;
    }
    return {};
  }

  /// concat(-x[half:], x[:half]): x.
  Value matchRotated(Value value) {
    auto concat = peelCasts(value).getDefiningOp<ConcatOp>();
    if (!concat || concat.getParts().size() != 2)
      return {};
    const Shape *shape = samples->shape(concat.getY(), 0);
    if (!shape ||
        placeAxis(concat.getAxis(), shape->size()) != static_cast<int64_t>(shape->size()) - 1)
      return {};
    auto negated = concat.getParts()[0].getDefiningOp<UnaryOp>();
    if (!negated || negated.getKind() != UnaryKind::Neg)
      return {};
    int64_t highStart, highCount, lowStart, lowCount, width = shape->back();
    Value high = matchLastSlice(negated.getX(), highStart, highCount);
    Value low = matchLastSlice(concat.getParts()[1], lowStart, lowCount);
    bool areHalves = width % 2 == 0 && lowStart == 0 && lowCount == width / 2 &&
                     highStart == width / 2 && highCount == width / 2;
    return high && high == low && areHalves ? high : Value();
  }

  void raise(BinaryOp sum, OpBuilder &builder) {
    auto first = asBinary(sum.getA(), BinaryKind::Mul),
         second = asBinary(sum.getB(), BinaryKind::Mul);
    if (!first || !second)
      return;
    for (auto [straight, turned] : {std::pair(first, second), std::pair(second, first)})
      for (auto [rotated, sin] :
           {std::pair(turned.getA(), turned.getB()), std::pair(turned.getB(), turned.getA())}) {
        Value x = matchRotated(rotated);
        if (!x)
          continue;
        Value cos = peelCasts(straight.getA()) == peelCasts(x)   ? straight.getB()
                    : peelCasts(straight.getB()) == peelCasts(x) ? straight.getA()
                                                                 : Value();
        if (!cos || x.getType() != sum.getType())
          continue;
        // Rank 3 is [batch, sequence, size]: one head.
        size_t rank = samples->shape(x, 0)->size();
        builder.setInsertionPoint(sum);
        auto rope = RotaryEmbeddingOp::create(builder, sum.getLoc(), sum.getType(), x, cos, sin,
                                              /*position_ids=*/Value(), /*interleaved=*/false,
                                              /*num_heads=*/rank == 3 ? 1 : 0,
                                              /*rotary_dim=*/0);
        samples->extend(rope, sum);
        sum.getY().replaceAllUsesWith(rope.getY());
        ++rotations;
        return;
      }
  }

  SampleEvaluation *samples = nullptr;
};

} // namespace
