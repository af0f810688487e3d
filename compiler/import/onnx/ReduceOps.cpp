//===- ReduceOps.cpp - along dimensions ---------------------------------------===//
#include "compiler/import/onnx/Operators.h"

using namespace llmc::onnx;
using namespace llmc::graph;
using namespace mlir;
using llvm::Twine;

namespace {

/// Axes as an attribute; without it all of them.
template <ReduceKind kind> LogicalResult reduceWithAttribute(Node &node) {
  auto axes = node.intsAttr("axes");
  bool keep = node.boolAttr("keepdims", true);
  node.set(0, node.emit<ReduceOp>(node.elementType(), kind, node.input(0),
                                  axes && !axes->empty() ? node.indices(*axes) : Value(), keep,
                                  false));
  return success();
}

/// Axes as an input.
template <ReduceKind kind> LogicalResult reduceWithInput(Node &node) {
  bool keep = node.boolAttr("keepdims", true);
  bool isNoop = node.boolAttr("noop_with_empty_axes", false);
  Value x = node.input(0);
  auto axes = node.input(1) ? node.shapes().elements(node.input(1)) : nullptr;
  bool isEmpty = !node.input(1) || (axes && axes->empty());
  if (isNoop && isEmpty) {
    // Reducing over no axis: what the kind does to a single element.
    switch (kind) {
    case ReduceKind::L1:
    case ReduceKind::L2:
      x = node.unary(UnaryKind::Abs, x);
      break;
    case ReduceKind::SumSquare:
      x = node.binary(BinaryKind::Mul, x, x);
      break;
    case ReduceKind::LogSum:
      x = node.unary(UnaryKind::Log, x);
      break;
    default: // sum, mean, max, min, prod, log(exp(x)): the element itself
      break;
    }
    node.set(0, x);
    return success();
  }
  node.set(0, node.emit<ReduceOp>(node.elementType(), kind, x, isEmpty ? Value() : node.input(1),
                                  keep, isNoop));
  return success();
}

template <bool largest> LogicalResult argReduce(Node &node) {
  int64_t axis = node.intAttr("axis", 0);
  bool keep = node.boolAttr("keepdims", true);
  bool selectLast = node.version >= 12 && node.boolAttr("select_last_index", false);
  node.set(0, node.emit<ArgReduceOp>(node.builder.getI64Type(), node.input(0),
                                     static_cast<uint64_t>(axis), largest, keep, selectLast));
  return success();
}

LogicalResult cumSum(Node &node) {
  bool exclusive = node.boolAttr("exclusive", false), reverse = node.boolAttr("reverse", false);
  Value axis = node.input(1);
  if (auto rank = node.rank(1); rank && *rank == 1)
    axis = node.emit<ReshapeOp>(node.elementType(1), axis, node.indices({}), false);
  node.set(0, node.emit<CumSumOp>(node.elementType(), node.input(0), axis, exclusive, reverse));
  return success();
}

/// Since opset 13 along one axis.
template <bool isLog> LogicalResult softmax13(Node &node) {
  int64_t axis = node.intAttr("axis", -1);
  if (auto rank = node.rank(); rank && (axis < -*rank || axis >= std::max<int64_t>(*rank, 1)))
    return node.fail("axis " + Twine(axis) + " is out of range for rank " + Twine(*rank));
  node.set(0, node.emit<SoftmaxOp>(node.elementType(), node.input(0), static_cast<uint64_t>(axis),
                                   isLog));
  return success();
}

/// Emits \p body on x flattened to a matrix at `axis` (all dimensions from there on are one row),
/// and gives its result x's shape again: softmax and hardmax before opset 13.
LogicalResult onRows(Node &node, llvm::function_ref<Value(Value)> body) {
  int64_t axis = node.intAttr("axis", 1);
  Value x = node.input(0);
  Value shape = node.emit<ShapeOp>(node.builder.getI64Type(), x, uint64_t(0), IntegerAttr());
  Value rows = node.emit<FlattenOp>(node.elementType(), x, static_cast<uint64_t>(axis));
  Value result = body(rows);
  node.set(0, node.emit<ReshapeOp>(node.elementType(), result, shape, /*allow_zero=*/true));
  return success();
}

template <bool isLog> LogicalResult softmax1(Node &node) {
  return onRows(node, [&](Value rows) {
    return node.emit<SoftmaxOp>(node.elementType(), rows, static_cast<uint64_t>(-1), isLog);
  });
}

/// 1 at the first largest element along the axis, 0 elsewhere.
Value hardmaxOf(Node &node, Value x, int64_t axis) {
  Value largest =
      node.emit<ArgReduceOp>(node.builder.getI64Type(), x, static_cast<uint64_t>(axis), true,
                             /*keepdims=*/false, false);
  // The size along the axis: one element of the shape, as a scalar.
  Value shape = node.emit<ShapeOp>(node.builder.getI64Type(), x, uint64_t(0), IntegerAttr());
  Value depth = node.emit<GatherOp>(
      node.builder.getI64Type(), shape,
      node.scalar(node.builder.getI64Type(), static_cast<double>(axis)), uint64_t(0));
  auto type = RankedTensorType::get({2}, node.elementType());
  auto floatType = mlir::cast<FloatType>(node.elementType());
  llvm::SmallVector<llvm::APFloat> offOn{llvm::APFloat::getZero(floatType.getFloatSemantics()),
                                         llvm::APFloat(floatType.getFloatSemantics(), 1)};
  Value values = node.constant(DenseElementsAttr::get(type, offOn));
  return node.emit<OneHotOp>(node.elementType(), largest, depth, values,
                             static_cast<uint64_t>(axis));
}

LogicalResult hardmax13(Node &node) {
  int64_t axis = node.intAttr("axis", -1);
  if (!isa<FloatType>(node.elementType()))
    return node.fail("floats are needed");
  node.set(0, hardmaxOf(node, node.input(0), axis));
  return success();
}

LogicalResult hardmax1(Node &node) {
  if (!isa<FloatType>(node.elementType()))
    return node.fail("floats are needed");
  return onRows(node, [&](Value rows) { return hardmaxOf(node, rows, -1); });
}

template <ReduceKind kind>
void addReduction(OperatorTable &table, const char *name, int64_t axesInput) {
  table.add("", name, {1, 1, 1, 1, reduceWithAttribute<kind>});
  table.add("", name, {axesInput, 1, 2, 1, reduceWithInput<kind>});
}

LogicalResult cumProd(Node &node) {
  bool exclusive = node.boolAttr("exclusive", false), reverse = node.boolAttr("reverse", false);
  Value axis = node.input(1);
  if (auto rank = node.rank(1); rank && *rank == 1)
    axis = node.reshape(axis, {});
  node.set(0, node.emit<CumSumOp>(node.elementType(), node.input(0), axis, exclusive, reverse,
                                  /*product=*/true));
  return success();
}

} // namespace

