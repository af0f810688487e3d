//===- RaiseRope.cpp - llmc-raise-rope ------------------------------------------===//

#include "compiler/passes/raise/Match.h"
#include "compiler/passes/raise/Passes.h"
#include "compiler/passes/raise/SampleEvaluation.h"

#include <array>

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
      else if (auto joined = dyn_cast<ConcatOp>(op))
        raise(joined, builder);
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

  /// a cos - b sin and b cos + a sin.
  struct Turn {
    Value a, b, cos, sin;
  };
  std::optional<Turn> matchTurn(Value low, Value high) {
    auto difference = asBinary(low, BinaryKind::Sub), sum = asBinary(high, BinaryKind::Add);
    auto product = [](Value value) { return asBinary(value, BinaryKind::Mul); };
    if (!difference || !sum || !product(difference.getA()) || !product(difference.getB()) ||
        !product(sum.getA()) || !product(sum.getB()))
      return std::nullopt;
    auto orders = [](BinaryOp op) {
      Value a = peelCasts(op.getA()), b = peelCasts(op.getB());
      return std::array<std::pair<Value, Value>, 2>{std::pair(a, b), std::pair(b, a)};
    };
    auto isProduct = [&](Value value, Value x, Value y) {
      auto [first, second] = orders(product(value));
      return first == std::pair(x, y) || second == std::pair(x, y);
    };
    for (auto [a, cos] : orders(product(difference.getA())))
      for (auto [b, sin] : orders(product(difference.getB()))) {
        bool fits = (isProduct(sum.getA(), b, cos) && isProduct(sum.getB(), a, sin)) ||
                    (isProduct(sum.getB(), b, cos) && isProduct(sum.getA(), a, sin));
        // Angles follow from the positions alone; what is rotated does not.
        if (fits && samples->data(cos, 0) && samples->data(sin, 0) && !samples->data(a, 0))
          return Turn{a, b, cos, sin};
      }
    return std::nullopt;
  }

  /// Element \p index of the pairs [.., 2] that the last dimension of a value was cut into: that
  /// value.
  Value matchPairPart(Value value, int64_t index) {
    auto squeeze = value.getDefiningOp<SqueezeOp>();
    int64_t start, count;
    Value pairs = squeeze ? matchLastSlice(squeeze.getX(), start, count) : Value();
    auto reshape = pairs ? pairs.getDefiningOp<ReshapeOp>() : nullptr;
    const Shape *in = reshape ? samples->shape(reshape.getX(), 0) : nullptr,
                *out = reshape ? samples->shape(pairs, 0) : nullptr;
    bool fits = in && out && start == index && count == 1 && out->size() == in->size() + 1 &&
                out->back() == 2 && 2 * (*out)[in->size() - 1] == in->back() &&
                samples->shape(value, 0) && samples->shape(value, 0)->size() == in->size();
    return fits ? peelCasts(reshape.getX()) : Value();
  }

  /// Halves that are turned and joined, or pairs that are turned, put beside each other and folded.
  void raise(ConcatOp joined, OpBuilder &builder) {
    const Shape *shape = samples->shape(joined.getY(), 0);
    if (joined.getParts().size() != 2 || !shape ||
        placeAxis(joined.getAxis(), shape->size()) != static_cast<int64_t>(shape->size()) - 1)
      return;
    Value low = joined.getParts()[0], high = joined.getParts()[1], result = joined.getY(), x;
    bool isInterleaved = false;
    if (auto first = low.getDefiningOp<UnsqueezeOp>(), second = high.getDefiningOp<UnsqueezeOp>();
        first && second && shape->back() == 2) {
      auto turn = matchTurn(first.getX(), second.getX());
      x = turn ? matchPairPart(turn->a, 0) : Value();
      ReshapeOp folded; // the only use beside those of the shape
      for (Operation *user : result.getUsers())
        if (!isa<ShapeOp>(user)) {
          if (folded)
            return;
          folded = dyn_cast<ReshapeOp>(user);
          if (!folded)
            return;
        }
      const Shape *own = x ? samples->shape(x, 0) : nullptr;
      if (!own || x != matchPairPart(turn->b, 1) || !folded || !samples->shape(folded.getY(), 0) ||
          *samples->shape(folded.getY(), 0) != *own)
        return;
      isInterleaved = true;
      replace(folded, folded.getY(), x, turn->cos, turn->sin, isInterleaved, builder);
      return;
    }
    auto turn = matchTurn(low, high);
    int64_t lowStart = 0, lowCount = 0, highStart = 0, highCount = 0;
    x = turn ? matchLastSlice(turn->a, lowStart, lowCount) : Value();
    bool areHalves = x && x == matchLastSlice(turn->b, highStart, highCount) && lowStart == 0 &&
                     lowCount == highCount && highStart == lowCount &&
                     samples->shape(x, 0)->back() == 2 * lowCount &&
                     *samples->shape(x, 0) == *shape;
    if (areHalves)
      replace(joined, result, x, turn->cos, turn->sin, isInterleaved, builder);
  }

  void replace(Operation *old, Value result, Value x, Value cos, Value sin, bool isInterleaved,
               OpBuilder &builder) {
    if (x.getType() != result.getType() && getElementTypeOrSelf(x) != getElementTypeOrSelf(result))
      return;
    builder.setInsertionPoint(old);
    size_t rank = samples->shape(x, 0)->size();
    auto rope = RotaryEmbeddingOp::create(builder, old->getLoc(), result.getType(), x, cos, sin,
                                          /*position_ids=*/Value(), isInterleaved,
                                          /*num_heads=*/rank == 3 ? 1 : 0, /*rotary_dim=*/0);
    samples->extend(rope, old);
    result.replaceAllUsesWith(rope.getY());
    ++rotations;
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
