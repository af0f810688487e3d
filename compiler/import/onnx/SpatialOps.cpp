//===- SpatialOps.cpp - convolutions, pooling, normalization of images ---------===//
#include "compiler/import/onnx/Operators.h"

using namespace llmc::onnx;
using namespace llmc::graph;
using namespace mlir;
using llvm::Twine;

namespace {

using Integers = llvm::SmallVector<int64_t>;

int64_t autoPad(Node &node) {
  llvm::StringRef how = node.stringAttr("auto_pad", "NOTSET");
  if (how == "NOTSET")
    return 0;
  if (how == "SAME_UPPER")
    return 1;
  if (how == "SAME_LOWER")
    return 2;
  if (how == "VALID")
    return 3;
  (void)node.fail("auto_pad is '" + how + "'; supported: NOTSET, SAME_UPPER, SAME_LOWER, VALID");
  return 0;
}

/// The attribute with its length in front.
void addList(Node &node, llvm::StringRef name, Integers &to) {
  auto list = node.intsAttr(name);
  to.push_back(list ? static_cast<int64_t>(list->size()) : 0);
  if (list)
    llvm::append_range(to, *list);
}
void addWindow(Node &node, Integers &to) {
  addList(node, "strides", to);
  addList(node, "dilations", to);
  addList(node, "pads", to);
}

Value convolution(Node &node, Value x, Value w, Value bias) {
  Integers integers{node.intAttr("group", 1), autoPad(node)};
  addWindow(node, integers);
  node.ignore("kernel_shape"); // the weights have it
  return node.libraryOne("conv", Node::elementOf(x.getType()), {x, w, bias}, integers);
}

LogicalResult conv(Node &node) {
  node.set(0, convolution(node, node.input(0), node.input(1), node.input(2)));
  return success();
}

LogicalResult convTranspose(Node &node) {
  Integers integers{node.intAttr("group", 1), autoPad(node)};
  addWindow(node, integers);
  addList(node, "output_padding", integers);
  addList(node, "output_shape", integers);
  node.ignore("kernel_shape");
  node.set(0, node.libraryOne("conv_transpose", node.elementType(),
                              {node.input(0), node.input(1), node.input(2)}, integers));
  return success();
}

LogicalResult deformConv(Node &node) {
  Integers integers{node.intAttr("group", 1), node.intAttr("offset_group", 1)};
  addWindow(node, integers);
  node.ignore("kernel_shape");
  node.set(0, node.libraryOne(
                  "deform_conv", node.elementType(),
                  {node.input(0), node.input(1), node.input(2), node.input(3), node.input(4)},
                  integers));
  return success();
}

/// A zero point of output channels, which is a vector, against weights [M, ...].
Value perChannel(Node &node, Value zero, std::optional<int64_t> rank) {
  auto type = dyn_cast<RankedTensorType>(zero.getType());
  if (!type || type.getRank() == 0 || !rank || type.getNumElements() == 1)
    return zero;
  Integers shape(static_cast<size_t>(*rank), 1);
  shape[0] = -1;
  return node.reshape(zero, shape);
}

/// Inputs: x, w, x_zero_point, w_zero_point; in 32-bit integers.
LogicalResult convInteger(Node &node) {
  Type i32 = node.builder.getI32Type();
  Value x = node.cast(node.input(0), i32), w = node.cast(node.input(1), i32);
  if (Value zero = node.input(2))
    x = node.sub(x, node.cast(zero, i32));
  if (Value zero = node.input(3))
    w = node.sub(w, perChannel(node, node.cast(zero, i32), node.rank(1)));
  node.set(0, convolution(node, x, w, Value()));
  return success();
}

/// x / scale, rounded half to even, plus the zero point, within \p type.
Value requantize(Node &node, Value x, Value scale, Value zero, Type type) {
  return node.libraryOne("quantize", type, {x, scale, zero}, {1, 0, 1});
}

/// Inputs: x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias (of 32 bits).
LogicalResult qLinearConv(Node &node) {
  Type f32 = node.builder.getF32Type(), i32 = node.builder.getI32Type();
  Value x = node.sub(node.cast(node.input(0), i32), node.cast(node.input(2), i32));
  Value w = node.sub(node.cast(node.input(3), i32),
                     perChannel(node, node.cast(node.input(5), i32), node.rank(3)));
  Value sum = node.cast(convolution(node, x, w, node.input(8)), f32);
  Value scale = node.input(4);
  if (auto rank = node.rank(0)) { // one an output channel
    auto type = dyn_cast<RankedTensorType>(scale.getType());
    if (type && type.getRank() == 1 && type.getNumElements() != 1) {
      Integers shape(static_cast<size_t>(*rank) - 1, 1);
      shape[0] = -1;
      scale = node.reshape(scale, shape);
    }
  }
  Value y = node.mul(sum, node.mul(node.input(1), scale));
  node.set(0, requantize(node, y, node.input(6), node.input(7), node.elementType(7)));
  return success();
}

/// Inputs: a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero.
LogicalResult qLinearMatMul(Node &node) {
  Type f32 = node.builder.getF32Type(), i32 = node.builder.getI32Type();
  auto centered = [&](unsigned i) {
    return node.sub(node.cast(node.input(i), i32), node.cast(node.input(i + 2), i32));
  };
  Value sum = node.cast(node.emit<MatMulOp>(i32, centered(0), centered(3)), f32);
  Value scale = node.div(node.mul(node.cast(node.input(1), f32), node.cast(node.input(4), f32)),
                         node.cast(node.input(6), f32));
  Value one = node.scalar(f32, 1);
  node.set(0, requantize(node, node.mul(sum, scale), one, node.input(7), node.elementType(7)));
  return success();
}

LogicalResult maxPool(Node &node) {
  Integers integers{autoPad(node), node.boolAttr("ceil_mode", false),
                    node.boolAttr("storage_order", false)};
  addList(node, "kernel_shape", integers);
  addWindow(node, integers);
  auto results =
      node.library("max_pool", node.elementType(), {node.elementType(), node.builder.getI64Type()},
                   node.input(0), integers);
  node.set(0, results[0]);
  node.set(1, results[1]);
  return success();
}

LogicalResult averagePool(Node &node) {
  Integers integers{autoPad(node), node.boolAttr("ceil_mode", false),
                    node.boolAttr("count_include_pad", false)};
  addList(node, "kernel_shape", integers);
  addWindow(node, integers);
  node.set(0, node.libraryOne("average_pool", node.elementType(), node.input(0), integers));
  return success();
}

LogicalResult lpPool(Node &node) {
  Integers integers{autoPad(node), node.boolAttr("ceil_mode", false)};
  addList(node, "kernel_shape", integers);
  addWindow(node, integers);
  double p = static_cast<double>(node.intAttr("p", 2));
  node.set(0, node.libraryOne("lp_pool", node.elementType(), node.input(0), integers, p));
  return success();
}

LogicalResult maxUnpool(Node &node) {
  Integers integers;
  addList(node, "kernel_shape", integers);
  addWindow(node, integers);
  node.set(0, node.libraryOne("max_unpool", node.elementType(),
                              {node.input(0), node.input(1), node.input(2)}, integers));
  return success();
}

LogicalResult col2Im(Node &node) {
  Integers integers;
  addWindow(node, integers);
  node.set(0, node.libraryOne("col2im", node.elementType(),
                              {node.input(0), node.input(1), node.input(2)}, integers));
  return success();
}

/// The dimensions from \p first on.
std::optional<Integers> axesFrom(Node &node, int64_t first) {
  auto rank = node.rank();
  if (!rank) {
    (void)node.fail("the rank of its input is not known");
    return std::nullopt;
  }
  Integers axes;
  for (int64_t i = first; i < *rank; ++i)
    axes.push_back(i);
  return axes;
}

template <ReduceKind kind> LogicalResult globalPool(Node &node) {
  auto axes = axesFrom(node, 2);
  if (!axes)
    return failure();
  node.set(0, node.reduce(kind, node.input(0), node.indices(*axes)));
  return success();
}

LogicalResult globalLpPool(Node &node) {
  auto axes = axesFrom(node, 2);
  if (!axes)
    return failure();
  Type type = node.elementType();
  Value p = node.scalar(type, static_cast<double>(node.intAttr("p", 2)));
  Value power = node.binary(BinaryKind::Pow, node.unary(UnaryKind::Abs, node.input(0)), p);
  node.set(0, node.binary(BinaryKind::Pow, node.reduce(ReduceKind::Sum, power, node.indices(*axes)),
                          node.unary(UnaryKind::Reciprocal, p)));
  return success();
}

LogicalResult lrn(Node &node) {
  double reals[] = {node.floatAttr("alpha", 1e-4f), node.floatAttr("beta", 0.75f),
                    node.floatAttr("bias", 1)};
  node.set(0, node.libraryOne("lrn", node.elementType(), node.input(0), node.requiredInt("size"),
                              reals));
  return success();
}

/// A vector over channels against x [N, C, ...].
Value alongChannels(Node &node, Value vector, int64_t rank) {
  Integers shape(static_cast<size_t>(std::max<int64_t>(rank - 1, 1)), 1);
  shape[0] = -1;
  return node.reshape(vector, shape);
}

/// (x - mean) / sqrt(variance + epsilon) over \p axes, in f32.
Value standardize(Node &node, Value x, llvm::ArrayRef<int64_t> axes, float epsilon) {
  Type f32 = node.builder.getF32Type();
  Type type = Node::elementOf(x.getType()).isF64() ? node.builder.getF64Type() : f32;
  Value wide = node.cast(x, type), over = node.indices(axes);
  Value centered = node.sub(wide, node.reduce(ReduceKind::Mean, wide, over));
  Value variance = node.reduce(ReduceKind::Mean, node.mul(centered, centered), over);
  Value deviation = node.unary(UnaryKind::Sqrt, node.add(variance, node.scalar(type, epsilon)));
  return node.div(centered, deviation);
}

/// Inputs: x, scale, bias, mean, variance. Before opset 14 the outputs beyond y are training's.
LogicalResult batchNormalization(Node &node) {
  float epsilon = node.floatAttr("epsilon", 1e-5f), momentum = node.floatAttr("momentum", 0.9f);
  bool isTraining = node.version >= 14 && node.boolAttr("training_mode", false);
  node.ignore("spatial");
  node.ignore("is_test");
  node.ignore("consumed_inputs");
  auto rank = node.rank();
  if (!rank)
    return node.fail("the rank of its input is not known");
  Type type = node.elementType();
  Value x = node.input(0), mean = node.input(3), variance = node.input(4);
  if (isTraining) {
    Integers axes;
    for (int64_t i = 0; i < *rank; ++i)
      if (i != 1)
        axes.push_back(i);
    Value over = node.indices(axes);
    Value batchMean = node.reduce(ReduceKind::Mean, x, over, false);
    Value centered = node.sub(x, alongChannels(node, batchMean, *rank));
    Value batchVariance = node.reduce(ReduceKind::Mean, node.mul(centered, centered), over, false);
    auto running = [&](Value old, Value now) {
      Type own = Node::elementOf(old.getType());
      return node.add(node.mul(old, node.scalar(own, momentum)),
                      node.mul(node.cast(now, own), node.scalar(own, 1.0 - momentum)));
    };
    node.set(1, running(mean, batchMean));
    node.set(2, running(variance, batchVariance));
    mean = batchMean, variance = batchVariance;
  }
  auto channels = [&](Value v) { return alongChannels(node, node.cast(v, type), *rank); };
  Value deviation =
      node.unary(UnaryKind::Sqrt, node.add(channels(variance), node.scalar(type, epsilon)));
  Value y = node.div(node.sub(x, channels(mean)), deviation);
  node.set(0, node.add(node.mul(y, channels(node.input(1))), channels(node.input(2))));
  return success();
}

LogicalResult instanceNormalization(Node &node) {
  float epsilon = node.floatAttr("epsilon", 1e-5f);
  node.ignore("consumed_inputs");
  auto axes = axesFrom(node, 2);
  if (!axes)
    return failure();
  int64_t rank = *node.rank();
  Value y = node.cast(standardize(node, node.input(0), *axes, epsilon), node.elementType());
  node.set(0, node.add(node.mul(y, alongChannels(node, node.input(1), rank)),
                       alongChannels(node, node.input(2), rank)));
  return success();
}

/// Groups of channels are standardized; scale and bias are a channel's (a group's before opset 21).
LogicalResult groupNormalization(Node &node) {
  float epsilon = node.floatAttr("epsilon", 1e-5f);
  int64_t groups = node.requiredInt("num_groups");
  if (node.version >= 21)
    node.ignore("stash_type");
  auto rank = node.rank();
  if (!rank || groups < 1)
    return node.fail("the rank of its input is not known, or num_groups is not positive");
  Value x = node.input(0), shape = node.shapeOf(x);
  Value rows = node.reshape(x, {0, groups, -1});
  Value y = node.cast(standardize(node, rows, {2}, epsilon), node.elementType());
  Value scale = node.input(1), bias = node.input(2);
  if (node.version < 21) { // one a group
    y = node.add(node.mul(y, node.reshape(scale, {-1, 1})), node.reshape(bias, {-1, 1}));
    node.set(0, node.emit<ReshapeOp>(node.elementType(), y, shape, true));
    return success();
  }
  y = node.emit<ReshapeOp>(node.elementType(), y, shape, true);
  node.set(0, node.add(node.mul(y, alongChannels(node, scale, *rank)),
                       alongChannels(node, bias, *rank)));
  return success();
}

LogicalResult meanVarianceNormalization(Node &node) {
  auto axes = node.intsAttr("axes");
  Integers over = axes ? Integers(*axes) : Integers{0, 2, 3};
  Type type = node.elementType();
  Value x = node.input(0), list = node.indices(over);
  Value centered = node.sub(x, node.reduce(ReduceKind::Mean, x, list));
  Value variance = node.reduce(ReduceKind::Mean, node.mul(centered, centered), list);
  Value deviation = node.add(node.unary(UnaryKind::Sqrt, variance), node.scalar(type, 1e-9));
  node.set(0, node.div(centered, deviation));
  return success();
}

LogicalResult lpNormalization(Node &node) {
  int64_t axis = node.intAttr("axis", -1), p = node.intAttr("p", 2);
  if (p != 1 && p != 2)
    return node.fail("p is " + Twine(p) + "; supported: 1, 2");
  Value x = node.input(0), zero = node.scalar(node.elementType(), 0);
  Value norm = node.reduce(p == 1 ? ReduceKind::L1 : ReduceKind::L2, x, node.indices({axis}));
  // A vector of zeros stays one.
  Value isZero = node.compare(CompareKind::Eq, norm, zero);
  Value quotient = node.div(x, norm);
  node.set(0, node.emit<SelectOp>(node.elementType(), isZero, zero, quotient));
  return success();
}

LogicalResult depthToSpace(Node &node) {
  int64_t b = node.requiredInt("blocksize");
  llvm::StringRef mode = node.version >= 11 ? node.stringAttr("mode", "DCR") : "DCR";
  if (mode != "DCR" && mode != "CRD")
    return node.fail("mode is '" + mode + "'; supported: DCR, CRD");
  bool isDcr = mode == "DCR";
  node.set(0, node.libraryOne("depth_to_space", node.elementType(), node.input(0), {b, isDcr}));
  return success();
}

LogicalResult spaceToDepth(Node &node) {
  int64_t b = node.requiredInt("blocksize");
  llvm::StringRef mode = node.stringAttr("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    return node.fail("mode is '" + mode + "'; supported: DCR, CRD");
  node.set(
      0, node.libraryOne("space_to_depth", node.elementType(), node.input(0), {b, mode == "DCR"}));
  return success();
}

} // namespace

void llmc::onnx::addSpatialOps(OperatorTable &table) {
  table.add("", "Conv", {1, 2, 3, 1, conv});
  table.add("", "ConvTranspose", {1, 2, 3, 1, convTranspose});
  table.add("", "DeformConv", {19, 3, 5, 1, deformConv});
  table.add("", "ConvInteger", {10, 2, 4, 1, convInteger});
  table.add("", "QLinearConv", {10, 8, 9, 1, qLinearConv});
  table.add("", "QLinearMatMul", {10, 8, 8, 1, qLinearMatMul});
  table.add("", "MaxPool", {1, 1, 1, 2, maxPool});
  table.add("", "AveragePool", {1, 1, 1, 1, averagePool});
  table.add("", "LpPool", {2, 1, 1, 1, lpPool});
  table.add("", "MaxUnpool", {9, 2, 3, 1, maxUnpool});
  table.add("", "Col2Im", {18, 3, 3, 1, col2Im});
  table.add("", "GlobalAveragePool", {1, 1, 1, 1, globalPool<ReduceKind::Mean>});
  table.add("", "GlobalMaxPool", {1, 1, 1, 1, globalPool<ReduceKind::Max>});
  table.add("", "GlobalLpPool", {2, 1, 1, 1, globalLpPool});
  table.add("", "LRN", {1, 1, 1, 1, lrn});
  table.add("", "BatchNormalization", {7, 5, 5, 5, batchNormalization});
  table.add("", "InstanceNormalization", {6, 3, 3, 1, instanceNormalization});
  table.add("", "GroupNormalization", {18, 3, 3, 1, groupNormalization});
  table.add("", "MeanVarianceNormalization", {9, 1, 1, 1, meanVarianceNormalization});
  table.add("", "LpNormalization", {1, 1, 1, 1, lpNormalization});
  table.add("", "DepthToSpace", {1, 1, 1, 1, depthToSpace});
  table.add("", "SpaceToDepth", {1, 1, 1, 1, spaceToDepth});
}