void llmc::onnx::addReduceOps(OperatorTable &table) {
  addReduction<ReduceKind::Sum>(table, "ReduceSum", 13);
  addReduction<ReduceKind::Mean>(table, "ReduceMean", 18);
  addReduction<ReduceKind::Max>(table, "ReduceMax", 18);
  addReduction<ReduceKind::Min>(table, "ReduceMin", 18);
  addReduction<ReduceKind::Prod>(table, "ReduceProd", 18);
  addReduction<ReduceKind::SumSquare>(table, "ReduceSumSquare", 18);
  addReduction<ReduceKind::L1>(table, "ReduceL1", 18);
  addReduction<ReduceKind::L2>(table, "ReduceL2", 18);
  addReduction<ReduceKind::LogSum>(table, "ReduceLogSum", 18);
  addReduction<ReduceKind::LogSumExp>(table, "ReduceLogSumExp", 18);
  table.add("", "ArgMax", {1, 1, 1, 1, argReduce<true>});
  table.add("", "ArgMin", {1, 1, 1, 1, argReduce<false>});
  table.add("", "CumSum", {11, 2, 2, 1, cumSum});
  table.add("", "Softmax", {1, 1, 1, 1, softmax1<false>});
  table.add("", "Softmax", {13, 1, 1, 1, softmax13<false>});
  table.add("", "LogSoftmax", {1, 1, 1, 1, softmax1<true>});
  table.add("", "LogSoftmax", {13, 1, 1, 1, softmax13<true>});
  table.add("", "Hardmax", {1, 1, 1, 1, hardmax1});
  table.add("", "Hardmax", {13, 1, 1, 1, hardmax13});
  table.add("", "CumProd", {26, 2, 2, 1, cumProd});
}
