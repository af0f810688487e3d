#include "compiler/import/huggingface/SafetensorsFile.h"

#include "runtime/text/Json.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

using namespace llmrt;

namespace llmc {
namespace {

/// The reference reader's limit on the JSON part.
constexpr uint64_t maxHeaderBytes = 100000000;
constexpr size_t maxDimensions = 8;

/// Bytes of an element; 0 for a name that no dtype has.
uint64_t elementBytes(std::string_view dtype) {
  struct Dtype {
    std::string_view name;
    uint64_t bytes;
  };
  static constexpr Dtype dtypes[] = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},   {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"I16", 2},
      {"U16", 2},  {"F16", 2}, {"BF16", 2}, {"I32", 4},     {"U32", 4},     {"F32", 4},
      {"I64", 8},  {"U64", 8}, {"F64", 8},  {"C64", 8},     {"F8_E8M0", 1}};
  for (const Dtype &known : dtypes)
    if (known.name == dtype)
      return known.bytes;
  return 0;
}

std::string printable(std::string_view text) {
  std::string out;
  for (char c : text.substr(0, 80))
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return text.size() > 80 ? out + "..." : out;
}

class Reader {
public:
  explicit Reader(const MappedFile &file) : file_(file) {}

  Result<std::vector<SafetensorsTensor>> read() {
    std::string_view text;
    LLMRT_RETURN_IF_ERROR(findHeader(text));
    Result<JsonDocument> document = JsonDocument::parse(text);
    if (!document.isOk())
      return fail("its JSON part is malformed: " + document.status().message());
    if (!document->root().isObject())
      return fail("its JSON part is no object");
    std::vector<SafetensorsTensor> tensors;
    std::unordered_set<std::string_view> names;
    for (auto [name, entry] : document->root().members()) {
      if (!names.insert(name).second)
        return fail("tensor '" + printable(name) + "' appears twice");
      if (name == "__metadata__")
        continue;
      LLMRT_ASSIGN_OR_RETURN(SafetensorsTensor tensor, readTensor(std::string(name), entry));
      tensors.push_back(std::move(tensor));
    }
    LLMRT_RETURN_IF_ERROR(checkLayout(tensors));
    return tensors;
  }

private:
  Status fail(const std::string &why) const { return invalidFile(file_.path() + ": " + why); }

  Status findHeader(std::string_view &text) {
    const std::string_view all(reinterpret_cast<const char *>(file_.bytes().data()), file_.size());
    if (all.empty())
      return fail("is empty; it may not have been downloaded");
    if (all.starts_with("version https://git-lfs"))
      return fail("is a Git LFS pointer, not the weights; fetch them with 'git lfs pull'");
    if (all.size() < 8)
      return fail("has " + std::to_string(all.size()) +
                  " bytes; a safetensors file has at least 8");
    uint64_t length = 0;
    std::memcpy(&length, all.data(), sizeof(length));
    if (length > maxHeaderBytes)
      return fail("claims a JSON part of " + std::to_string(length) + " bytes; at most " +
                  std::to_string(maxHeaderBytes) + " are allowed. Is it a safetensors file?");
    if (length > all.size() - 8)
      return fail("claims a JSON part of " + std::to_string(length) + " bytes, but has " +
                  std::to_string(all.size() - 8) + " bytes after the length; it may be cut short");
    text = all.substr(8, length);
    dataStart_ = 8 + length;
    if (!text.starts_with('{'))
      return fail("its JSON part doesn't start with '{'");
    return Status::ok();
  }

