//===- ActivationOps.cpp - activation functions -------------------------------===//
//
// Those that the graph dialect has no operation for are written with the formula of their
// specification.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/onnx/Operators.h"

using namespace llmc::onnx;
using namespace llmc::graph;
using namespace mlir;

namespace {

template <UnaryKind kind> LogicalResult unary(Node &node) {
  node.set(0, node.unary(kind, node.input(0)));
  return success();
}

Value number(Node &node, double value) { return node.scalar(node.elementType(), value); }

Value select(Node &node, Value condition, Value a, Value b) {
  return node.emit<SelectOp>(node.elementType(), condition, a, b);
}

LogicalResult gelu(Node &node) {
  llvm::StringRef how = node.stringAttr("approximate", "none");
  if (how != "none" && how != "tanh")
    return node.fail("approximate is '" + how + "'; supported: none, tanh");
  node.set(0, node.unary(how == "tanh" ? UnaryKind::GeluTanh : UnaryKind::GeluErf, node.input(0)));
  return success();
}

/// x * sigmoid(alpha * x)
LogicalResult swish(Node &node, float alpha) {
  Value x = node.input(0);
  if (alpha == 1)
    node.set(0, node.unary(UnaryKind::Silu, x));
  else
    node.set(0, node.binary(BinaryKind::Mul, x,
                            node.unary(UnaryKind::Sigmoid,
                                       node.binary(BinaryKind::Mul, number(node, alpha), x))));
  return success();
}

LogicalResult swish24(Node &node) { return swish(node, node.floatAttr("alpha", 1)); }
LogicalResult quickGelu(Node &node) { return swish(node, node.floatAttr("alpha", 1.702f)); }

/// swish(gate, alpha) * value, with the gate first (ONNX 28).
LogicalResult swiGlu(Node &node) {
  float alpha = node.floatAttr("alpha", 1);
  Value gate = node.input(0);
  Value swished =
      alpha == 1 ? node.unary(UnaryKind::Silu, gate)
                 : node.binary(BinaryKind::Mul, gate,
                               node.unary(UnaryKind::Sigmoid,
                                          node.binary(BinaryKind::Mul, number(node, alpha), gate)));
  node.set(0, node.binary(BinaryKind::Mul, swished, node.input(1)));
  return success();
}

Value isNegative(Node &node, Value x) { return node.compare(CompareKind::Lt, x, number(node, 0)); }

LogicalResult leakyRelu(Node &node) {
  float alpha = node.floatAttr("alpha", 0.01f);
  Value x = node.input(0);
  node.set(0, select(node, isNegative(node, x),
                     node.binary(BinaryKind::Mul, number(node, alpha), x), x));
  return success();
}

LogicalResult pRelu(Node &node) {
  Value x = node.input(0);
  node.set(0, select(node, isNegative(node, x), node.binary(BinaryKind::Mul, node.input(1), x), x));
  return success();
}

LogicalResult elu(Node &node) {
  float alpha = node.floatAttr("alpha", 1);
  Value x = node.input(0);
  Value curve =
      node.binary(BinaryKind::Mul, number(node, alpha),
                  node.binary(BinaryKind::Sub, node.unary(UnaryKind::Exp, x), number(node, 1)));
  node.set(0, select(node, isNegative(node, x), curve, x));
  return success();
}

Value hardSigmoidOf(Node &node, Value x, float alpha, float beta) {
  Value line = node.binary(BinaryKind::Add, node.binary(BinaryKind::Mul, number(node, alpha), x),
                           number(node, beta));
  return node.emit<ClipOp>(node.elementType(), line, number(node, 0), number(node, 1));
}

LogicalResult hardSigmoid(Node &node) {
  float alpha = node.floatAttr("alpha", 0.2f), beta = node.floatAttr("beta", 0.5f);
  node.set(0, hardSigmoidOf(node, node.input(0), alpha, beta));
  return success();
}

LogicalResult hardSwish(Node &node) {
  Value x = node.input(0);
  node.set(0, node.binary(BinaryKind::Mul, x, hardSigmoidOf(node, x, 1.0f / 6.0f, 0.5f)));
  return success();
}

LogicalResult mish(Node &node) {
  Value x = node.input(0);
  node.set(0, node.binary(BinaryKind::Mul, x,
                          node.unary(UnaryKind::Tanh, node.unary(UnaryKind::Softplus, x))));
  return success();
}

/// Contrib: gelu(x + bias); FastGelu's bias may be missing.
template <UnaryKind kind> LogicalResult biasGelu(Node &node) {
  Value x = node.input(0);
  if (Value bias = node.input(1))
    x = node.binary(BinaryKind::Add, x, bias);
  node.set(0, node.unary(kind, x));
  return success();
}

/// max(0, x) + min(0, alpha (exp(x / alpha) - 1))
LogicalResult celu(Node &node) {
  float alpha = node.floatAttr("alpha", 1);
  Value x = node.input(0), zero = number(node, 0);
  Value curve = node.mul(
      number(node, alpha),
      node.sub(node.unary(UnaryKind::Exp, node.div(x, number(node, alpha))), number(node, 1)));
  node.set(0, node.add(node.binary(BinaryKind::Max, x, zero),
                       node.binary(BinaryKind::Min, curve, zero)));
  return success();
}

LogicalResult selu(Node &node) {
  float alpha = node.floatAttr("alpha", 1.67326319217681884765625f);
  float gamma = node.floatAttr("gamma", 1.05070102214813232421875f);
  Value x = node.input(0);
  Value curve =
      node.mul(number(node, alpha), node.sub(node.unary(UnaryKind::Exp, x), number(node, 1)));
  Value isPositive = node.compare(CompareKind::Gt, x, number(node, 0));
  node.set(0, node.mul(number(node, gamma), select(node, isPositive, x, curve)));
  return success();
}

LogicalResult thresholdedRelu(Node &node) {
  float alpha = node.floatAttr("alpha", 1);
  Value x = node.input(0);
  node.set(0,
           select(node, node.compare(CompareKind::Gt, x, number(node, alpha)), x, number(node, 0)));
  return success();
}

LogicalResult shrink(Node &node) {
  float bias = node.floatAttr("bias", 0), lambda = node.floatAttr("lambd", 0.5f);
  Value x = node.input(0);
  Value isLow = node.compare(CompareKind::Lt, x, number(node, -lambda));
  Value isHigh = node.compare(CompareKind::Gt, x, number(node, lambda));
  Value inner = select(node, isHigh, node.sub(x, number(node, bias)), number(node, 0));
  node.set(0, select(node, isLow, node.add(x, number(node, bias)), inner));
  return success();
}

LogicalResult softsign(Node &node) {
  Value x = node.input(0);
  node.set(0, node.div(x, node.add(number(node, 1), node.unary(UnaryKind::Abs, x))));
  return success();
}

} // namespace

