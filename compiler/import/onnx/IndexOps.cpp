//===- IndexOps.cpp - reading and writing by index ----------------------------===//
#include "compiler/import/onnx/Operators.h"

using namespace llmc::onnx;
using namespace llmc::graph;
using namespace mlir;
using llvm::Twine;

namespace {

LogicalResult gather(Node &node) {
  int64_t axis = node.intAttr("axis", 0);
  node.set(0, node.emit<GatherOp>(node.elementType(), node.input(0), node.input(1), axis));
  return success();
}

LogicalResult gatherElements(Node &node) {
  int64_t axis = node.intAttr("axis", 0);
  node.set(0, node.emit<GatherElementsOp>(node.elementType(), node.input(0), node.input(1), axis));
  return success();
}

LogicalResult gatherND(Node &node) {
  int64_t batch = node.intAttr("batch_dims", 0);
  node.set(0, node.emit<GatherNDOp>(node.elementType(), node.input(0), node.input(1), batch));
  return success();
}

/// How updates combine: since 16 add and mul, since 18 min and max.
std::optional<ScatterKind> reduction(Node &node) {
  llvm::StringRef name = node.version >= 16 ? node.stringAttr("reduction", "none") : "none";
  if (name == "none")
    return ScatterKind::None;
  if (name == "add")
    return ScatterKind::Add;
  if (name == "mul")
    return ScatterKind::Mul;
  if (name == "min" && node.version >= 18)
    return ScatterKind::Min;
  if (name == "max" && node.version >= 18)
    return ScatterKind::Max;
  (void)node.fail("reduction is '" + name + "'; supported in opset " + Twine(node.version) +
                  (node.version >= 18 ? ": none, add, mul, min, max" : ": none, add, mul"));
  return std::nullopt;
}

LogicalResult scatterElements(Node &node) {
  int64_t axis = node.intAttr("axis", 0);
  auto kind = reduction(node);
  if (!kind)
    return failure();
  node.set(0, node.emit<ScatterElementsOp>(node.elementType(), *kind, node.input(0), node.input(1),
                                           node.input(2), axis));
  return success();
}

LogicalResult scatterND(Node &node) {
  auto kind = reduction(node);
  if (!kind)
    return failure();
  // The depth of the index vectors may be less than the rank (a slice is written then), not more.
  auto data = node.shapes().shape(node.input(0)), indices = node.shapes().shape(node.input(1));
  if (data && indices && !indices->empty() && indices->back().isNumber() &&
      indices->back().value > static_cast<int64_t>(data->size()))
    return node.fail("index vectors of " + Twine(indices->back().value) + " for data of rank " +
                     Twine(data->size()));
  node.set(0, node.emit<ScatterNDOp>(node.elementType(), *kind, node.input(0), node.input(1),
                                     node.input(2)));
  return success();
}

LogicalResult oneHot(Node &node) {
  int64_t axis = node.intAttr("axis", -1);
  // Exporters also give indices and depth as floats.
  Value indices = node.input(0), depth = node.input(1);
  if (isa<FloatType>(node.elementType(0)))
    indices = node.cast(indices, node.builder.getI64Type());
  if (isa<FloatType>(node.elementType(1)))
    depth = node.cast(depth, node.builder.getI64Type());
  node.set(0, node.emit<OneHotOp>(node.elementType(2), indices, depth, node.input(2),
                                  static_cast<uint64_t>(axis)));
  return success();
}

LogicalResult nonZero(Node &node) {
  node.set(0, node.emit<NonZeroOp>(node.builder.getI64Type(), node.input(0)));
  return success();
}

LogicalResult topK(Node &node) {
  int64_t axis = node.intAttr("axis", -1);
  bool largest = node.version >= 11 ? node.boolAttr("largest", true) : true;
  bool sorted = node.version >= 11 ? node.boolAttr("sorted", true) : true;
  if (node.failed())
    return failure();
  auto op = TopKOp::create(node.builder, node.loc, UnrankedTensorType::get(node.elementType()),
                           UnrankedTensorType::get(node.builder.getI64Type()), node.input(0),
                           node.input(1), static_cast<uint64_t>(axis), largest, sorted);
  node.infer(op);
  node.set(0, op.getValues());
  node.set(1, op.getIndices());
  return success();
}

/// All element types; k is a scalar or has one element.
LogicalResult trilu(Node &node) {
  bool upper = node.boolAttr("upper", true);
  Value k = node.input(1);
  if (auto rank = k ? node.rank(1) : std::optional<int64_t>(0); rank && *rank != 0) {
    if (*rank != 1)
      return node.fail("k has rank " + Twine(*rank) + ", not one element");
    k = node.emit<ReshapeOp>(node.elementType(1), k, node.indices({}), false);
  }
  if (auto rank = node.rank(); rank && *rank < 2)
    return node.fail("the input has rank " + Twine(*rank) + ", not at least 2");
  node.set(0, node.emit<TriluOp>(node.elementType(), node.input(0), k, upper));
  return success();
}

LogicalResult unique(Node &node) {
  bool hasAxis = node.has("axis");
  int64_t axis = node.intAttr("axis", 0), sorted = node.intAttr("sorted", 1);
  Type i64 = node.builder.getI64Type();
  auto results = node.library("unique", node.elementType(), {node.elementType(), i64, i64, i64},
                              node.input(0), {hasAxis, axis, sorted});
  for (unsigned i = 0; i < 4; ++i)
    node.set(i, results[i]);
  return success();
}

LogicalResult compress(Node &node) {
  bool hasAxis = node.has("axis");
  node.set(0, node.libraryOne("compress", node.elementType(), {node.input(0), node.input(1)},
                              {hasAxis, node.intAttr("axis", 0)}));
  return success();
}

LogicalResult reverseSequence(Node &node) {
  int64_t batch = node.intAttr("batch_axis", 1), time = node.intAttr("time_axis", 0);
  node.set(0, node.libraryOne("reverse_sequence", node.elementType(),
                              {node.input(0), node.input(1)}, {batch, time}));
  return success();
}

LogicalResult tensorScatter(Node &node) {
  llvm::StringRef mode = node.stringAttr("mode", "linear");
  if (mode != "linear" && mode != "circular")
    return node.fail("mode is '" + mode + "'; supported: linear, circular");
  int64_t axis = node.intAttr("axis", -2);
  node.set(0, node.libraryOne("tensor_scatter", node.elementType(),
                              {node.input(0), node.input(1), node.input(2)},
                              {axis, mode == "circular"}));
  return success();
}

} // namespace

void llmc::onnx::addIndexOps(OperatorTable &table) {
  table.add("", "Gather", {1, 2, 2, 1, gather});
  table.add("", "GatherElements", {11, 2, 2, 1, gatherElements});
  table.add("", "GatherND", {11, 2, 2, 1, gatherND});
  table.add("", "Scatter", {9, 3, 3, 1, scatterElements});
  table.add("", "ScatterElements", {11, 3, 3, 1, scatterElements});
  table.add("", "ScatterND", {11, 3, 3, 1, scatterND});
  table.add("", "OneHot", {9, 3, 3, 1, oneHot});
  table.add("", "NonZero", {9, 1, 1, 1, nonZero});
  table.add("", "TopK", {10, 2, 2, 2, topK});
  table.add("", "Trilu", {14, 1, 2, 1, trilu});
  table.add("", "Unique", {11, 1, 1, 4, unique});
  table.add("", "Compress", {9, 2, 2, 1, compress});
  table.add("", "ReverseSequence", {10, 2, 2, 1, reverseSequence});
  table.add("", "TensorScatter", {24, 2, 3, 1, tensorScatter});
}
