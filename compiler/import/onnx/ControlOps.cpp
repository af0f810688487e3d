//===- ControlOps.cpp - If and Loop -------------------------------------------===//
//
// A condition that is known picks its branch at import. One that is only known at run time becomes
// a graph.if; where both branches are cheap, cannot fail and give the same types and shapes, a
// select between their results, which passes see through.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/onnx/Importer.h"
#include "compiler/import/onnx/Operators.h"

using namespace llmc::onnx;
using namespace llmc::graph;
using namespace mlir;
using llvm::Twine;

namespace {

FailureOr<llvm::SmallVector<Value>> branch(Node &node, llvm::StringRef name) {
  const AttributeView *attribute = node.attribute(name);
  if (!attribute)
    return node.fail("attribute '" + name + "' is missing");
  auto graph = attribute->graph();
  if (!graph)
    return node.fail(llvm::toString(graph.takeError()));
  if (graph->outputs.size() != node.numOutputs())
    return node.fail("its " + name + " has " + Twine(graph->outputs.size()) + " outputs, not " +
                     Twine(node.numOutputs()));
  return node.importer.inlineBranch(node, *graph);
}

/// Whether every operation of \p block is computed at little cost and without a way to fail.
bool isHarmless(Block &block) {
  return llvm::all_of(block, [](Operation &op) {
    if (auto binary = dyn_cast<BinaryOp>(op))
      return isa<FloatType>(getElementTypeOrSelf(binary.getA()));
    return isa<ConstantOp, WeightOp, UnaryOp, CastOp, CompareOp, SelectOp>(op);
  });
}

/// What a value that two branches give may be: their common type, or a tensor of any shape.
Type commonType(Type a, Type b) {
  if (a == b)
    return a;
  auto first = dyn_cast<TensorType>(a), second = dyn_cast<TensorType>(b);
  if (first && second && first.getElementType() == second.getElementType())
    return UnrankedTensorType::get(first.getElementType());
  // A value and an optional of it: what is given is the content, or nothing.
  if (auto optional = dyn_cast<OptionalType>(a); optional && commonType(optional.getContent(), b))
    return a;
  if (auto optional = dyn_cast<OptionalType>(b); optional && commonType(a, optional.getContent()))
    return b;
  return {};
}

LogicalResult ifOperator(Node &node) {
  Value condition = node.input(0);
  if (!node.elementType().isInteger(1))
    return node.fail("its condition is not a boolean");
  auto known = node.shapes().numbers(condition);
  if (known && known->size() == 1) {
    bool isTrue = known->front() != 0;
    node.ignore(isTrue ? "else_branch" : "then_branch");
    auto values = branch(node, isTrue ? "then_branch" : "else_branch");
    if (failed(values))
      return failure();
    for (auto [i, value] : llvm::enumerate(*values))
      node.set(static_cast<unsigned>(i), value);
    return success();
  }
  Region regions[2];
  llvm::SmallVector<Value> values[2];
  for (unsigned i = 0; i < 2; ++i) {
    OpBuilder::InsertionGuard guard(node.builder);
    node.builder.setInsertionPointToStart(&regions[i].emplaceBlock());
    auto given = branch(node, i == 0 ? "then_branch" : "else_branch");
    if (failed(given))
      return failure();
    values[i] = std::move(*given);
  }
  llvm::SmallVector<Type> types;
  bool isSame = true;
  for (auto [i, a, b] : llvm::enumerate(values[0], values[1])) {
    types.push_back(commonType(a.getType(), b.getType()));
    if (!types.back()) {
      std::string text;
      llvm::raw_string_ostream(text) << a.getType() << " and " << b.getType();
      return node.fail("output " + Twine(i) + " is " + text + " in its two branches");
    }
    isSame &= a.getType() == b.getType() && isa<TensorType>(a.getType());
    auto from = isSame ? node.shapes().shape(a) : std::nullopt;
    auto to = isSame ? node.shapes().shape(b) : std::nullopt;
    isSame &= from && to && from->size() == to->size();
    for (size_t d = 0; isSame && d < from->size(); ++d)
      isSame = (*from)[d].same((*to)[d]);
  }
  if (isSame && isHarmless(regions[0].front()) && isHarmless(regions[1].front())) {
    Block *block = node.builder.getInsertionBlock();
    for (Region &region : regions)
      block->getOperations().splice(node.builder.getInsertionPoint(),
                                    region.front().getOperations());
    if (auto rank = node.rank(); !rank || *rank > 0)
      condition = node.reshape(condition, {});
    for (auto [i, a, b] : llvm::enumerate(values[0], values[1]))
      node.set(static_cast<unsigned>(i),
               node.emit<SelectOp>(Node::elementOf(a.getType()), condition, a, b));
    return success();
  }
  // Tables are the same wherever they stand: passes see which ones are chosen.
  for (Region &region : regions)
    for (Operation &inner : llvm::make_early_inc_range(region.front()))
      if (isa<ConstantOp, WeightOp>(inner))
        inner.moveBefore(node.builder.getInsertionBlock(), node.builder.getInsertionPoint());
  auto op = IfOp::create(node.builder, node.loc, types, condition);
  for (unsigned i = 0; i < 2; ++i) {
    OpBuilder::InsertionGuard guard(node.builder);
    node.builder.setInsertionPointToEnd(&regions[i].front());
    YieldOp::create(node.builder, node.loc, values[i]);
    op->getRegion(i).takeBody(regions[i]);
  }
  for (auto [i, value] : llvm::enumerate(op.getResults()))
    node.set(static_cast<unsigned>(i), value);
  return success();
}

/// Inputs: the number of turns, a condition (either may be missing), the carried values.
LogicalResult loop(Node &node) {
  const AttributeView *attribute = node.attribute("body");
  if (!attribute)
    return node.fail("attribute 'body' is missing");
  auto body = attribute->graph();
  if (!body)
    return node.fail(llvm::toString(body.takeError()));
  llvm::SmallVector<Value> carried;
  for (unsigned i = 2; i < node.numInputs(); ++i) {
    if (!node.input(i))
      return node.fail("a carried value is missing");
    carried.push_back(node.input(i));
  }
  size_t n = carried.size();
  if (body->inputs.size() != n + 2 || body->outputs.size() < n + 1 ||
      body->outputs.size() - 1 != node.numOutputs())
    return node.fail("its body has " + Twine(body->inputs.size()) + " inputs and " +
                     Twine(body->outputs.size()) + " outputs for " + Twine(n) +
                     " carried values and " + Twine(node.numOutputs()) + " outputs");
  OpBuilder &builder = node.builder;
  Region region;
  Block &block = region.emplaceBlock();
  block.addArgument(RankedTensorType::get({}, builder.getI64Type()), node.loc);
  block.addArgument(RankedTensorType::get({}, builder.getI1Type()), node.loc);
  llvm::SmallVector<Type> types;
  for (size_t i = 0; i < n; ++i) {
    // The shape may change from turn to turn; a rank that the body declares stays.
    Type type = carried[i].getType();
    const ValueView &declared = body->inputs[i + 2];
    if (isa<TensorType>(type)) {
      type = UnrankedTensorType::get(Node::elementOf(type));
      if (declared.isTensor && declared.shape)
        type = RankedTensorType::get(
            llvm::SmallVector<int64_t>(declared.shape->size(), ShapedType::kDynamic),
            Node::elementOf(type));
    }
    if (declared.isOptional && !isa<OptionalType>(type))
      type = OptionalType::get(builder.getContext(), type);
    types.push_back(type);
    block.addArgument(type, node.loc);
  }
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&block);
    auto values = node.importer.inlineBody(
        node, *body, llvm::SmallVector<Value>(block.args_begin(), block.args_end()));
    if (failed(values))
      return failure();
    if (!isa<TensorType>(values->front().getType()) ||
        !Node::elementOf(values->front().getType()).isInteger(1))
      return node.fail("the first output of its body is not a boolean");
    for (size_t i = n + 1; i < values->size(); ++i) {
      auto tensor = dyn_cast<TensorType>((*values)[i].getType());
      if (!tensor)
        return node.fail("it stacks what is not a tensor");
      types.push_back(tensor.hasRank() ? Type(RankedTensorType::get(
                                             llvm::SmallVector<int64_t>(tensor.getRank() + 1,
                                                                        ShapedType::kDynamic),
                                             tensor.getElementType()))
                                       : Type(UnrankedTensorType::get(tensor.getElementType())));
    }
    YieldOp::create(builder, node.loc, *values);
  }
  auto op = LoopOp::create(builder, node.loc, types, node.input(0), node.input(1), carried,
                           scanShapes(builder, *body, llvm::ArrayRef(types).drop_front(n)));
  op.getBody().takeBody(region);
  for (auto [i, value] : llvm::enumerate(op.getResults()))
    node.set(static_cast<unsigned>(i), value);
  return success();
}

} // namespace

ArrayAttr llmc::onnx::scanShapes(OpBuilder &builder, const GraphView &body, TypeRange scans) {
  llvm::SmallVector<Attribute> shapes;
  for (auto [output, scan] :
       llvm::zip_equal(llvm::ArrayRef(body.outputs).take_back(scans.size()), scans)) {
    llvm::SmallVector<int64_t> dims;
    auto type = dyn_cast<RankedTensorType>(scan);
    const int64_t rank = type ? type.getRank() - 1 : -1;
    // A declaration that is of another rank than what the body gives is of no use.
    if (const auto &shape = output.shape;
        shape && (rank < 0 || static_cast<size_t>(rank) == shape->size()))
      for (const DimView &dim : *shape)
        dims.push_back(dim.value.value_or(-1));
    shapes.push_back(builder.getDenseI64ArrayAttr(dims));
  }
  return builder.getArrayAttr(shapes);
}

void llmc::onnx::addControlOps(OperatorTable &table) {
  table.add("", "If", {1, 1, 1, variadic, ifOperator, /*takesAny=*/true});
  table.add("", "Loop", {1, 0, variadic, variadic, loop, /*takesAny=*/true});
}
