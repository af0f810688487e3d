//===- ControlOps.cpp - If ----------------------------------------------------===//
//
// The graph dialect has no regions. A condition that is known picks its branch at import; one that
// is only known at run time becomes a select between the results of both branches, which is the
// same as long as both can be computed: graph operations have no effects.
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
  auto thenValues = branch(node, "then_branch");
  if (failed(thenValues))
    return failure();
  auto elseValues = branch(node, "else_branch");
  if (failed(elseValues))
    return failure();
  if (auto rank = node.rank(); !rank || *rank > 0)
    condition = node.emit<ReshapeOp>(node.elementType(), condition, node.indices({}), false);
  for (auto [i, a, b] : llvm::enumerate(*thenValues, *elseValues)) {
    auto from = node.shapes().shape(a), to = node.shapes().shape(b);
    bool isSame = from && to && from->size() == to->size() && a.getType() == b.getType();
    for (size_t d = 0; isSame && d < from->size(); ++d)
      isSame = (*from)[d].same((*to)[d]);
    if (!isSame) {
      std::string text;
      llvm::raw_string_ostream(text) << a.getType() << " and " << b.getType();
      return node.fail(
          "output " + Twine(i) + " is " + text +
          " in its two branches, and the condition is not known before run time; supported "
          "are branches of the same type and shape, or a constant condition");
    }
    Type element = mlir::cast<TensorType>(a.getType()).getElementType();
    node.set(static_cast<unsigned>(i), node.emit<SelectOp>(element, condition, a, b));
  }
  return success();
}

/// Loop and Scan are known, to say so.
LogicalResult loop(Node &node) {
  return node.fail(
      "loops are not supported; supported is straight-line code and If. Export the model "
      "without scripting, or unroll the loop");
}

} // namespace

void llmc::onnx::addControlOps(OperatorTable &table) {
  table.add("", "If", {1, 1, 1, variadic, ifOperator});
  table.add("", "Loop", {1, 0, variadic, variadic, loop});
  table.add("", "Scan", {8, 0, variadic, variadic, loop});
}
