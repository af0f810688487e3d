//===- ShapeOps.cpp - shapes and their changes --------------------------------===//
#include "compiler/import/onnx/Operators.h"

using namespace llmc::onnx;
using namespace llmc::graph;
using namespace mlir;
using llvm::Twine;

namespace {

LogicalResult shape(Node &node) {
  int64_t start = node.intAttr("start", 0);
  IntegerAttr end;
  if (node.has("end"))
    end = node.builder.getI64IntegerAttr(node.intAttr("end", 0));
  node.set(0, node.emit<ShapeOp>(node.builder.getI64Type(), node.input(0),
                                 static_cast<uint64_t>(start), end));
  return success();
}

LogicalResult size(Node &node) {
  node.set(0, node.emit<SizeOp>(node.builder.getI64Type(), node.input(0)));
  return success();
}

LogicalResult reshape1(Node &node) {
  auto shape = node.intsAttr("shape");
  if (!shape)
    return node.fail("attribute 'shape' is missing");
  node.ignore("consumed_inputs");
  node.set(0, node.emit<ReshapeOp>(node.elementType(), node.input(0), node.indices(*shape), false));
  return success();
}

LogicalResult reshape5(Node &node) {
  bool allowZero = node.boolAttr("allowzero", false);
  node.set(0, node.emit<ReshapeOp>(node.elementType(), node.input(0), node.input(1), allowZero));
  return success();
}

LogicalResult flatten(Node &node) {
  int64_t axis = node.intAttr("axis", 1);
  node.set(0, node.emit<FlattenOp>(node.elementType(), node.input(0), axis));
  return success();
}

/// Axes as an attribute, which may be missing.
LogicalResult squeeze1(Node &node) {
  auto axes = node.intsAttr("axes");
  node.set(0, node.emit<SqueezeOp>(node.elementType(), node.input(0),
                                   axes ? node.indices(*axes) : Value()));
  return success();
}

LogicalResult squeeze13(Node &node) {
  node.set(0, node.emit<SqueezeOp>(node.elementType(), node.input(0), node.input(1)));
  return success();
}

LogicalResult unsqueeze1(Node &node) {
  auto axes = node.intsAttr("axes");
  if (!axes)
    return node.fail("attribute 'axes' is missing");
  node.set(0, node.emit<UnsqueezeOp>(node.elementType(), node.input(0), node.indices(*axes)));
  return success();
}

/// A scalar for a list of one axis, which some exporters write.
Value asVector(Node &node, Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || type.getRank() != 0)
    return value;
  return node.emit<ReshapeOp>(type.getElementType(), value, node.indices({1}), false);
}

LogicalResult unsqueeze13(Node &node) {
  Value axes = asVector(node, node.input(1));
  node.set(0, node.emit<UnsqueezeOp>(node.elementType(), node.input(0), axes));
  return success();
}

LogicalResult expand(Node &node) {
  node.set(0, node.emit<ExpandOp>(node.elementType(), node.input(0), node.input(1)));
  return success();
}

LogicalResult tile(Node &node) {
  node.set(0, node.emit<TileOp>(node.elementType(), node.input(0), node.input(1)));
  return success();
}

/// Without perm the dimensions are reversed.
LogicalResult transpose(Node &node) {
  auto perm = node.intsAttr("perm");
  if (!perm) {
    auto rank = node.rank();
    if (!rank)
      return node.fail("perm is missing and the rank of the input is not known; give perm");
    perm.emplace();
    for (int64_t i = *rank; i-- > 0;)
      perm->push_back(i);
  }
  node.set(
      0, node.emit<TransposeOp>(node.elementType(), node.input(0), llvm::ArrayRef<int64_t>(*perm)));
  return success();
}

LogicalResult concat(Node &node, int64_t axis) {
  for (Value part : node.inputs)
    if (!part)
      return node.fail("an input in the middle is missing");
  node.set(0, node.emit<ConcatOp>(node.elementType(), ValueRange(node.inputs), axis));
  return success();
}

LogicalResult concat1(Node &node) { return concat(node, node.intAttr("axis", 1)); }
LogicalResult concat4(Node &node) { return concat(node, node.requiredInt("axis")); }

LogicalResult split(Node &node, Value sizes, int64_t axis) {
  if (node.numOutputs() == 0)
    return node.fail("it has no outputs");
  llvm::SmallVector<Type> types(node.numOutputs(), UnrankedTensorType::get(node.elementType()));
  if (node.failed())
    return failure();
  auto op = SplitOp::create(node.builder, node.loc, types, node.input(0), sizes, axis);
  node.infer(op);
  for (auto [i, part] : llvm::enumerate(op.getParts()))
    node.set(static_cast<unsigned>(i), part);
  return success();
}

