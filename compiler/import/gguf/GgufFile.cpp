#include "compiler/import/gguf/GgufFile.h"

#include "compiler/import/common/ConfinedPath.h"
#include "compiler/import/gguf/GgufParser.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>

using namespace llmrt;

namespace llmc {
namespace {

constexpr const char *typeNames[] = {"uint8",  "int8",    "uint16", "int16",  "uint32",
                                     "int32",  "float32", "bool",   "string", "array",
                                     "uint64", "int64",   "float64"};

template <typename T> T load(const uint8_t *bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

/// Element \p i of integers of type \p type; nothing for another type or a negative number.
std::optional<uint64_t> unsignedAt(GgufType type, const uint8_t *bytes, uint64_t i) {
  int64_t number = 0;
  switch (type) {
  case GgufType::Uint8:
    return bytes[i];
  case GgufType::Uint16:
    return load<uint16_t>(bytes + 2 * i);
  case GgufType::Uint32:
    return load<uint32_t>(bytes + 4 * i);
  case GgufType::Uint64:
    return load<uint64_t>(bytes + 8 * i);
  case GgufType::Int8:
    number = static_cast<int8_t>(bytes[i]);
    break;
  case GgufType::Int16:
    number = load<int16_t>(bytes + 2 * i);
    break;
  case GgufType::Int32:
    number = load<int32_t>(bytes + 4 * i);
    break;
  case GgufType::Int64:
    number = load<int64_t>(bytes + 8 * i);
    break;
  default:
    return std::nullopt;
  }
  if (number < 0)
    return std::nullopt;
  return static_cast<uint64_t>(number);
}

std::string fileName(const std::string &path) {
  return std::filesystem::path(path).filename().string();
}

} // namespace

std::string ggufTypeName(const GgufValue &value) {
  const auto name = [](GgufType type) {
    const size_t i = static_cast<size_t>(type);
    return std::string(i < std::size(typeNames) ? typeNames[i] : "unknown type");
  };
  if (value.type != GgufType::Array)
    return name(value.type);
  return "array of " + std::to_string(value.count) + " " + name(value.elementType);
}

std::string GgufFile::tensorTypeName(uint32_t type) { return ggufTensorType(type).name; }

Status GgufFile::addTensors(std::vector<GgufTensor> tensors) {
  for (GgufTensor &tensor : tensors) {
    if (!tensorIndex_.emplace(tensor.name, tensors_.size()).second)
      return invalidFile(files_[tensor.file].path() + ": tensor '" + tensor.name.substr(0, 80) +
                         "' appears twice");
    tensors_.push_back(std::move(tensor));
  }
  return Status::ok();
}

Result<GgufFile> GgufFile::open(const std::string &path) {
  GgufFile result;
  LLMRT_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  result.files_.push_back(std::move(file));
  GgufParser parser(result.files_.front(), 0);
  LLMRT_RETURN_IF_ERROR(parser.parse());
  // Keys and values are views of the mapping, which keeps its address when the file moves.
  result.metadata_ = std::move(parser.metadata);
  LLMRT_RETURN_IF_ERROR(result.addTensors(std::move(parser.tensors)));
  LLMRT_RETURN_IF_ERROR(result.openRest(path));
  return result;
}

Status GgufFile::openRest(const std::string &path) {
  // split.count files NAME-00001-of-0000N.gguf; the first has the metadata.
  LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> count, unsignedInteger("split.count"));
  LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> number, unsignedInteger("split.no"));
  if (!count || *count <= 1)
    return Status::ok();
  const auto fail = [&](const std::string &why) { return invalidFile(path + ": " + why); };
  if (number.value_or(0) != 0)
    return fail("is part " + std::to_string(*number + 1) + " of " + std::to_string(*count) +
                "; give the first part, which has the metadata");
  const std::string name = fileName(path);
  char suffix[64];
  const auto suffixOf = [&](uint64_t part) {
    std::snprintf(suffix, sizeof(suffix), "-%05u-of-%05u.gguf", unsigned(part), unsigned(*count));
    return std::string(suffix);
  };
  if (*count > 99999 || !name.ends_with(suffixOf(1)))
    return fail("is the first of " + std::to_string(*count) + " parts; its name must end in " +
                (*count > 99999 ? "-00001-of-NNNNN.gguf" : suffixOf(1)) +
                " so that the others can be found");
  const std::string stem = name.substr(0, name.size() - suffixOf(1).size());
  const std::string folder = std::filesystem::path(path).parent_path().string();
  for (uint64_t part = 2; part <= *count; ++part) {
    LLMRT_ASSIGN_OR_RETURN(MappedFile file, openConfined(folder.empty() ? "." : folder,
                                                         stem + suffixOf(part), fileName(path)));
    files_.push_back(std::move(file));
    GgufParser parser(files_.back(), static_cast<uint32_t>(files_.size() - 1));
    LLMRT_RETURN_IF_ERROR(parser.parse());
    LLMRT_RETURN_IF_ERROR(addTensors(std::move(parser.tensors)));
  }
  LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> total,
                         unsignedInteger("split.tensors.count"));
  if (total && *total != tensors_.size())
    return fail("its " + std::to_string(*count) + " parts have " + std::to_string(tensors_.size()) +
                " tensors; split.tensors.count says " + std::to_string(*total));
  return Status::ok();
}

