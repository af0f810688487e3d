#include "compiler/passes/raise/HostArray.h"

#include "dialects/graph/NodeLocation.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <cmath>

using namespace mlir;
using namespace llmc::raise;

std::optional<int64_t> llmc::raise::countElements(ArrayRef<int64_t> shape, int64_t limit) {
  int64_t count = 1;
  for (int64_t dim : shape)
    if (dim < 0 || llvm::MulOverflow(count, dim, count))
      return std::nullopt;
  return count <= limit ? std::optional(count) : std::nullopt;
}

Shape llmc::raise::stridesOf(ArrayRef<int64_t> shape) {
  Shape strides(shape.size(), 1);
  for (int64_t i = static_cast<int64_t>(shape.size()) - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * shape[i + 1];
  return strides;
}

HostArray::HostArray(Type type, ArrayRef<int64_t> shape) : shape(shape), type(type) {
  int64_t count = countElements(shape).value_or(0);
  if (isFloat())
    floats.resize(count);
  else
    ints.resize(count);
}

double llmc::raise::roundTo(Type type, double value) {
  if (type.isF64())
    return value;
  if (type.isF32())
    return static_cast<float>(value);
  llvm::APFloat exact(value);
  bool losesInfo;
  exact.convert(cast<FloatType>(type).getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven,
                &losesInfo);
  return exact.convertToDouble();
}

int64_t llmc::raise::wrapTo(Type type, int64_t value) {
  auto integer = cast<IntegerType>(type);
  unsigned width = integer.getWidth();
  if (width == 1)
    return value != 0;
  if (width >= 64)
    return value;
  uint64_t bits = static_cast<uint64_t>(value) & llvm::maskTrailingOnes<uint64_t>(width);
  return integer.isUnsigned() ? static_cast<int64_t>(bits) : llvm::SignExtend64(bits, width);
}

void HostArray::set(int64_t i, double value) {
  if (isFloat()) {
    floats[i] = roundTo(type, value);
    return;
  }
  if (type.isInteger(1)) {
    ints[i] = value != 0; // NaN is true, as in ONNX.
    return;
  }
  // Out of the range of int64 there is no right value; saturate rather than be undefined.
  int64_t whole = std::isnan(value) ? 0
                  : value >= 0x1p63 ? INT64_MAX
                  : value < -0x1p63 ? INT64_MIN
                                    : static_cast<int64_t>(value);
  ints[i] = wrapTo(type, whole);
}

void HostArray::set(int64_t i, int64_t value) {
  if (isFloat())
    floats[i] = roundTo(type, static_cast<double>(value));
  else
    ints[i] = wrapTo(type, value);
}

/// Equal bits, but that any NaN equals any other.
bool HostArray::equals(const HostArray &other) const {
  if (type != other.type || shape != other.shape || ints != other.ints)
    return false;
  for (size_t i = 0; i < floats.size(); ++i) {
    double a = floats[i], b = other.floats[i];
    if (std::isnan(a) ? !std::isnan(b) : a != b || std::signbit(a) != std::signbit(b))
      return false;
  }
  return true;
}

HostArrayRef llmc::raise::fromElements(ElementsAttr attr) {
  Type type = attr.getElementType();
  if (!type.isIntOrFloat() || type.getIntOrFloatBitWidth() > 64 || !attr.getShapedType().hasRank())
    return nullptr;
  auto array = std::make_shared<HostArray>(type, attr.getShapedType().getShape());
  int64_t i = 0;
  if (array->isFloat()) {
    auto values = attr.tryGetValues<APFloat>();
    if (!values)
      return nullptr;
    for (APFloat value : *values) {
      bool losesInfo;
      value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
      array->floats[i++] = value.convertToDouble();
    }
    return array;
  }
  auto values = attr.tryGetValues<APInt>();
  if (!values)
    return nullptr;
  for (const APInt &value : *values)
    array->ints[i++] = wrapTo(type, static_cast<int64_t>(value.getZExtValue()));
  return array;
}

DenseElementsAttr llmc::raise::toElements(const HostArray &array) {
  auto type = RankedTensorType::get(array.shape, array.type);
  if (array.isFloat()) {
    const llvm::fltSemantics &semantics = cast<FloatType>(array.type).getFloatSemantics();
    std::vector<APFloat> values;
    values.reserve(array.floats.size());
    for (double number : array.floats) {
      APFloat value(number);
      bool losesInfo;
      value.convert(semantics, APFloat::rmNearestTiesToEven, &losesInfo);
      values.push_back(value);
    }
    return DenseElementsAttr::get(type, values);
  }
  unsigned width = cast<IntegerType>(array.type).getWidth();
  std::vector<APInt> values;
  values.reserve(array.ints.size());
  for (int64_t number : array.ints)
    values.push_back(APInt(64, static_cast<uint64_t>(number)).zextOrTrunc(width));
  return DenseElementsAttr::get(type, values);
}

HostArrayRef llmc::raise::readWeight(graph::WeightOp weight, int64_t maxElements) {
  auto type = dyn_cast<RankedTensorType>(weight.getType());
  if (!type || !type.hasStaticShape() || !countElements(type.getShape(), maxElements))
    return nullptr;
  // Files are named relative to the folder of the model that was imported.
  llvm::SmallString<128> path;
  if (auto module = weight->getParentOfType<ModuleOp>())
    if (auto folder = module->getAttrOfType<StringAttr>(graph::kFolderAttr))
      path = folder.getValue();
  llvm::sys::path::append(path, weight.getFile());
  auto buffer = llvm::MemoryBuffer::getFileSlice(path, weight.getBytes(), weight.getOffset());
  if (!buffer || (*buffer)->getBufferSize() != static_cast<size_t>(weight.getBytes()))
    return nullptr;
  Type element = type.getElementType();
  auto array = std::make_shared<HostArray>(element, type.getShape());
  const auto *bytes = reinterpret_cast<const uint8_t *>((*buffer)->getBufferStart());
  unsigned width = element.isInteger(1) ? 8 : element.getIntOrFloatBitWidth();
  for (int64_t i = 0, count = array->size(); i < count; ++i) {
    uint64_t bits = 0;
    if (width < 8) {
      unsigned perByte = 8 / width;
      bits = bytes[i / perByte] >> (i % perByte * width) & ((1u << width) - 1);
    } else {
      for (unsigned b = 0; b < width / 8; ++b)
        bits |= static_cast<uint64_t>(bytes[i * (width / 8) + b]) << (8 * b);
    }
    if (array->isFloat()) {
      APFloat value(cast<FloatType>(element).getFloatSemantics(), APInt(width, bits));
      bool losesInfo;
      value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
      array->floats[i] = value.convertToDouble();
    } else {
      array->ints[i] = wrapTo(element, static_cast<int64_t>(bits));
    }
  }
  return array;
}
