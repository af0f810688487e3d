//===- DataTypes.cpp - element types and sizes of tensors ---------------------===//
#include "compiler/import/onnx/Model.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/MathExtras.h"

using namespace llmc::onnx;
using llvm::Expected;
using llvm::Twine;

std::string llmc::onnx::dataTypeName(DataType type) {
  switch (type) {
#define LLMC_ONNX_TYPE(name, number, bits, field)                                                  \
  case DataType::name##_:                                                                          \
    return #name;
#include "compiler/import/onnx/DataTypes.inc"
  default:
    return ("data type " + Twine(static_cast<int32_t>(type))).str();
  }
}

unsigned llmc::onnx::elementBits(DataType type) {
  switch (type) {
#define LLMC_ONNX_TYPE(name, number, bits, field)                                                  \
  case DataType::name##_:                                                                          \
    return bits;
#include "compiler/import/onnx/DataTypes.inc"
  default:
    return 0;
  }
}

Expected<int64_t> TensorView::numElements() const {
  int64_t count = 1;
  bool overflow = false, empty = false;
  for (int64_t dim : dims) {
    if (dim < 0)
      return malformed("tensor '" + name + "' has the negative dimension " + Twine(dim));
    empty |= dim == 0;
    int64_t product;
    if (llvm::MulOverflow(count, dim == 0 ? int64_t(1) : dim, product))
      overflow = true;
    else
      count = product;
  }
  if (empty)
    return 0;
  if (overflow)
    return malformed("tensor '" + name + "' has more than 2^63 - 1 elements");
  return count;
}
