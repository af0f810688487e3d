//===- ShapeInference.cpp - shapes of graph operations at import --------------===//
#include "compiler/import/onnx/ShapeInference.h"

#include "compiler/import/onnx/ShapeRules.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace llmc::onnx;
using namespace llmc::graph;
using namespace mlir;
using llvm::Twine;

Dim ShapeInference::named(llvm::StringRef name) {
  std::string key = ("=" + name).str();
  return Dim::symbol(symbols.try_emplace(key, static_cast<int64_t>(symbols.size())).first->second);
}

RankedTensorType llmc::onnx::rankedType(llvm::ArrayRef<Dim> dims, Type element) {
  llvm::SmallVector<int64_t> shape;
  int64_t count = 1;
  for (Dim dim : dims) {
    bool isStatic = dim.isNumber();
    if (isStatic &&
        (dim.value < 0 || llvm::MulOverflow(count, std::max<int64_t>(dim.value, 1), count) ||
         count > (int64_t(1) << 60)))
      return nullptr;
    shape.push_back(isStatic ? dim.value : ShapedType::kDynamic);
  }
  return RankedTensorType::get(shape, element);
}

std::optional<Dim> llmc::onnx::broadcast(Dim a, Dim b) {
  if (a.same(b) || b.is(1))
    return a;
  if (a.is(1))
    return b;
  if (a.isNumber() && b.isNumber())
    return std::nullopt;
  // The other is 1 or the same at run time, or the run fails.
  return a.isNumber() ? a : b.isNumber() ? b : Dim();
}

std::optional<Dims> ShapeInference::shape(Value value) const {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return std::nullopt;
  if (auto found = shapes.find(value); found != shapes.end())
    return found->second;
  Dims dims;
  for (int64_t size : type.getShape())
    dims.push_back(ShapedType::isDynamic(size) ? Dim() : Dim::number(size));
  return dims;
}

LogicalResult ShapeInference::infer(Operation *op, Report report) {
  llvm::SmallVector<std::optional<Dims>, 2> inferred(op->getNumResults());
  ShapeRules rules{*this, report, inferred};
  if (failed(rules.apply(op)))
    return failure();
  for (auto [result, dims] : llvm::zip(op->getResults(), inferred)) {
    if (!dims)
      continue;
    RankedTensorType type = rankedType(*dims, cast<TensorType>(result.getType()).getElementType());
    if (!type)
      return report("the result would have a negative dimension or more than 2^60 elements");
    result.setType(type);
    shapes[result] = std::move(*dims);
  }
  if (op->getNumResults() > 0)
    if (std::optional<Dims> elements = inferElements(op))
      known[op->getResult(0)] = std::move(*elements);
  return success();
}
