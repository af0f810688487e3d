//===- Materialize.cpp - a tensor of the file as a constant or a weight -------===//
#include "compiler/import/onnx/Importer.h"

using namespace llmc;
using namespace llmc::onnx;
using namespace mlir;
using llvm::Twine;

using Report = llvm::function_ref<LogicalResult(const Twine &)>;

/// Floats up to this size are constants, which passes may look at and fold.
static constexpr uint64_t maxFloatConstant = 4096;
/// Integers and booleans are shapes, indices and masks, not weights, and stay constants longer.
static constexpr uint64_t maxIntegerConstant = 65536;

/// Whether an initializer has a weight's shape however small it is: a vector or matrix of floats
/// with rows of 8 or more, or a block of 8-bit or narrower integers. Tiny models keep the same
/// structure as large ones that way.
static bool hasWeightShape(const TensorView &tensor, Type element, int64_t count) {
  if (auto integer = dyn_cast<IntegerType>(element))
    return integer.getWidth() > 1 && integer.getWidth() <= 8 && count >= 16;
  return (tensor.dims.size() == 1 || tensor.dims.size() == 2) && tensor.dims.back() >= 8;
}

static DenseElementsAttr makeElements(RankedTensorType type, llvm::ArrayRef<uint8_t> bytes) {
  Type element = type.getElementType();
  unsigned bits = element.getIntOrFloatBitWidth();
  size_t count = static_cast<size_t>(type.getNumElements());
  if (element.isInteger(1)) {
    auto values = std::make_unique<bool[]>(count);
    for (size_t i = 0; i < count; ++i)
      values[i] = bytes[i] != 0;
    return DenseElementsAttr::get(type, llvm::ArrayRef<bool>(values.get(), count));
  }
  // MLIR keeps an element of less than 8 bits in a byte of its own.
  llvm::SmallVector<uint8_t> unpacked;
  if (bits < 8) {
    unpacked.reserve(count);
    unsigned perByte = 8 / bits;
    for (size_t i = 0; i < count; ++i)
      unpacked.push_back(bytes[i / perByte] >> (i % perByte * bits) & ((1u << bits) - 1));
    bytes = unpacked;
  }
  // One element stands for all where they are the same, so that folds see a splat.
  size_t width = std::max(bits / 8, 1u);
  bool isSplat = count > 1;
  for (size_t i = width; isSplat && i < bytes.size(); ++i)
    isSplat = bytes[i] == bytes[i - width];
  if (isSplat)
    bytes = bytes.take_front(width);
  return DenseElementsAttr::getFromRawBuffer(
      type, {reinterpret_cast<const char *>(bytes.data()), bytes.size()});
}

/// The type of \p tensor; null after a report.
static RankedTensorType tensorType(MLIRContext *context, const TensorView &tensor, Report report) {
  Type element = mlirElementType(context, tensor.type);
  if (!element) {
    (void)report("tensor '" + tensor.name + "' has elements of " + dataTypeName(tensor.type) +
                 ", which is not supported");
    return nullptr;
  }
  Dims dims;
  for (int64_t dim : tensor.dims)
    dims.push_back(Dim::number(dim));
  RankedTensorType type = rankedType(dims, element);
  if (!type)
    (void)report("tensor '" + tensor.name +
                 "' has a negative dimension or more than 2^60 elements");
  return type;
}

ElementsAttr Importer::elements(const TensorView &tensor, Report report) {
  RankedTensorType type = tensorType(builder.getContext(), tensor, report);
  if (!type)
    return nullptr;
  auto data = tensors.read(tensor);
  if (!data) {
    (void)report(llvm::toString(data.takeError()));
    return nullptr;
  }
  return makeElements(type, data->bytes);
}

Value Importer::materialize(const TensorView &tensor, Location loc, bool isNamed, Report report) {
  RankedTensorType type = tensorType(builder.getContext(), tensor, report);
  if (!type)
    return nullptr;
  auto data = tensors.read(tensor);
  if (!data) {
    (void)report(llvm::toString(data.takeError()));
    return nullptr;
  }
  Type element = type.getElementType();
  bool isIndexLike =
      element.isInteger(1) || (isa<IntegerType>(element) && element.getIntOrFloatBitWidth() >= 32);
  bool isLarge = data->bytes.size() > (isIndexLike ? maxIntegerConstant : maxFloatConstant);
  bool isWeight = isLarge || (isNamed && !isIndexLike &&
                              hasWeightShape(tensor, element, type.getNumElements()));
  Operation *op;
  // Elements that a writer spread over varints are in no place of the file.
  if (isWeight && data->file)
    op = graph::WeightOp::create(builder, loc, type, tensor.name, tensors.files()[*data->file],
                                 static_cast<int64_t>(data->offset),
                                 static_cast<int64_t>(data->bytes.size()));
  else
    op = graph::ConstantOp::create(builder, loc, makeElements(type, data->bytes));
  if (failed(shapes.infer(op, report)))
    return nullptr;
  return op->getResult(0);
}