  Result<SafetensorsTensor> readTensor(std::string name, JsonValue entry) {
    const auto refuse = [&](const std::string &why) {
      return fail("tensor '" + printable(name) + "': " + why);
    };
    if (!entry.isObject())
      return refuse(std::string("is ") + entry.typeName() + ", not an object");
    std::unordered_set<std::string_view> keys;
    for (auto [key, value] : entry.members())
      if (!keys.insert(key).second)
        return refuse("has '" + printable(key) + "' twice");
    const JsonValue dtype = entry["dtype"], shape = entry["shape"], range = entry["data_offsets"];
    if (!dtype.isString() || !shape.isArray() || !range.isArray() || range.size() != 2)
      return refuse("needs dtype (a string), shape (an array) and data_offsets (two numbers)");
    SafetensorsTensor tensor;
    tensor.dtype = std::string(dtype.asString());
    uint64_t bytes = elementBytes(tensor.dtype);
    if (bytes == 0)
      return refuse("has the unknown dtype '" + printable(tensor.dtype) + "'");
    if (shape.size() > maxDimensions)
      return refuse("has " + std::to_string(shape.size()) + " dimensions; up to " +
                    std::to_string(maxDimensions) + " are supported");
    for (JsonValue extent : shape.elements()) {
      const std::optional<int64_t> number = integer(extent);
      if (!number || *number < 0)
        return refuse("has a dimension that is no size");
      if (*number != 0 && bytes > uint64_t(INT64_MAX) / static_cast<uint64_t>(*number))
        return refuse("is too large");
      bytes *= static_cast<uint64_t>(*number);
      tensor.shape.push_back(static_cast<uint64_t>(*number));
    }
    uint64_t ends[2];
    size_t i = 0;
    for (JsonValue end : range.elements()) {
      const std::optional<int64_t> number = integer(end);
      if (!number || *number < 0)
        return refuse("has data_offsets that are no offsets");
      ends[i++] = static_cast<uint64_t>(*number);
    }
    const uint64_t available = file_.size() - dataStart_;
    if (ends[0] > ends[1] || ends[1] > available)
      return refuse("lies at bytes " + std::to_string(ends[0]) + " to " + std::to_string(ends[1]) +
                    " of the data, which has " + std::to_string(available) +
                    " bytes; the file may be cut short");
    if (ends[1] - ends[0] != bytes)
      return refuse("has " + std::to_string(ends[1] - ends[0]) + " bytes; its shape and dtype " +
                    tensor.dtype + " need " + std::to_string(bytes));
    tensor.name = std::move(name);
    tensor.offset = dataStart_ + ends[0];
    tensor.size = bytes;
    return tensor;
  }

  static std::optional<int64_t> integer(JsonValue value) {
    if (!value || value.type() != JsonType::Number)
      return std::nullopt;
    return value.asInteger();
  }

  /// Tensors follow each other without holes, up to the end of the file.
  Status checkLayout(const std::vector<SafetensorsTensor> &tensors) const {
    std::vector<const SafetensorsTensor *> order;
    for (const SafetensorsTensor &tensor : tensors)
      order.push_back(&tensor);
    std::ranges::sort(order, {}, [](const SafetensorsTensor *t) {
      return std::pair(t->offset, t->size); // empty ones before what starts at the same place
    });
    uint64_t end = dataStart_;
    for (const SafetensorsTensor *tensor : order) {
      if (tensor->offset != end)
        return fail(
            "tensor '" + printable(tensor->name) + "' " +
            (tensor->offset < end ? "overlaps the one before it" : "leaves a hole before it"));
      end += tensor->size;
    }
    if (end != file_.size())
      return fail("has " + std::to_string(file_.size() - end) + " bytes behind the last tensor");
    return Status::ok();
  }

  const MappedFile &file_;
  uint64_t dataStart_ = 0;
};

} // namespace

Result<std::vector<SafetensorsTensor>> readSafetensors(const MappedFile &file) {
  return Reader(file).read();
}

Result<WeightSource> safetensorsSource(const MappedFile &file, const SafetensorsTensor &tensor) {
  WeightSource source;
  source.name = tensor.name;
  if (tensor.dtype == "F32")
    source.encoding = WeightEncoding::F32;
  else if (tensor.dtype == "F16")
    source.encoding = WeightEncoding::F16;
  else if (tensor.dtype == "BF16")
    source.encoding = WeightEncoding::BF16;
  else if (tensor.dtype == "F64")
    source.encoding = WeightEncoding::F64;
  else
    return unsupported(file.path() + ": tensor '" + tensor.name + "' is of dtype " + tensor.dtype +
                       "; F32, F16, BF16 and F64 are supported");
  source.rows = 1;
  source.columns = tensor.shape.size() > 1 ? tensor.shape.back() : 1;
  for (size_t i = 0; i + (tensor.shape.size() > 1) < tensor.shape.size(); ++i)
    source.rows *= tensor.shape[i];
  LLMRT_ASSIGN_OR_RETURN(source.data,
                         file.extent(tensor.offset, tensor.size, "tensor '" + tensor.name + "'"));
  LLMRT_RETURN_IF_ERROR(source.check().withContext(file.path()));
  return source;
}

} // namespace llmc
