//===- LossOps.cpp - losses that models carry along ------------------------------===//
#include "compiler/import/onnx/Operators.h"

using namespace llmc::onnx;
using namespace llmc::graph;
using namespace mlir;
using llvm::Twine;

namespace {

Value loss(Node &node, Value logarithms) {
  llvm::StringRef name = node.stringAttr("reduction", "mean");
  int64_t reduction = name == "none" ? 0 : name == "sum" ? 1 : 2;
  if (reduction == 2 && name != "mean")
    (void)node.fail("reduction is '" + name + "'; supported: none, sum, mean");
  bool ignores = node.has("ignore_index");
  return node.libraryOne("nll_loss", node.elementType(), {logarithms, node.input(1), node.input(2)},
                         {reduction, ignores, node.intAttr("ignore_index", 0)});
}

LogicalResult negativeLogLikelihood(Node &node) {
  node.set(0, loss(node, node.input(0)));
  return success();
}

LogicalResult softmaxCrossEntropy(Node &node) {
  Value logarithms =
      node.emit<SoftmaxOp>(node.elementType(), node.input(0), uint64_t(1), /*log=*/true);
  node.set(0, loss(node, logarithms));
  node.set(1, logarithms);
  return success();
}

} // namespace

void llmc::onnx::addLossOps(OperatorTable &table) {
  table.add("", "NegativeLogLikelihoodLoss", {12, 2, 3, 1, negativeLogLikelihood});
  table.add("", "SoftmaxCrossEntropyLoss", {12, 2, 3, 2, softmaxCrossEntropy});
}
