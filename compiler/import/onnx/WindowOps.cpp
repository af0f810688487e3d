//===- WindowOps.cpp - window functions, mel weights ------------------------------===//
#include "compiler/import/onnx/Operators.h"

using namespace llmc::onnx;
using namespace llmc::graph;
using namespace mlir;
using llvm::Twine;

namespace {

Type outputType(Node &node) {
  int64_t type = node.intAttr("output_datatype", 1);
  Type element = mlirElementType(node.builder.getContext(), static_cast<DataType>(type));
  if (!element)
    (void)node.fail("output_datatype " + dataTypeName(static_cast<DataType>(type)) +
                    " is not supported");
  return element;
}

LogicalResult window(Node &node, double a0, double a1, double a2) {
  bool periodic = node.boolAttr("periodic", true);
  Type type = outputType(node);
  if (!type)
    return failure();
  Type f64 = node.builder.getF64Type();
  Value y = node.libraryOne("cosine_window", f64, node.input(0), int64_t(periodic), {a0, a1, a2});
  node.set(0, node.cast(y, type));
  return success();
}

LogicalResult hann(Node &node) { return window(node, 0.5, 0.5, 0); }
LogicalResult hamming(Node &node) { return window(node, 25.0 / 46, 21.0 / 46, 0); }
LogicalResult blackman(Node &node) { return window(node, 0.42, 0.5, 0.08); }

LogicalResult melWeights(Node &node) {
  Type type = outputType(node);
  if (!type)
    return failure();
  Value y =
      node.libraryOne("mel_weights", node.builder.getF64Type(),
                      {node.input(0), node.input(1), node.input(2), node.input(3), node.input(4)});
  node.set(0, node.cast(y, type));
  return success();
}

} // namespace

void llmc::onnx::addWindowOps(OperatorTable &table) {
  table.add("", "HannWindow", {17, 1, 1, 1, hann});
  table.add("", "HammingWindow", {17, 1, 1, 1, hamming});
  table.add("", "BlackmanWindow", {17, 1, 1, 1, blackman});
  table.add("", "MelWeightMatrix", {17, 5, 5, 1, melWeights});
}
