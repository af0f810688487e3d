//===- RaiseNorm.cpp - llmc-raise-norm ----------------------------------------===//

#include "compiler/passes/raise/Match.h"
#include "compiler/passes/raise/Passes.h"
#include "compiler/passes/raise/SampleEvaluation.h"

namespace llmc::raise {
#define GEN_PASS_DEF_RAISENORMPASS
#include "compiler/passes/raise/RaisePasses.h.inc"
} // namespace llmc::raise

using namespace mlir;
using namespace llmc;
using namespace llmc::graph;
using namespace llmc::raise;

namespace {

/// A value divided by the root of its mean square.
struct Normalized {
  Value x; ///< Before casts are peeled.
  double epsilon;
};

struct RaiseNorm : raise::impl::RaiseNormPassBase<RaiseNorm> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isDeclaration())
      return;
    samples = &getAnalysis<SampleEvaluation>();
    OpBuilder builder(&getContext());
    for (Operation &op : llvm::make_early_inc_range(func.getBody().front()))
      if (auto product = dyn_cast<BinaryOp>(op); product && product.getKind() == BinaryKind::Mul)
        raise(product, builder);
    markAnalysesPreserved<SampleEvaluation>();
  }

  /// Whether a reduce averages over the last dimension and keeps it.
  bool isMeanOfLast(ReduceOp reduce) {
    const Shape *shape = samples->shape(reduce.getX(), 0);
    auto axes = intConstant(reduce.getAxes());
    if (!shape || !axes || axes->size() != 1 || reduce.getKind() != ReduceKind::Mean ||
        !reduce.getKeepdims())
      return false;
    return placeAxis(axes->front(), shape->size()) == static_cast<int64_t>(shape->size()) - 1;
  }

  /// mean(x * x) over the last dimension: x.
  Value matchMeanSquare(Value value) {
    auto mean = peelCasts(value).getDefiningOp<ReduceOp>();
    if (!mean || !isMeanOfLast(mean))
      return {};
    if (auto power = asBinary(mean.getX(), BinaryKind::Pow))
      return scalarConstant(power.getB()) == 2.0 ? power.getA() : Value();
    if (auto square = asBinary(mean.getX(), BinaryKind::Mul))
      return peelCasts(square.getA()) == peelCasts(square.getB()) ? square.getA() : Value();
    return {};
  }

  /// sqrt(mean(x^2) + epsilon).
  std::optional<Normalized> matchRoot(Value value) {
    auto root = asUnary(value, UnaryKind::Sqrt);
    if (!root)
      return std::nullopt;
    auto sum = splitScalar(root.getX(), BinaryKind::Add);
    if (!sum)
      return std::nullopt;
    Value x = matchMeanSquare(sum->value);
    return x ? std::optional(Normalized{x, sum->scalar}) : std::nullopt;
  }

  /// 1 / sqrt(mean(x^2) + epsilon).
  std::optional<Normalized> matchInverseRoot(Value value) {
    if (auto reciprocal = asUnary(value, UnaryKind::Reciprocal))
      return matchRoot(reciprocal.getX());
    if (auto quotient = asBinary(value, BinaryKind::Div);
        quotient && scalarConstant(quotient.getA()) == 1.0)
      return matchRoot(quotient.getB());
    if (auto power = asBinary(value, BinaryKind::Pow);
        power && scalarConstant(power.getB()) == -0.5)
      if (auto sum = splitScalar(power.getA(), BinaryKind::Add))
        if (Value x = matchMeanSquare(sum->value))
          return Normalized{x, sum->scalar};
    return std::nullopt;
  }

  std::optional<Normalized> matchNormalized(Value value) {
    if (auto quotient = asBinary(value, BinaryKind::Div)) {
      auto root = matchRoot(quotient.getB());
      return root && peelCasts(root->x) == peelCasts(quotient.getA()) ? root : std::nullopt;
    }
    auto product = asBinary(value, BinaryKind::Mul);
    if (!product)
      return std::nullopt;
    for (auto [x, inverse] :
         {std::pair(product.getA(), product.getB()), std::pair(product.getB(), product.getA())})
      if (auto root = matchInverseRoot(inverse); root && peelCasts(root->x) == peelCasts(x))
        return root;
    return std::nullopt;
  }

  /// The value whose mean is subtracted in x - mean(x), or null.
  Value matchCentered(Value value) {
    auto difference = asBinary(value, BinaryKind::Sub);
    if (!difference)
      return {};
    auto mean = peelCasts(difference.getB()).getDefiningOp<ReduceOp>();
    if (!mean || !isMeanOfLast(mean) || peelCasts(mean.getX()) != peelCasts(difference.getA()))
      return {};
    return difference.getA();
  }

  /// A one-dimensional weight of the size of x's last dimension.
  bool isScaleFor(Value weight, Value x) {
    const Shape *own = samples->shape(weight, 0), *of = samples->shape(x, 0);
    return own && of && own->size() == 1 && !of->empty() && own->front() == of->back() &&
           isWeightLike(weight);
  }

  /// Of x with and without its cast, the one with the wanted element type, else x without: a cast
  /// after the norm makes up for it then (a residual stream kept in f32 between layers in f16).
  static Value withElementType(Value x, Value like) {
    return getElementTypeOrSelf(x) == getElementTypeOrSelf(like) ? x : peelCasts(x);
  }

  void raise(BinaryOp product, OpBuilder &builder) {
    for (auto [weight, value] :
         {std::pair(product.getA(), product.getB()), std::pair(product.getB(), product.getA())}) {
      auto normalized = matchNormalized(value);
      if (!normalized || !isScaleFor(weight, normalized->x))
        continue;
      Value centered = matchCentered(normalized->x);
      Operation *last = product;
      Value bias;
      if (centered && product->hasOneUse())
        if (auto sum = dyn_cast<BinaryOp>(*product->user_begin());
            sum && sum.getKind() == BinaryKind::Add) {
          Value other = sum.getA() == product.getY() ? sum.getB() : sum.getA();
          if (isScaleFor(other, normalized->x)) {
            bias = other;
            last = sum;
          }
        }
      Value x = withElementType(centered ? centered : normalized->x, last->getResult(0));
      builder.setInsertionPoint(last);
      FloatAttr epsilon = builder.getF32FloatAttr(static_cast<float>(normalized->epsilon));
      IntegerAttr axis = builder.getI64IntegerAttr(-1);
      Type type = last->getResult(0).getType();
      Type own = getElementTypeOrSelf(x) == getElementTypeOrSelf(type) ? type : x.getType();
      Location loc = last->getLoc();
      Value norm =
          centered ? LayerNormOp::create(builder, loc, own, x, weight, bias, axis, epsilon).getY()
                   : RmsNormOp::create(builder, loc, own, x, weight, axis, epsilon).getY();
      samples->extend(norm.getDefiningOp(), last);
      if (own != type) {
        norm = CastOp::create(builder, loc, type, norm).getY();
        samples->extend(norm.getDefiningOp(), last);
      }
      last->getResult(0).replaceAllUsesWith(norm);
      ++norms;
      return;
    }
  }

  SampleEvaluation *samples = nullptr;
};

} // namespace
