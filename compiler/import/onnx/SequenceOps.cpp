//===- SequenceOps.cpp - sequences and optionals ------------------------------===//
#include "compiler/import/onnx/Importer.h"
#include "compiler/import/onnx/Operators.h"

using namespace llmc::onnx;
using namespace llmc::graph;
using namespace mlir;
using llvm::Twine;

namespace {

Type sequenceOf(Node &node, Type element) {
  return SequenceType::get(node.builder.getContext(), element);
}
bool isSequence(Node &node, unsigned i = 0) {
  if (node.input(i) && isa<SequenceType>(node.input(i).getType()))
    return true;
  (void)node.fail("input " + Twine(i) + " is not a sequence");
  return false;
}

LogicalResult construct(Node &node) {
  for (Value value : node.inputs)
    if (!value)
      return node.fail("an input in the middle is missing");
  Type element = node.elementType();
  node.set(0, node.library("sequence_construct", element, sequenceOf(node, element), node.inputs,
                           static_cast<int64_t>(node.numInputs()))[0]);
  return success();
}

LogicalResult empty(Node &node) {
  int64_t type = node.intAttr("dtype", static_cast<int64_t>(DataType::float_));
  Type element = mlirElementType(node.builder.getContext(), static_cast<DataType>(type));
  if (!element)
    return node.fail("a sequence of " + dataTypeName(static_cast<DataType>(type)) +
                     " is not supported");
  node.set(
      0, node.library("sequence_construct", element, sequenceOf(node, element), {}, int64_t(0))[0]);
  return success();
}

LogicalResult at(Node &node) {
  if (!isSequence(node))
    return failure();
  node.set(0, node.libraryOne("sequence_at", node.elementType(), node.inputs));
  return success();
}

LogicalResult insert(Node &node) {
  if (!isSequence(node))
    return failure();
  node.set(0, node.library("sequence_insert", node.elementType(), node.input(0).getType(),
                           {node.input(0), node.input(1), node.input(2)})[0]);
  return success();
}

LogicalResult erase(Node &node) {
  if (!isSequence(node))
    return failure();
  node.set(0, node.library("sequence_erase", node.elementType(), node.input(0).getType(),
                           {node.input(0), node.input(1)})[0]);
  return success();
}

LogicalResult length(Node &node) {
  if (!isSequence(node))
    return failure();
  Type i64 = node.builder.getI64Type();
  node.set(0, node.library("sequence_length", i64, Type(RankedTensorType::get({}, i64)),
                           node.input(0))[0]);
  return success();
}

LogicalResult concatFromSequence(Node &node) {
  int64_t axis = node.requiredInt("axis");
  bool isNew = node.boolAttr("new_axis", false);
  if (!isSequence(node))
    return failure();
  node.set(
      0, node.libraryOne("concat_from_sequence", node.elementType(), node.input(0), {axis, isNew}));
  return success();
}

LogicalResult splitToSequence(Node &node) {
  int64_t axis = node.intAttr("axis", 0);
  bool keep = node.boolAttr("keepdims", true);
  Type element = node.elementType();
  node.set(0, node.library("split_to_sequence", element, sequenceOf(node, element),
                           {node.input(0), node.input(1)}, {axis, keep})[0]);
  return success();
}

LogicalResult optional(Node &node) {
  OpBuilder &builder = node.builder;
  const AttributeView *attribute = node.attribute("type");
  if (node.input(0)) {
    node.set(0, node.input(0));
    return success();
  }
  if (!attribute)
    return node.fail("it has neither an input nor a type");
  auto type = attribute->typeProto();
  if (!type)
    return node.fail(llvm::toString(type.takeError()));
  Type content =
      node.importer.declaredType(*type, [&](const Twine &why) { return node.fail("it " + why); });
  if (!content)
    return failure();
  node.set(0, node.library("optional_none", Node::elementOf(content),
                           Type(OptionalType::get(builder.getContext(), content)), {})[0]);
  return success();
}

LogicalResult optionalHasElement(Node &node) {
  Type i1 = node.builder.getI1Type();
  node.set(0,
           node.library("optional_has", i1, Type(RankedTensorType::get({}, i1)), node.input(0))[0]);
  return success();
}

LogicalResult optionalGetElement(Node &node) {
  Value value = node.input(0);
  if (auto type = dyn_cast<OptionalType>(value.getType()))
    value = node.library("optional_get", node.elementType(), type.getContent(), value)[0];
  node.set(0, value);
  return success();
}

/// The body for each element of the first sequence; of the others the element at the same place,
/// a tensor as it is.
LogicalResult sequenceMap(Node &node) {
  const AttributeView *attribute = node.attribute("body");
  if (!attribute)
    return node.fail("attribute 'body' is missing");
  auto body = attribute->graph();
  if (!body)
    return node.fail(llvm::toString(body.takeError()));
  if (!isSequence(node))
    return failure();
  if (body->outputs.size() != node.numOutputs())
    return node.fail("its body has " + Twine(body->outputs.size()) + " outputs, not " +
                     Twine(node.numOutputs()));
  OpBuilder &builder = node.builder;
  Type i64 = builder.getI64Type(), i1 = builder.getI1Type();
  Value trips =
      node.library("sequence_length", i64, Type(RankedTensorType::get({}, i64)), node.input(0))[0];
  Region region;
  Block &block = region.emplaceBlock();
  block.addArgument(RankedTensorType::get({}, i64), node.loc);
  block.addArgument(RankedTensorType::get({}, i1), node.loc);
  llvm::SmallVector<Type> types;
  llvm::SmallVector<Value> initial;
  for (const ValueView &output : body->outputs) {
    Type element = mlirElementType(builder.getContext(), output.type);
    if (!element)
      return node.fail("output '" + output.name + "' of its body has elements of " +
                       dataTypeName(output.type) + ", which is not supported");
    types.push_back(sequenceOf(node, element));
    initial.push_back(node.library("sequence_construct", element, types.back(), {}, int64_t(0))[0]);
    block.addArgument(types.back(), node.loc);
  }
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&block);
    llvm::SmallVector<Value> arguments;
    for (Value value : node.inputs)
      arguments.push_back(isa<SequenceType>(value.getType())
                              ? node.libraryOne("sequence_at", Node::elementOf(value.getType()),
                                                {value, block.getArgument(0)})
                              : value);
    auto values = node.importer.inlineBody(node, *body, arguments);
    if (failed(values))
      return failure();
    llvm::SmallVector<Value> yielded{node.scalar(i1, 1)};
    for (auto [i, value] : llvm::enumerate(*values))
      yielded.push_back(
          node.library("sequence_insert", Node::elementOf(value.getType()), types[i],
                       {block.getArgument(2 + static_cast<unsigned>(i)), value, Value()})[0]);
    YieldOp::create(builder, node.loc, yielded);
  }
  auto op = LoopOp::create(builder, node.loc, types, trips, Value(), initial, ArrayAttr());
  op.getBody().takeBody(region);
  for (auto [i, value] : llvm::enumerate(op.getResults()))
    node.set(static_cast<unsigned>(i), value);
  return success();
}

} // namespace

void llmc::onnx::addSequenceOps(OperatorTable &table) {
  table.add("", "SequenceConstruct", {11, 1, variadic, 1, construct});
  table.add("", "SequenceEmpty", {11, 0, 0, 1, empty});
  table.add("", "SequenceAt", {11, 2, 2, 1, at, true});
  table.add("", "SequenceInsert", {11, 2, 3, 1, insert, true});
  table.add("", "SequenceErase", {11, 1, 2, 1, erase, true});
  table.add("", "SequenceLength", {11, 1, 1, 1, length, true});
  table.add("", "ConcatFromSequence", {11, 1, 1, 1, concatFromSequence, true});
  table.add("", "SplitToSequence", {11, 1, 2, 1, splitToSequence});
  table.add("", "SequenceMap", {17, 1, variadic, variadic, sequenceMap, true});
  table.add("", "Optional", {15, 0, 1, 1, optional, true});
  table.add("", "OptionalHasElement", {15, 0, 1, 1, optionalHasElement, true});
  table.add("", "OptionalGetElement", {15, 1, 1, 1, optionalGetElement, true});
}