const GgufTensor *GgufFile::findTensor(std::string_view name) const {
  const auto found = tensorIndex_.find(std::string(name));
  return found == tensorIndex_.end() ? nullptr : &tensors_[found->second];
}

Result<WeightSource> GgufFile::source(const GgufTensor &tensor) const {
  const GgufTensorType type = ggufTensorType(tensor.type);
  if (!type.encoding)
    return unsupported(files_[tensor.file].path() + ": tensor '" + tensor.name + "' is of type " +
                       type.name +
                       "; F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K and Q6_K are "
                       "supported");
  WeightSource source;
  source.name = tensor.name;
  source.encoding = *type.encoding;
  source.rows = 1;
  source.columns = tensor.shape.size() > 1 ? tensor.shape.back() : 1;
  for (size_t i = 0; i + (tensor.shape.size() > 1) < tensor.shape.size(); ++i)
    source.rows *= tensor.shape[i];
  LLMRT_ASSIGN_OR_RETURN(source.data, files_[tensor.file].extent(tensor.offset, tensor.size,
                                                                 "tensor '" + tensor.name + "'"));
  LLMRT_RETURN_IF_ERROR(source.check().withContext(files_[tensor.file].path()));
  return source;
}

std::vector<std::string_view> GgufFile::keys() const {
  std::vector<std::string_view> names;
  for (const auto &[key, value] : metadata_)
    names.push_back(key);
  std::sort(names.begin(), names.end());
  return names;
}

const GgufValue *GgufFile::find(std::string_view key) const {
  const auto found = metadata_.find(key);
  return found == metadata_.end() ? nullptr : &found->second;
}

Status GgufFile::wrongType(std::string_view key, const GgufValue &found, const char *wanted) const {
  return invalidFile(files_.front().path() + ": the metadata key '" + std::string(key) + "' is " +
                     ggufTypeName(found) + "; " + wanted + " is needed");
}

Result<std::optional<uint64_t>> GgufFile::unsignedInteger(std::string_view key) const {
  const GgufValue *value = find(key);
  if (!value)
    return std::optional<uint64_t>();
  const std::optional<uint64_t> number = unsignedAt(value->type, value->bytes.data(), 0);
  if (!number)
    return wrongType(key, *value, "an integer that isn't negative");
  return number;
}

Result<std::optional<double>> GgufFile::number(std::string_view key) const {
  const GgufValue *value = find(key);
  if (!value)
    return std::optional<double>();
  if (value->type == GgufType::Float32)
    return std::optional<double>(load<float>(value->bytes.data()));
  if (value->type == GgufType::Float64)
    return std::optional<double>(load<double>(value->bytes.data()));
  return wrongType(key, *value, "float32 or float64");
}