void llmc::onnx::addActivationOps(OperatorTable &table) {
  table.add("", "Sigmoid", {6, 1, 1, 1, unary<UnaryKind::Sigmoid>});
  table.add("", "Tanh", {6, 1, 1, 1, unary<UnaryKind::Tanh>});
  table.add("", "Relu", {6, 1, 1, 1, unary<UnaryKind::Relu>});
  table.add("", "Softplus", {1, 1, 1, 1, unary<UnaryKind::Softplus>});
  table.add("", "Gelu", {20, 1, 1, 1, gelu});
  table.add("", "Swish", {24, 1, 1, 1, swish24});
  table.add("", "SwiGLU", {28, 2, 2, 1, swiGlu});
  table.add("", "LeakyRelu", {6, 1, 1, 1, leakyRelu});
  table.add("", "PRelu", {7, 2, 2, 1, pRelu});
  table.add("", "Elu", {6, 1, 1, 1, elu});
  table.add("", "HardSigmoid", {6, 1, 1, 1, hardSigmoid});
  table.add("", "HardSwish", {14, 1, 1, 1, hardSwish});
  table.add("", "Mish", {18, 1, 1, 1, mish});
  table.add("com.microsoft", "Gelu", {1, 1, 1, 1, unary<UnaryKind::GeluErf>});
  table.add("com.microsoft", "BiasGelu", {1, 2, 2, 1, biasGelu<UnaryKind::GeluErf>});
  table.add("com.microsoft", "FastGelu", {1, 1, 2, 1, biasGelu<UnaryKind::GeluTanh>});
  table.add("com.microsoft", "QuickGelu", {1, 1, 1, 1, quickGelu});
  table.add("", "Celu", {12, 1, 1, 1, celu});
  table.add("", "Selu", {6, 1, 1, 1, selu});
  table.add("", "ThresholdedRelu", {10, 1, 1, 1, thresholdedRelu});
  table.add("", "Shrink", {9, 1, 1, 1, shrink});
  table.add("", "Softsign", {1, 1, 1, 1, softsign});
}
