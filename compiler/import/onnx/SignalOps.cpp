//===- SignalOps.cpp - Fourier transforms, sums of products ---------------===//
#include "compiler/import/onnx/Operators.h"
#include "llvm/ADT/StringExtras.h"

using namespace llmc::onnx;
using namespace llmc::graph;
using namespace mlir;
using llvm::Twine;

namespace {

LogicalResult dft(Node &node, Value axis) {
  bool inverse = node.boolAttr("inverse", false), half = node.boolAttr("onesided", false);
  node.set(0, node.libraryOne("dft", node.elementType(), {node.input(0), node.input(1), axis},
                              {inverse, half}));
  return success();
}

Value axisOf(Node &node, int64_t axis) {
  auto type = RankedTensorType::get({}, node.builder.getI64Type());
  return node.constant(DenseElementsAttr::get(type, axis));
}

LogicalResult dft17(Node &node) { return dft(node, axisOf(node, node.intAttr("axis", 1))); }
LogicalResult dft20(Node &node) {
  return dft(node, node.input(2) ? node.input(2) : axisOf(node, -2));
}

LogicalResult stft(Node &node) {
  bool half = node.boolAttr("onesided", true);
  node.set(0, node.libraryOne("stft", node.elementType(),
                              {node.input(0), node.input(1), node.input(2), node.input(3)},
                              int64_t(half)));
  return success();
}

/// The letters of one term of an equation: where its ellipsis stands (-1: none), how many letters
/// there are, the letters.
bool addTerm(llvm::StringRef term, llvm::SmallVectorImpl<int64_t> &to) {
  int64_t ellipsis = -1;
  llvm::SmallVector<int64_t> letters;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term.substr(i).starts_with("...") && ellipsis < 0) {
      ellipsis = static_cast<int64_t>(letters.size());
      i += 2;
    } else if (llvm::isAlpha(term[i])) {
      letters.push_back(term[i] >= 'a' ? term[i] - 'a' : term[i] - 'A' + 26);
    } else {
      return false;
    }
  }
  to.push_back(ellipsis);
  to.push_back(static_cast<int64_t>(letters.size()));
  llvm::append_range(to, letters);
  return true;
}

LogicalResult einsum(Node &node) {
  std::string equation;
  for (char c : node.stringAttr("equation", ""))
    if (c != ' ')
      equation += c;
  auto [left, right] = llvm::StringRef(equation).split("->");
  llvm::SmallVector<llvm::StringRef> terms;
  left.split(terms, ',');
  if (terms.size() != node.numInputs())
    return node.fail("equation '" + equation + "' has " + Twine(terms.size()) + " terms for " +
                     Twine(node.numInputs()) + " inputs");
  if (terms.size() > 8)
    return node.fail("more than 8 inputs are not supported");
  std::string implicit;
  if (!llvm::StringRef(equation).contains("->")) {
    // Without a result: the letters that come once, in order, behind the ellipsis.
    if (left.contains("..."))
      implicit = "...";
    for (const char *range : {"AZ", "az"})
      for (char c = range[0]; c <= range[1]; ++c)
        if (left.count(c) == 1)
          implicit += c;
    right = implicit;
  }
  llvm::SmallVector<int64_t> integers{static_cast<int64_t>(terms.size())};
  bool isValid = true;
  for (llvm::StringRef term : terms)
    isValid &= addTerm(term, integers);
  isValid &= addTerm(right, integers);
  if (!isValid)
    return node.fail("equation '" + equation + "' is not one of letters, ',' '...' and '->'");
  node.set(0, node.libraryOne("einsum", node.elementType(), node.inputs, integers));
  return success();
}

LogicalResult det(Node &node) {
  node.set(0, node.libraryOne("det", node.elementType(), node.input(0)));
  return success();
}

} // namespace

void llmc::onnx::addSignalOps(OperatorTable &table) {
  table.add("", "DFT", {17, 1, 2, 1, dft17});
  table.add("", "DFT", {20, 1, 3, 1, dft20});
  table.add("", "STFT", {17, 2, 4, 1, stft});
  table.add("", "Einsum", {12, 1, variadic, 1, einsum});
  table.add("", "Det", {11, 1, 1, 1, det});
}
