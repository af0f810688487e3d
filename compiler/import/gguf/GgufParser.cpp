#include "compiler/import/gguf/GgufParser.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <unordered_set>

using namespace llmrt;

namespace llmc {
namespace {

/// The specification's limit on keys.
constexpr uint64_t maxKeyLength = 65535;
constexpr uint64_t maxNameLength = 4096;
constexpr uint32_t maxDimensions = 4;
constexpr uint64_t maxAlignment = uint64_t(1) << 20;
/// Arrays in arrays that are walked (no key in use has any).
constexpr int maxDepth = 4;
/// Bytes of the smallest metadata entry: key length, one character, type, a byte.
constexpr uint64_t minEntryBytes = 8 + 1 + 4 + 1;
/// Bytes of the smallest tensor entry: name length, one character, dimensions, one of them, type,
/// offset.
constexpr uint64_t minTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

/// Bytes of a value of fixed size; 0 for strings, arrays and unknown types.
uint64_t fixedSize(GgufType type) {
  switch (type) {
  case GgufType::Uint8:
  case GgufType::Int8:
  case GgufType::Bool:
    return 1;
  case GgufType::Uint16:
  case GgufType::Int16:
    return 2;
  case GgufType::Uint32:
  case GgufType::Int32:
  case GgufType::Float32:
    return 4;
  case GgufType::Uint64:
  case GgufType::Int64:
  case GgufType::Float64:
    return 8;
  case GgufType::String:
  case GgufType::Array:
    break;
  }
  return 0;
}

/// \p text with what a terminal might act on replaced, and cut to a readable length.
std::string printable(std::string_view text) {
  std::string out;
  for (char c : text.substr(0, 80))
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return text.size() > 80 ? out + "..." : out;
}

std::string_view viewOf(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

} // namespace

GgufTensorType ggufTensorType(uint32_t number) {
  switch (number) {
#define LLMC_GGUF_TYPE(number, name, values, bytes, encoding)                                      \
  case number:                                                                                     \
    return {name, values, bytes, encoding};
#include "compiler/import/gguf/GgufTypes.inc"
  default:
    return {"unknown", 0, 0, std::nullopt};
  }
}

Status GgufParser::fail(const std::string &why) const {
  return invalidFile(file_.path() + ": " + why);
}

template <typename T> Status GgufParser::read(T &value, const char *what) {
  if (left() < sizeof(T))
    return fail(std::string("ends inside ") + what + " at offset " + std::to_string(at_));
  std::memcpy(&value, file_.bytes().data() + at_, sizeof(T));
  at_ += sizeof(T);
  return Status::ok();
}

Status GgufParser::readText(std::span<const uint8_t> &text, const std::string &what) {
  uint64_t length = 0;
  LLMRT_RETURN_IF_ERROR(read(length, "a length"));
  if (length > left())
    return fail(what + " at offset " + std::to_string(at_) + " claims " + std::to_string(length) +
                " bytes; " + std::to_string(left()) + " are left");
  text = file_.bytes().subspan(at_, length);
  at_ += length;
  return Status::ok();
}

Status GgufParser::readArray(const std::string &key, int depth, GgufValue &value) {
  uint32_t type = 0;
  LLMRT_RETURN_IF_ERROR(read(type, "an array"));
  LLMRT_RETURN_IF_ERROR(read(value.count, "an array"));
  value.elementType = static_cast<GgufType>(type);
  const uint64_t start = at_;
  const uint64_t size = fixedSize(value.elementType);
  if (size != 0) {
    if (value.count > left() / size)
      return fail("the array '" + key + "' claims " + std::to_string(value.count) +
                  " elements; the file has room for " + std::to_string(left() / size));
    at_ += value.count * size;
  } else if (value.elementType == GgufType::String) {
    if (value.count > left() / 8)
      return fail("the array '" + key + "' claims " + std::to_string(value.count) +
                  " strings; the file has room for " + std::to_string(left() / 8));
    std::span<const uint8_t> text;
    for (uint64_t i = 0; i != value.count; ++i)
      LLMRT_RETURN_IF_ERROR(readText(text, "string " + std::to_string(i) + " of '" + key + "'"));
  } else if (value.elementType == GgufType::Array) {
    if (value.count > left() / 12)
      return fail("the array '" + key + "' claims " + std::to_string(value.count) +
                  " arrays; the file has room for " + std::to_string(left() / 12));
    GgufValue inner;
    for (uint64_t i = 0; i != value.count; ++i)
      LLMRT_RETURN_IF_ERROR(readValue(GgufType::Array, key, depth + 1, inner));
  } else {
    return fail("the array '" + key + "' has the unknown element type " + std::to_string(type));
  }
  value.bytes = file_.bytes().subspan(start, at_ - start);
  return Status::ok();
}

Status GgufParser::readValue(GgufType type, const std::string &key, int depth, GgufValue &value) {
  value.type = type;
  if (const uint64_t size = fixedSize(type)) {
    if (left() < size)
      return fail("ends inside the value of '" + key + "'");
    value.bytes = file_.bytes().subspan(at_, size);
    at_ += size;
    return Status::ok();
  }
  if (type == GgufType::String)
    return readText(value.bytes, "the value of '" + key + "'");
  if (type != GgufType::Array)
    return fail("'" + key + "' has the unknown type " +
                std::to_string(static_cast<uint32_t>(type)));
  if (depth == maxDepth)
    return fail("the array '" + key + "' is nested deeper than " + std::to_string(maxDepth));
  return readArray(key, depth, value);
}

Status GgufParser::readTensor(uint64_t index) {
  std::span<const uint8_t> name;
  LLMRT_RETURN_IF_ERROR(readText(name, "the name of tensor " + std::to_string(index)));
  if (name.empty() || name.size() > maxNameLength)
    return fail("the name of tensor " + std::to_string(index) + " has " +
                std::to_string(name.size()) + " bytes; 1 to " + std::to_string(maxNameLength) +
                " are allowed");
  GgufTensor tensor;
  tensor.name = std::string(viewOf(name));
  tensor.file = fileIndex_;
  const auto refuse = [&](const std::string &why) {
    return fail("tensor '" + printable(tensor.name) + "' " + why);
  };
  uint32_t dimensions = 0;
  LLMRT_RETURN_IF_ERROR(read(dimensions, "a tensor entry"));
  if (dimensions == 0 || dimensions > maxDimensions)
    return refuse("has " + std::to_string(dimensions) + " dimensions; 1 to " +
                  std::to_string(maxDimensions) + " are allowed");
  uint64_t count = 1;
  for (uint32_t i = 0; i != dimensions; ++i) {
    uint64_t extent = 0;
    LLMRT_RETURN_IF_ERROR(read(extent, "a tensor entry"));
    if (extent == 0 || extent > (uint64_t(1) << 62) / count)
      return refuse("has a dimension of " + std::to_string(extent));
    count *= extent;
    tensor.shape.insert(tensor.shape.begin(), extent); // the file has the innermost first
  }
  LLMRT_RETURN_IF_ERROR(read(tensor.type, "a tensor entry"));
  LLMRT_RETURN_IF_ERROR(read(tensor.offset, "a tensor entry"));
  const GgufTensorType type = ggufTensorType(tensor.type);
  if (type.values == 0)
    return refuse("has the unknown type " + std::to_string(tensor.type));
  if (tensor.shape.back() % type.values != 0)
    return refuse("has rows of " + std::to_string(tensor.shape.back()) + " values; " + type.name +
                  " needs a multiple of " + std::to_string(type.values));
  const uint64_t blocks = count / type.values;
  if (blocks > UINT64_MAX / type.bytes)
    return refuse("is too large");
  tensor.size = blocks * type.bytes;
  tensors.push_back(std::move(tensor));
  return Status::ok();
}

Status GgufParser::placeTensors() {
  if (tensors.empty())
    return Status::ok();
  const uint64_t padding = (alignment_ - at_ % alignment_) % alignment_;
  const uint64_t start = at_ + padding; // at_ is at most the file's size, alignment_ small
  const uint64_t available = file_.size() > start ? file_.size() - start : 0;
  for (GgufTensor &tensor : tensors) {
    const std::string name = "tensor '" + printable(tensor.name) + "'";
    if (tensor.offset % alignment_ != 0)
      return fail(name + " starts at offset " + std::to_string(tensor.offset) +
                  ", which is no multiple of the alignment " + std::to_string(alignment_));
    if (tensor.offset > available || tensor.size > available - tensor.offset)
      return fail(name + " needs " + std::to_string(tensor.size) + " bytes at offset " +
                  std::to_string(tensor.offset) + " of the data, which has " +
                  std::to_string(available) + " bytes; the file may be cut short");
    tensor.offset += start;
  }
  return checkOverlaps();
}

Status GgufParser::checkOverlaps() const {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::ranges::sort(order, {}, [&](size_t i) { return tensors[i].offset; });
  for (size_t i = 1; i < order.size(); ++i) {
    const GgufTensor &before = tensors[order[i - 1]], &after = tensors[order[i]];
    if (after.offset < before.offset + before.size)
      return fail("tensors '" + printable(before.name) + "' and '" + printable(after.name) +
                  "' overlap");
  }
  return Status::ok();
}

Status GgufParser::parse() {
  uint32_t magic = 0, version = 0;
  if (file_.size() < 4 || std::memcmp(file_.bytes().data(), "GGUF", 4) != 0)
    return fail("is no GGUF file: it doesn't start with the letters GGUF");
  LLMRT_RETURN_IF_ERROR(read(magic, "the head"));
  LLMRT_RETURN_IF_ERROR(read(version, "the head"));
  if (version == 0x02000000 || version == 0x03000000)
    return unsupported(file_.path() + ": is big-endian; little-endian files are supported");
  if (version != 2 && version != 3)
    return unsupported(file_.path() + ": has GGUF version " + std::to_string(version) +
                       "; versions 2 and 3 are supported");
  uint64_t tensorCount = 0, entryCount = 0;
  LLMRT_RETURN_IF_ERROR(read(tensorCount, "the head"));
  LLMRT_RETURN_IF_ERROR(read(entryCount, "the head"));
  if (entryCount > left() / minEntryBytes || tensorCount > left() / minTensorBytes)
    return fail("claims " + std::to_string(entryCount) + " metadata entries and " +
                std::to_string(tensorCount) + " tensors, more than fit its " +
                std::to_string(file_.size()) + " bytes");

  for (uint64_t i = 0; i != entryCount; ++i) {
    std::span<const uint8_t> text;
    LLMRT_RETURN_IF_ERROR(readText(text, "the key of entry " + std::to_string(i)));
    if (text.empty() || text.size() > maxKeyLength)
      return fail("the key of metadata entry " + std::to_string(i) + " has " +
                  std::to_string(text.size()) + " bytes; 1 to " + std::to_string(maxKeyLength) +
                  " are allowed");
    const std::string_view key = viewOf(text);
    uint32_t type = 0;
    LLMRT_RETURN_IF_ERROR(read(type, "a metadata entry"));
    GgufValue value;
    LLMRT_RETURN_IF_ERROR(readValue(static_cast<GgufType>(type), printable(key), 0, value));
    if (!metadata.emplace(key, value).second)
      return fail("the metadata key '" + printable(key) + "' appears twice");
  }
  if (const auto found = metadata.find("general.alignment"); found != metadata.end()) {
    const GgufValue &value = found->second;
    uint32_t alignment = 0;
    if (value.type != GgufType::Uint32)
      return fail("general.alignment is of type " + ggufTypeName(value) + "; uint32 is needed");
    std::memcpy(&alignment, value.bytes.data(), sizeof(alignment));
    if (alignment == 0 || alignment % 8 != 0 || alignment > maxAlignment)
      return fail("general.alignment is " + std::to_string(alignment) + "; a multiple of 8 up to " +
                  std::to_string(maxAlignment) + " is needed");
    alignment_ = alignment;
  }
  for (uint64_t i = 0; i != tensorCount; ++i)
    LLMRT_RETURN_IF_ERROR(readTensor(i));
  return placeTensors();
}

} // namespace llmc
