//===- RaiseActivation.cpp - llmc-raise-activation ----------------------------===//

#include "compiler/passes/raise/Match.h"
#include "compiler/passes/raise/Passes.h"
#include "compiler/passes/raise/SampleEvaluation.h"

#include <cmath>

namespace llmc::raise {
#define GEN_PASS_DEF_RAISEACTIVATIONPASS
#include "compiler/passes/raise/RaisePasses.h.inc"
} // namespace llmc::raise

using namespace mlir;
using namespace llmc;
using namespace llmc::graph;
using namespace llmc::raise;

namespace {

/// A product taken apart: its constant factors multiplied up, the other factors in a list.
struct Factors {
  double scalar = 1;
  SmallVector<Value> values;
};

struct RaiseActivation : raise::impl::RaiseActivationPassBase<RaiseActivation> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isDeclaration())
      return;
    auto &samples = getAnalysis<SampleEvaluation>();
    OpBuilder builder(&getContext());
    for (Operation &op : llvm::make_early_inc_range(func.getBody().front())) {
      auto product = dyn_cast<BinaryOp>(op);
      if (!product || product.getKind() != BinaryKind::Mul)
        continue;
      Factors factors;
      collect(product, factors, 0);
      for (UnaryKind kind : {UnaryKind::Silu, UnaryKind::GeluErf, UnaryKind::GeluTanh}) {
        Value x = match(kind, factors);
        if (!x || x.getType() != product.getType())
          continue;
        builder.setInsertionPoint(product);
        auto unary = UnaryOp::create(builder, product.getLoc(), product.getType(), kind, x);
        samples.extend(unary, product);
        product.getY().replaceAllUsesWith(unary.getY());
        ++activations;
        break;
      }
    }
    markAnalysesPreserved<SampleEvaluation>();
  }

  /// Flattens nested products (at most a few deep: an activation has three factors).
  static void collect(Value value, Factors &factors, unsigned depth) {
    if (auto scalar = scalarConstant(value)) {
      factors.scalar *= *scalar;
      return;
    }
    if (depth < 4) {
      if (auto product = asBinary(value, BinaryKind::Mul)) {
        collect(product.getA(), factors, depth + 1);
        collect(product.getB(), factors, depth + 1);
        return;
      }
      if (auto quotient = asBinary(value, BinaryKind::Div))
        if (auto divisor = scalarConstant(quotient.getB()); divisor && *divisor != 0) {
          factors.scalar /= *divisor;
          collect(quotient.getA(), factors, depth + 1);
          return;
        }
    }
    factors.values.push_back(value);
  }

  /// The x of which the product of the factors is the activation, or null.
  static Value match(UnaryKind kind, const Factors &factors) {
    if (factors.values.size() != 2)
      return {};
    for (auto [x, gate] : {std::pair(factors.values[0], factors.values[1]),
                           std::pair(factors.values[1], factors.values[0])}) {
      if (kind == UnaryKind::Silu) {
        auto sigmoid = asUnary(gate, UnaryKind::Sigmoid);
        if (sigmoid && factors.scalar == 1.0 && peelCasts(sigmoid.getX()) == peelCasts(x))
          return x;
        continue;
      }
      auto sum = splitScalar(gate, BinaryKind::Add);
      if (!sum || sum->scalar != 1.0 || !isNear(factors.scalar, 0.5))
        continue;
      bool isErf = kind == UnaryKind::GeluErf;
      auto inner = asUnary(sum->value, isErf ? UnaryKind::Erf : UnaryKind::Tanh);
      if (inner && (isErf ? isScaled(inner.getX(), x) : isCubic(inner.getX(), x)))
        return x;
    }
    return {};
  }

  /// value = x / sqrt(2).
  static bool isScaled(Value value, Value x) {
    WithScalar scaled = peelScale(value);
    // f16 constants are off by up to 5e-4.
    return isNear(scaled.scalar, M_SQRT1_2, 1e-3) && peelCasts(scaled.value) == peelCasts(x);
  }

  /// value = sqrt(2 / pi) * x * (1 + 0.044715 x^2): the same, factored (Bloom).
  static bool isFactoredCubic(Value value, Value x) {
    Factors factors;
    collect(value, factors, 0);
    if (factors.values.size() != 2 || !isNear(factors.scalar, 0.7978845608028654, 1e-3))
      return false;
    for (auto [linear, inner] : {std::pair(factors.values[0], factors.values[1]),
                                 std::pair(factors.values[1], factors.values[0])}) {
      auto sum = splitScalar(inner, BinaryKind::Add);
      if (peelCasts(linear) != peelCasts(x) || !sum || sum->scalar != 1.0)
        continue;
      Factors square;
      collect(sum->value, square, 0);
      if (isNear(square.scalar, 0.044715, 1e-3) && isPowerOf(square, x, 2))
        return true;
    }
    return false;
  }

  /// Whether the factors, their scalar apart, are x^exponent.
  static bool isPowerOf(const Factors &factors, Value x, unsigned exponent) {
    if (factors.values.size() == 1)
      if (auto power = asBinary(factors.values[0], BinaryKind::Pow))
        return scalarConstant(power.getB()) == exponent && peelCasts(power.getA()) == peelCasts(x);
    return factors.values.size() == exponent &&
           llvm::all_of(factors.values, [&](Value v) { return peelCasts(v) == peelCasts(x); });
  }

  /// value = sqrt(2 / pi) * (x + 0.044715 x^3).
  static bool isCubic(Value value, Value x) {
    if (isFactoredCubic(value, x))
      return true;
    WithScalar scaled = peelScale(value);
    auto sum = asBinary(scaled.value, BinaryKind::Add);
    if (!sum || !isNear(scaled.scalar, 0.7978845608028654, 1e-3))
      return false;
    for (auto [linear, cubic] :
         {std::pair(sum.getA(), sum.getB()), std::pair(sum.getB(), sum.getA())}) {
      if (peelCasts(linear) != peelCasts(x))
        continue;
      Factors factors;
      collect(cubic, factors, 0);
      if (isNear(factors.scalar, 0.044715, 1e-3) && isPowerOf(factors, x, 3))
        return true;
    }
    return false;
  }
};

} // namespace