Result<std::optional<bool>> GgufFile::boolean(std::string_view key) const {
  const GgufValue *value = find(key);
  if (!value)
    return std::optional<bool>();
  if (value->type != GgufType::Bool || value->bytes[0] > 1)
    return wrongType(key, *value, "a bool of 0 or 1");
  return std::optional<bool>(value->bytes[0] == 1);
}

Result<std::optional<std::string>> GgufFile::string(std::string_view key) const {
  const GgufValue *value = find(key);
  if (!value)
    return std::optional<std::string>();
  if (value->type != GgufType::String)
    return wrongType(key, *value, "a string");
  return std::optional<std::string>(std::in_place, value->bytes.begin(), value->bytes.end());
}

Result<std::optional<std::vector<std::string>>> GgufFile::strings(std::string_view key) const {
  const GgufValue *value = find(key);
  if (!value)
    return std::optional<std::vector<std::string>>();
  if (value->type != GgufType::Array || value->elementType != GgufType::String)
    return wrongType(key, *value, "an array of string");
  std::vector<std::string> result;
  result.reserve(value->count); // at most an eighth of the array's bytes, see readArray
  const uint8_t *at = value->bytes.data();
  for (uint64_t i = 0; i != value->count; ++i) {
    const uint64_t length = load<uint64_t>(at);
    result.emplace_back(reinterpret_cast<const char *>(at + 8), length);
    at += 8 + length;
  }
  return std::optional(std::move(result));
}

Result<std::optional<std::vector<float>>> GgufFile::floats(std::string_view key) const {
  const GgufValue *value = find(key);
  if (!value)
    return std::optional<std::vector<float>>();
  if (value->type != GgufType::Array || value->elementType != GgufType::Float32)
    return wrongType(key, *value, "an array of float32");
  std::vector<float> result(value->count);
  std::ranges::copy(value->bytes, reinterpret_cast<uint8_t *>(result.data()));
  return std::optional(std::move(result));
}

Result<std::optional<std::vector<int32_t>>> GgufFile::integers(std::string_view key) const {
  const GgufValue *value = find(key);
  if (!value)
    return std::optional<std::vector<int32_t>>();
  if (value->type != GgufType::Array ||
      (value->elementType != GgufType::Int32 && value->elementType != GgufType::Uint32))
    return wrongType(key, *value, "an array of int32");
  std::vector<int32_t> result(value->count);
  std::ranges::copy(value->bytes, reinterpret_cast<uint8_t *>(result.data()));
  return std::optional(std::move(result));
}

Result<std::optional<std::string>> GgufFile::byteArray(std::string_view key) const {
  const GgufValue *value = find(key);
  if (!value)
    return std::optional<std::string>();
  if (value->type != GgufType::Array ||
      (value->elementType != GgufType::Int8 && value->elementType != GgufType::Uint8))
    return wrongType(key, *value, "an array of bytes");
  return std::optional(std::string(value->bytes.begin(), value->bytes.end()));
}

Result<std::optional<std::vector<uint64_t>>> GgufFile::perLayer(std::string_view key,
                                                                uint64_t layers) const {
  const GgufValue *value = find(key);
  if (!value)
    return std::optional<std::vector<uint64_t>>();
  if (value->type != GgufType::Array) {
    LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> one, unsignedInteger(key));
    return std::optional(std::vector<uint64_t>(layers, *one));
  }
  if (value->count != layers)
    return wrongType(key, *value, ("an array of " + std::to_string(layers) + " integers").c_str());
  std::vector<uint64_t> result;
  for (uint64_t i = 0; i != layers; ++i) {
    const std::optional<uint64_t> number = unsignedAt(value->elementType, value->bytes.data(), i);
    if (!number)
      return wrongType(key, *value, "an array of integers that aren't negative");
    result.push_back(*number);
  }
  return std::optional(std::move(result));
}

} // namespace llmc
