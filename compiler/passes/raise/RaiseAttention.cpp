//===- RaiseAttention.cpp - llmc-raise-attention --------------------------------===//

#include "compiler/passes/raise/Match.h"
#include "compiler/passes/raise/Passes.h"
#include "compiler/passes/raise/RouterMatch.h"
#include "compiler/passes/raise/SampleEvaluation.h"

namespace llmc::raise {
#define GEN_PASS_DEF_RAISEATTENTIONPASS
#include "compiler/passes/raise/RaisePasses.h.inc"
} // namespace llmc::raise

using namespace mlir;
using namespace llmc;
using namespace llmc::graph;
using namespace llmc::raise;

namespace {

/// What is found on the way from a softmax's input to the product of queries and keys.
struct Scores {
  MatMulOp product;
  double scale = 1;
  double softcap = 0;
  SmallVector<Value, 2> masks; ///< Added, or one of i1 and chosen by.
  bool isMaskInverted = false; ///< i1: true means masked.
  /// Products of [batch * heads, ...] that become [batch, heads, ...] before the softmax.
  ReshapeOp unfold;
  Value sinks; ///< [heads]: scores of a key without a value.
};

struct RaiseAttention : raise::impl::RaiseAttentionPassBase<RaiseAttention> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isDeclaration())
      return;
    samples = &getAnalysis<SampleEvaluation>();
    OpBuilder builder(&getContext());
    for (Operation &op : llvm::make_early_inc_range(func.getBody().front()))
      if (auto product = dyn_cast<MatMulOp>(op))
        raise(product, builder);
    markAnalysesPreserved<SampleEvaluation>();
  }

  int64_t rankOf(Value value) const {
    const Shape *shape = samples->shape(value, 0);
    return shape ? static_cast<int64_t>(shape->size()) : -1;
  }

  /// The softmax of which the value is the result, after zeros in place of NaN where there are
  /// such.
  SoftmaxOp matchSoftmax(Value value) const {
    value = peelCasts(value);
    // Folded again: [batch, heads, ...] to [batch * heads, ...].
    if (auto fold = value.getDefiningOp<ReshapeOp>(); fold && rankOf(value) == 3)
      value = peelCasts(fold.getX());
    if (auto select = value.getDefiningOp<SelectOp>()) {
      auto isNaN = select.getCondition().getDefiningOp<UnaryOp>();
      if (!isNaN || isNaN.getKind() != UnaryKind::IsNaN || scalarConstant(select.getA()) != 0.0 ||
          isNaN.getX() != select.getB())
        return nullptr;
      value = peelCasts(select.getB());
    }
    auto softmax = value.getDefiningOp<SoftmaxOp>();
    if (!softmax || softmax.getLog())
      return nullptr;
    int64_t rank = rankOf(softmax.getX());
    return placeAxis(softmax.getAxis(), rank) == rank - 1 ? softmax : nullptr;
  }

  /// A number so small that it can only mean "masked".
  static bool isMasking(Value value) {
    auto number = scalarConstant(value);
    return number && *number <= -1e4;
  }

  /// Whether a reshape takes [a * b, c, d] to [a, b, c, d].
  bool isUnfold(ReshapeOp reshape) const {
    const Shape *from = samples->shape(reshape.getX(), 0), *to = samples->shape(reshape.getY(), 0);
    return from && to && from->size() == 3 && to->size() == 4 && (*to)[2] == (*from)[1] &&
           (*to)[3] == (*from)[2];
  }

  /// Follows a value to the product, outermost operation first.
  bool matchScores(Value value, Scores &scores, unsigned depth) {
    value = peelCasts(value);
    if (depth > 8)
      return false;
    if (auto product = value.getDefiningOp<MatMulOp>()) {
      scores.product = product;
      return true;
    }
    WithScalar scaled = peelScale(value);
    if (scaled.value != value) {
      scores.scale *= scaled.scalar;
      return matchScores(scaled.value, scores, depth + 1);
    }
    if (auto tanh = asUnary(value, UnaryKind::Tanh)) {
      // c * tanh(s / c): the factor found so far is c, and the division inside takes it away again.
      if (scores.softcap != 0 || scores.scale <= 0)
        return false;
      scores.softcap = scores.scale;
      return matchScores(tanh.getX(), scores, depth + 1);
    }
    if (auto reshape = value.getDefiningOp<ReshapeOp>();
        reshape && !scores.unfold && isUnfold(reshape)) {
      scores.unfold = reshape;
      return matchScores(reshape.getX(), scores, depth + 1);
    }
    // A mask under a factor would be scaled with the scores; exporters put it outside.
    if (scores.scale != 1 || scores.softcap != 0)
      return false;
    if (auto sum = asBinary(value, BinaryKind::Add)) {
      for (auto [inner, mask] :
           {std::pair(sum.getA(), sum.getB()), std::pair(sum.getB(), sum.getA())}) {
        Scores attempt = scores;
        attempt.masks.push_back(mask);
        if (matchScores(inner, attempt, depth + 1)) {
          scores = attempt;
          return true;
        }
      }
      return false;
    }
    if (auto select = value.getDefiningOp<SelectOp>()) {
      bool isInverted = isMasking(select.getA());
      if (!scores.masks.empty() || (!isInverted && !isMasking(select.getB())))
        return false;
      scores.masks.push_back(select.getCondition());
      scores.isMaskInverted = isInverted;
      return matchScores(isInverted ? select.getB() : select.getA(), scores, depth + 1);
    }
    return false;
  }

  /// The value with the wanted element type, by a cast if need be.
  static Value castTo(Type element, Value value, OpBuilder &builder, Location loc) {
    if (getElementTypeOrSelf(value) == element)
      return value;
    return CastOp::create(builder, loc, UnrankedTensorType::get(element), value).getY();
  }

  /// Dimensions [start, end) of \p value.
  static Value sizes(Value value, int64_t start, int64_t end, OpBuilder &builder, Location loc) {
    return ShapeOp::create(builder, loc, RankedTensorType::get({end - start}, builder.getI64Type()),
                           value, start, builder.getI64IntegerAttr(end));
  }

  /// \p value as [batch, heads, ...] where the products are of [batch * heads, ...].
  static Value unfolded(Value value, ReshapeOp unfold, OpBuilder &builder, Location loc) {
    if (!unfold)
      return value;
    auto shape = ConcatOp::create(
        builder, loc, RankedTensorType::get({4}, builder.getI64Type()),
        ValueRange{sizes(unfold.getY(), 0, 2, builder, loc), sizes(value, 1, 3, builder, loc)},
        /*axis=*/0);
    return ReshapeOp::create(builder, loc, UnrankedTensorType::get(getElementTypeOrSelf(value)),
                             value, shape, /*allowzero=*/UnitAttr())
        .getY();
  }

  /// The sum of the masks as [.., new tokens, keys]; null for none.
  Value joinMasks(const Scores &scores, OpBuilder &builder, Location loc) const {
    Value sum;
    for (Value mask : scores.masks) {
      // One that was added before the products were unfolded.
      Value own = rankOf(mask) == 3 ? unfolded(mask, scores.unfold, builder, loc) : mask;
      sum = sum ? BinaryOp::create(builder, loc, UnrankedTensorType::get(getElementTypeOrSelf(sum)),
                                   BinaryKind::Add, sum, own)
                      .getY()
                : own;
    }
    return sum;
  }

  int64_t lastSize(Value value, unsigned sample) const {
    const Shape *shape = samples->shape(value, sample);
    return shape && !shape->empty() ? shape->back() : -1;
  }

  /// slice(softmax(x), all but the last key), x = concat(scores, sinks) less its largest element:
  /// the softmax, the scores, and [heads] of which the sinks are a view.
  SoftmaxOp matchSinks(Value value, Value &scores, Value &sinks) const {
    auto slice = peelCasts(value).getDefiningOp<SliceOp>();
    SoftmaxOp softmax = slice ? matchSoftmax(slice.getX()) : nullptr;
    if (!softmax)
      return nullptr;
    Value x = peelCasts(softmax.getX());
    if (auto difference = asBinary(x, BinaryKind::Sub)) {
      auto largest = matchLastReduce(difference.getB(), ReduceKind::Max, *samples);
      if (!largest || !largest.getKeepdims() ||
          peelCasts(largest.getX()) != peelCasts(difference.getA()))
        return nullptr;
      x = peelCasts(difference.getA());
    }
    auto joined = x.getDefiningOp<ConcatOp>();
    if (!joined || joined.getParts().size() != 2 ||
        placeAxis(joined.getAxis(), rankOf(joined.getY())) != rankOf(joined.getY()) - 1)
      return nullptr;
    // The slice must be exactly the scores' part.
    for (unsigned i = 0; i < samples->samples().size(); ++i) {
      SmallVector<Facts> facts;
      for (Value operand : slice->getOperands()) {
        facts.emplace_back();
        facts.back().data = operand == slice.getX() ? nullptr : samples->data(operand, i);
      }
      const Shape *shape = samples->shape(slice.getX(), i);
      auto ranges = shape ? sliceRanges(slice, facts, *shape) : std::nullopt;
      if (!ranges)
        return nullptr;
      for (auto [d, range] : llvm::enumerate(*ranges))
        if (range.start != 0 || range.step != 1 ||
            range.count != (*shape)[d] - (d + 1 == ranges->size() ? 1 : 0))
          return nullptr;
      if (lastSize(joined.getParts()[1], i) != 1)
        return nullptr;
    }
    sinks = peelCasts(joined.getParts()[1]);
    if (auto expand = sinks.getDefiningOp<ExpandOp>())
      sinks = peelCasts(expand.getX());
    scores = joined.getParts()[0];
    return isWeightLike(sinks) ? softmax : nullptr;
  }

  /// The sinks [1, heads, 1, 1] as [heads].
  Value flatSinks(Value sinks, OpBuilder &builder, Location loc) const {
    auto shape = DenseIntElementsAttr::get(RankedTensorType::get({1}, builder.getI64Type()),
                                           ArrayRef<int64_t>{-1});
    auto constant = ConstantOp::create(builder, loc, shape);
    return ReshapeOp::create(builder, loc, UnrankedTensorType::get(getElementTypeOrSelf(sinks)),
                             sinks, constant, UnitAttr())
        .getY();
  }

  void raise(MatMulOp output, OpBuilder &builder) {
    SoftmaxOp softmax = matchSoftmax(output.getA());
    Value raw = softmax ? softmax.getX() : Value(), sinks;
    if (!softmax)
      softmax = matchSinks(output.getA(), raw, sinks);
    Scores scores;
    if (!softmax || !matchScores(raw, scores, 0))
      return;
    int64_t rank = scores.unfold ? 3 : 4;
    if (rankOf(output.getY()) != rank || rankOf(output.getB()) != rank ||
        rankOf(scores.product.getB()) != rank ||
        (scores.masks.size() > 1 && llvm::any_of(scores.masks, [](Value mask) {
           return !isa<FloatType>(getElementTypeOrSelf(mask));
         })))
      return;
    Location loc = output.getLoc();
    builder.setInsertionPoint(output);
    Operation *before = output->getPrevNode();
    if (sinks)
      scores.sinks = flatSinks(sinks, builder, loc);
    WithScalar q = peelScale(scores.product.getA()), k = peelScale(scores.product.getB());
    double scale = scores.scale * q.scalar * k.scalar;
    // The product takes the keys as [batch, heads, size, keys].
    ReshapeOp unfold = scores.unfold;
    SmallVector<int64_t> swap =
        unfold ? SmallVector<int64_t>{0, 2, 1} : SmallVector<int64_t>{0, 1, 3, 2};
    auto turned = k.value.getDefiningOp<TransposeOp>();
    Value keys = turned && ArrayRef<int64_t>(turned.getPerm()) == ArrayRef<int64_t>(swap)
                     ? turned.getX()
                     : TransposeOp::create(builder, loc,
                                           UnrankedTensorType::get(getElementTypeOrSelf(k.value)),
                                           k.value, swap)
                           .getY();
    Type element = getElementTypeOrSelf(output.getY());
    Value mask = joinMasks(scores, builder, loc);
    if (mask && scores.isMaskInverted)
      mask = UnaryOp::create(builder, loc, mask.getType(), UnaryKind::Not, mask).getY();
    auto f32 = [&](double number) { return builder.getF32FloatAttr(static_cast<float>(number)); };
    auto attention = AttentionOp::create(
        builder, loc, unfold ? Type(UnrankedTensorType::get(element)) : output.getType(),
        /*present_key=*/Type(), /*present_value=*/Type(), /*qk=*/Type(),
        castTo(element, unfolded(q.value, unfold, builder, loc), builder, loc),
        castTo(element, unfolded(keys, unfold, builder, loc), builder, loc),
        castTo(element, unfolded(output.getB(), unfold, builder, loc), builder, loc), mask,
        /*past_key=*/Value(),
        /*past_value=*/Value(), /*nonpad_kv_seqlen=*/Value(), scores.sinks,
        /*is_causal=*/UnitAttr(), f32(scale), f32(scores.softcap), builder.getI64IntegerAttr(0),
        builder.getI64IntegerAttr(0), builder.getI64IntegerAttr(0), builder.getI64IntegerAttr(0));
    Value result = attention.getY();
    if (unfold) {
      // As the product gave it: the shape of its own first operand's rows and second's columns.
      auto shape = ConcatOp::create(builder, loc, RankedTensorType::get({3}, builder.getI64Type()),
                                    ValueRange{sizes(output.getA(), 0, 2, builder, loc),
                                               sizes(output.getB(), 2, 3, builder, loc)},
                                    /*axis=*/0);
      result = ReshapeOp::create(builder, loc, output.getType(), result, shape,
                                 /*allowzero=*/UnitAttr())
                   .getY();
    }
    for (Operation *op = before->getNextNode(); op != output; op = op->getNextNode())
      samples->extend(op, output);
    output.getY().replaceAllUsesWith(result);
    ++attentions;
  }

  SampleEvaluation *samples = nullptr;
};

} // namespace
