//===- NormOps.cpp - normalizations, with and without a residual --------------===//
#include "compiler/import/onnx/Operators.h"

using namespace llmc::onnx;
using namespace llmc::graph;
using namespace mlir;
using llvm::Twine;

namespace {

bool checkStash(Node &node) {
  int64_t stash = node.intAttr("stash_type", 1);
  if (stash == 1 || (stash == 11 && node.elementType().isF64()))
    return true;
  (void)node.fail("stash_type " + Twine(stash) + " is not supported; supported: 1 (float)");
  return false;
}

bool checkFloats(Node &node) {
  if (isa<FloatType>(node.elementType()))
    return true;
  (void)node.fail("the input is not of floats");
  return false;
}

Value layerNorm(Node &node, Value x, Value scale, Value bias, int64_t axis, float epsilon) {
  return node.emit<LayerNormOp>(node.elementType(), x, scale, bias, static_cast<uint64_t>(axis),
                                llvm::APFloat(epsilon));
}

Value rmsNorm(Node &node, Value x, Value scale, int64_t axis, float epsilon) {
  return node.emit<RmsNormOp>(node.elementType(), x, scale, static_cast<uint64_t>(axis),
                              llvm::APFloat(epsilon));
}

/// Outputs 1 and 2 of a layer norm, which no inference graph but a careless export has: mean and
/// 1 / sqrt(variance + epsilon), in f32.
void setStatistics(Node &node, int64_t axis, float epsilon) {
  if (!node.hasOutput(1) && !node.hasOutput(2))
    return;
  auto rank = node.rank();
  if (!rank) {
    (void)node.fail("its mean is asked for but the rank of the input is not known");
    return;
  }
  llvm::SmallVector<int64_t> axes;
  for (int64_t i = axis < 0 ? axis + *rank : axis; i < *rank; ++i)
    axes.push_back(i);
  Type f32 = node.builder.getF32Type();
  Value x = node.cast(node.input(0), f32), over = node.indices(axes);
  Value mean = node.emit<ReduceOp>(f32, ReduceKind::Mean, x, over, true, false);
  Value centered = node.binary(BinaryKind::Sub, x, mean);
  Value square = node.binary(BinaryKind::Mul, centered, centered);
  Value variance = node.emit<ReduceOp>(f32, ReduceKind::Mean, square, over, true, false);
  Value deviation = node.unary(UnaryKind::Sqrt,
                               node.binary(BinaryKind::Add, variance, node.scalar(f32, epsilon)));
  node.set(1, mean);
  node.set(2, node.unary(UnaryKind::Reciprocal, deviation));
}

LogicalResult layerNormalization(Node &node) {
  int64_t axis = node.intAttr("axis", -1);
  float epsilon = node.floatAttr("epsilon", 1e-5f);
  if (!checkStash(node) || !checkFloats(node))
    return failure();
  node.set(0, layerNorm(node, node.input(0), node.input(1), node.input(2), axis, epsilon));
  setStatistics(node, axis, epsilon);
  return success();
}

LogicalResult rmsNormalization(Node &node) {
  int64_t axis = node.intAttr("axis", -1);
  float epsilon = node.floatAttr("epsilon", 1e-5f);
  if (!checkStash(node) || !checkFloats(node))
    return failure();
  node.set(0, rmsNorm(node, node.input(0), node.input(1), axis, epsilon));
  return success();
}

/// input + skip (+ bias), which is also output 3, the residual that goes on.
Value addResidual(Node &node, Value bias) {
  Value sum = node.binary(BinaryKind::Add, node.input(0), node.input(1));
  if (bias)
    sum = node.binary(BinaryKind::Add, sum, bias);
  node.set(3, sum);
  return sum;
}

/// Inputs: input, skip, gamma, bias.
LogicalResult skipSimplified(Node &node) {
  float epsilon = node.floatAttr("epsilon", 1e-12f);
  if (!checkFloats(node))
    return failure();
  Value sum = addResidual(node, node.input(3));
  node.set(0, rmsNorm(node, sum, node.input(2), -1, epsilon));
  return success();
}

/// Inputs: input, skip, gamma, beta, bias.
LogicalResult skipLayerNormalization(Node &node) {
  float epsilon = node.floatAttr("epsilon", 1e-12f);
  if (!checkFloats(node))
    return failure();
  Value sum = addResidual(node, node.input(4));
  node.set(0, layerNorm(node, sum, node.input(2), node.input(3), -1, epsilon));
  return success();
}

} // namespace

void llmc::onnx::addNormOps(OperatorTable &table) {
  table.add("", "LayerNormalization", {17, 2, 3, 3, layerNormalization});
  table.add("", "RMSNormalization", {23, 2, 2, 1, rmsNormalization});
  // ONNX Runtime writes this operator of its own into the default domain.
  table.add("", "SimplifiedLayerNormalization", {1, 2, 2, 2, rmsNormalization});
  table.add("com.microsoft", "SimplifiedLayerNormalization", {1, 2, 2, 2, rmsNormalization});
  table.add("com.microsoft", "SkipSimplifiedLayerNormalization", {1, 3, 4, 4, skipSimplified});
  table.add("com.microsoft", "SkipLayerNormalization", {1, 3, 5, 4, skipLayerNormalization});
}
