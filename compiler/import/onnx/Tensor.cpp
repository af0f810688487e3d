//===- Tensor.cpp - where the elements of an ONNX tensor are ------------------===//
#include "compiler/import/onnx/Tensor.h"

#include "compiler/import/common/ConfinedPath.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"

using namespace llmc;
using namespace llmc::onnx;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

TensorReader::TensorReader(StringRef path, llvm::ArrayRef<uint8_t> model)
    : model(model), folder(llvm::sys::path::parent_path(path)) {
  names.push_back(llvm::sys::path::filename(path).str());
}

/// Number of the typed field that holds elements of \p type; 0 for an unknown type.
static uint32_t typedField(DataType type) {
  switch (type) {
#define LLMC_ONNX_TYPE(name, number, bits, field)                                                  \
  case DataType::name##_:                                                                          \
    return field;
#include "compiler/import/onnx/DataTypes.inc"
  default:
    return 0;
  }
}

static std::string describe(const TensorView &tensor) {
  std::string text = ("tensor '" + tensor.name + "' (" + dataTypeName(tensor.type) + "[").str();
  for (size_t i = 0; i < tensor.dims.size(); ++i)
    text += (i ? "," : "") + std::to_string(tensor.dims[i]);
  return text + "])";
}

static Error wrongSize(const TensorView &tensor, const Twine &where, uint64_t has, uint64_t wants) {
  return malformed(describe(tensor) + " has " + Twine(has) + " bytes of " + where + " but needs " +
                   Twine(wants));
}

Expected<TensorData> TensorReader::read(const TensorView &tensor) {
  if (tensor.type == DataType::string_)
    return malformed(describe(tensor) + ": tensors of strings are not supported");
  const unsigned bits = elementBits(tensor.type);
  if (bits == 0)
    return malformed(describe(tensor) + ": unknown data type; known are 1 to 26");
  Expected<int64_t> count = tensor.numElements();
  if (!count)
    return count.takeError();
  int64_t numBits;
  if (llvm::MulOverflow<int64_t>(*count, bits, numBits))
    return malformed(describe(tensor) + " is larger than any file");
  const uint64_t size = llvm::divideCeil(static_cast<uint64_t>(numBits), 8);

  if (tensor.external) {
    if (tensor.raw && tensor.raw->size != 0)
      return malformed(describe(tensor) + " has both raw_data and external data");
    return readExternal(tensor, size);
  }
  if (!tensor.raw)
    return readTyped(tensor, *count, size);
  if (tensor.raw->size != size)
    return wrongSize(tensor, "raw_data", tensor.raw->size, size);
  TensorData data;
  data.bytes = tensor.raw->bytes();
  data.file = 0;
  data.offset = tensor.raw->offset;
  return data;
}

Expected<TensorData> TensorReader::readExternal(const TensorView &tensor, uint64_t size) {
  StringRef location;
  uint64_t offset = 0, length = size;
  bool hasLocation = false;
  for (const StringPair &entry : tensor.externalData) {
    // Other keys (a checksum, a base path) don't say where the data is.
    uint64_t *number = entry.key == "offset" ? &offset : entry.key == "length" ? &length : nullptr;
    if (entry.key == "location") {
      location = entry.value;
      hasLocation = true;
    } else if (number && entry.value.getAsInteger(10, *number)) {
      return malformed(describe(tensor) + ": the " + entry.key + " of its external data is '" +
                       entry.value.take_front(32) + "', not a number");
    }
  }
  if (!hasLocation)
    return malformed(describe(tensor) + " has external data without a location");
  if (length != size)
    return wrongSize(tensor, "external data", length, size);
  Expected<unsigned> file = open(location);
  if (!file)
    return file.takeError();
  auto extent = external[*file - 1].extent(offset, size, describe(tensor));
  if (!extent)
    return malformed(extent.status().message());
  TensorData data;
  data.bytes = {extent->data(), extent->size()};
  data.file = *file;
  data.offset = offset;
  return data;
}

Expected<unsigned> TensorReader::open(StringRef location) {
  if (auto known = locations.find(location); known != locations.end())
    return known->second;
  auto file = openConfined(folder, {location.data(), location.size()}, "external data");
  if (!file)
    return malformed(file.status().message());
  std::string_view head(reinterpret_cast<const char *>(file->bytes().data()),
                        std::min<size_t>(file->bytes().size(), 23));
  if (head == "version https://git-lfs")
    return malformed(file->path() +
                     " is a Git LFS pointer, not data; fetch it with `git lfs pull`");
  names.push_back(location.str());
  external.push_back(std::move(*file));
  unsigned index = static_cast<unsigned>(names.size() - 1);
  locations[location] = index;
  return index;
}

Expected<TensorData> TensorReader::readTyped(const TensorView &tensor, int64_t count,
                                             uint64_t size) {
  const uint32_t number = typedField(tensor.type);
  const bool isFixed = number == 4 || number == 10;
  const unsigned width = number == 4 ? 4 : 8;
  // How many bytes one value of the field holds: 4-bit and 2-bit elements come in whole bytes,
  // a complex number as two values.
  const unsigned bits = elementBits(tensor.type);
  const unsigned valueBytes = isFixed ? width : std::max(bits / 8, 1u);

  // First pass: how much is there? Nothing is allocated on the word of the dims alone.
  uint64_t values = 0, runs = 0;
  Span run;
  if (Error error = forEachField(tensor.message, [&](const Field &f) -> Error {
        if (f.number != number)
          return Error::success();
        ++runs;
        run = f.span;
        auto countOne = [&](uint64_t) -> Error {
          ++values;
          return Error::success();
        };
        if (isFixed && f.type == WireType::Bytes && f.span.size % width == 0) {
          values += f.span.size / width;
          return Error::success();
        }
        return isFixed ? forEachFixed(f, width, countOne) : forEachVarint(f, countOne);
      }))
    return error;
  if (values != llvm::divideCeil(size, valueBytes))
    return wrongSize(tensor, "typed data", values * valueBytes, size);

  TensorData data;
  if (isFixed && runs == 1 && run.size == size) {
    data.bytes = run.bytes();
    data.file = 0;
    data.offset = run.offset;
    return data;
  }
  data.owned = std::make_unique<uint8_t[]>(size);
  uint64_t at = 0;
  auto store = [&](uint64_t value) -> Error {
    for (unsigned i = 0; i < valueBytes && at < size; ++i)
      data.owned[at++] = static_cast<uint8_t>(value >> (8 * i));
    return Error::success();
  };
  if (Error error = forEachField(tensor.message, [&](const Field &f) -> Error {
        if (f.number != number)
          return Error::success();
        return isFixed ? forEachFixed(f, width, store) : forEachVarint(f, store);
      }))
    return error;
  data.bytes = {data.owned.get(), static_cast<size_t>(size)};
  return data;
}