LogicalResult split2(Node &node) {
  int64_t axis = node.intAttr("axis", 0);
  auto sizes = node.intsAttr("split");
  return split(node, sizes ? node.indices(*sizes) : Value(), axis);
}

LogicalResult split13(Node &node) {
  int64_t axis = node.intAttr("axis", 0);
  return split(node, node.input(1), axis);
}

/// With num_outputs the last part may be smaller.
LogicalResult split18(Node &node) {
  int64_t axis = node.intAttr("axis", 0);
  if (node.has("num_outputs")) {
    if (node.input(1))
      return node.fail("both 'split' and 'num_outputs' are given");
    if (int64_t parts = node.intAttr("num_outputs", 0);
        parts != static_cast<int64_t>(node.numOutputs()))
      return node.fail("num_outputs is " + Twine(parts) + " for " + Twine(node.numOutputs()) +
                       " outputs");
  }
  return split(node, node.input(1), axis);
}

LogicalResult slice1(Node &node) {
  auto starts = node.intsAttr("starts"), ends = node.intsAttr("ends"), axes = node.intsAttr("axes");
  if (!starts || !ends)
    return node.fail("attributes 'starts' and 'ends' are required");
  Value from = node.indices(*starts), to = node.indices(*ends);
  node.set(0, node.emit<SliceOp>(node.elementType(), node.input(0), from, to,
                                 axes ? node.indices(*axes) : Value(), Value()));
  return success();
}

LogicalResult slice10(Node &node) {
  node.set(0, node.emit<SliceOp>(node.elementType(), node.input(0), node.input(1), node.input(2),
                                 node.input(3), node.input(4)));
  return success();
}

std::optional<PadMode> padMode(Node &node, bool mayWrap) {
  llvm::StringRef mode = node.stringAttr("mode", "constant");
  if (mode == "constant")
    return PadMode::Constant;
  if (mode == "reflect")
    return PadMode::Reflect;
  if (mode == "edge")
    return PadMode::Edge;
  if (mode == "wrap" && mayWrap)
    return PadMode::Wrap;
  (void)node.fail("mode is '" + mode + "'; supported in opset " + Twine(node.version) +
                  ": constant, reflect, edge" + (mayWrap ? ", wrap" : ""));
  return std::nullopt;
}

LogicalResult pad2(Node &node) {
  auto pads = node.intsAttr("pads");
  if (!pads)
    return node.fail("attribute 'pads' is missing");
  Value value = node.scalar(node.elementType(), node.floatAttr("value", 0));
  auto mode = padMode(node, /*mayWrap=*/false);
  if (!mode)
    return failure();
  node.set(0, node.emit<PadOp>(node.elementType(), node.input(0), node.indices(*pads), value,
                               Value(), *mode));
  return success();
}

LogicalResult pad11(Node &node) {
  auto mode = padMode(node, /*mayWrap=*/node.version >= 19);
  if (!mode)
    return failure();
  node.set(0, node.emit<PadOp>(node.elementType(), node.input(0), node.input(1), node.input(2),
                               node.input(3), *mode));
  return success();
}

} // namespace

void llmc::onnx::addShapeOps(OperatorTable &table) {
  table.add("", "Shape", {1, 1, 1, 1, shape});
  table.add("", "Size", {1, 1, 1, 1, size});
  table.add("", "Reshape", {1, 1, 1, 1, reshape1});
  table.add("", "Reshape", {5, 2, 2, 1, reshape5});
  table.add("", "Flatten", {1, 1, 1, 1, flatten});
  table.add("", "Squeeze", {1, 1, 1, 1, squeeze1});
  table.add("", "Squeeze", {13, 1, 2, 1, squeeze13});
  table.add("", "Unsqueeze", {1, 1, 1, 1, unsqueeze1});
  table.add("", "Unsqueeze", {13, 2, 2, 1, unsqueeze13});
  table.add("", "Expand", {8, 2, 2, 1, expand});
  table.add("", "Tile", {6, 2, 2, 1, tile});
  table.add("", "Transpose", {1, 1, 1, 1, transpose});
  table.add("", "Concat", {1, 1, variadic, 1, concat1});
  table.add("", "Concat", {4, 1, variadic, 1, concat4});
  table.add("", "Split", {2, 1, 1, variadic, split2});
  table.add("", "Split", {13, 1, 2, variadic, split13});
  table.add("", "Split", {18, 1, 2, variadic, split18});
  table.add("", "Slice", {1, 1, 1, 1, slice1});
  table.add("", "Slice", {10, 3, 5, 1, slice10});
  table.add("", "Pad", {2, 1, 1, 1, pad2});
  table.add("", "Pad", {11, 2, 4, 1, pad11});
}
