//===- RaiseAttention.cpp - llmc-raise-attention --------------------------------===//

#include "compiler/passes/raise/Match.h"
#include "compiler/passes/raise/Passes.h"
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
  Value mask;                  ///< Added, or i1 and chosen by.
  bool isMaskInverted = false; ///< i1: true means masked.
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

  /// Follows a value to the product, outermost operation first.
  static bool matchScores(Value value, Scores &scores, unsigned depth) {
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
    // A mask under a factor would be scaled with the scores; exporters put it outside.
    if (scores.mask || scores.scale != 1 || scores.softcap != 0)
      return false;
    if (auto sum = asBinary(value, BinaryKind::Add)) {
      for (auto [inner, mask] :
           {std::pair(sum.getA(), sum.getB()), std::pair(sum.getB(), sum.getA())}) {
        Scores attempt = scores;
        attempt.mask = mask;
        if (matchScores(inner, attempt, depth + 1)) {
          scores = attempt;
          return true;
        }
      }
      return false;
    }
    if (auto select = value.getDefiningOp<SelectOp>()) {
      bool isInverted = isMasking(select.getA());
      if (!isInverted && !isMasking(select.getB()))
        return false;
      scores.mask = select.getCondition();
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

  void raise(MatMulOp output, OpBuilder &builder) {
    SoftmaxOp softmax = matchSoftmax(output.getA());
    Scores scores;
    if (!softmax || !matchScores(softmax.getX(), scores, 0) || rankOf(output.getY()) != 4 ||
        rankOf(scores.product.getB()) != 4)
      return;
    Location loc = output.getLoc();
    builder.setInsertionPoint(output);
    Operation *before = output->getPrevNode();
    WithScalar q = peelScale(scores.product.getA()), k = peelScale(scores.product.getB());
    double scale = scores.scale * q.scalar * k.scalar;
    // The product takes the keys as [batch, heads, size, keys].
    static constexpr int64_t swap[] = {0, 1, 3, 2};
    auto turned = k.value.getDefiningOp<TransposeOp>();
    Value keys = turned && turned.getPerm() == ArrayRef<int64_t>(swap)
                     ? turned.getX()
                     : TransposeOp::create(builder, loc,
                                           UnrankedTensorType::get(getElementTypeOrSelf(k.value)),
                                           k.value, ArrayRef<int64_t>(swap))
                           .getY();
    Type element = getElementTypeOrSelf(output.getY());
    Value mask = scores.mask;
    if (mask && scores.isMaskInverted)
      mask = UnaryOp::create(builder, loc, mask.getType(), UnaryKind::Not, mask).getY();
    auto f32 = [&](double number) { return builder.getF32FloatAttr(static_cast<float>(number)); };
    auto attention = AttentionOp::create(
        builder, loc, output.getType(), /*present_key=*/Type(), /*present_value=*/Type(),
        /*qk=*/Type(), castTo(element, q.value, builder, loc), castTo(element, keys, builder, loc),
        castTo(element, output.getB(), builder, loc), mask, /*past_key=*/Value(),
        /*past_value=*/Value(), /*nonpad_kv_seqlen=*/Value(),
        /*is_causal=*/UnitAttr(), f32(scale), f32(scores.softcap), builder.getI64IntegerAttr(0),
        builder.getI64IntegerAttr(0), builder.getI64IntegerAttr(0), builder.getI64IntegerAttr(0));
    for (Operation *op = before->getNextNode(); op != output; op = op->getNextNode())
      samples->extend(op, output);
    output.getY().replaceAllUsesWith(attention.getY());
    ++attentions;
  }

  SampleEvaluation *samples = nullptr;
};

} // namespace
