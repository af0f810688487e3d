//===- GgufFile.h - metadata and tensors of a GGUF file ------------------------===//
//
// Reads GGUF versions 2 and 3 (little-endian), in one file or split in several. Metadata and
// tensors stay where they are in the mapped file; every count, length and offset is checked against
// the bytes that are there before it is used. Format: docs/gguf.md of the ggml project.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_IMPORT_GGUF_GGUFFILE_H
#define LLMC_IMPORT_GGUF_GGUFFILE_H

#include "compiler/import/common/MappedFile.h"
#include "compiler/import/common/WeightSource.h"

#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace llmc {

/// The types of metadata values; the numbers are those in the file.
enum class GgufType : uint32_t {
  Uint8 = 0,
  Int8 = 1,
  Uint16 = 2,
  Int16 = 3,
  Uint32 = 4,
  Int32 = 5,
  Float32 = 6,
  Bool = 7,
  String = 8,
  Array = 9,
  Uint64 = 10,
  Int64 = 11,
  Float64 = 12
};

/// One metadata value, still in the file's bytes.
struct GgufValue {
  GgufType type = GgufType::Uint8;
  GgufType elementType = GgufType::Uint8; ///< of an array
  uint64_t count = 1;                     ///< elements of an array
  std::span<const uint8_t> bytes; ///< the value; of an array its elements, of a string its text
};

struct GgufTensor {
  std::string name;
  std::vector<uint64_t> shape; ///< outermost dimension first: a matrix is [rows, columns]
  uint32_t type = 0;           ///< the number in the file
  uint32_t file = 0;           ///< index into files()
  uint64_t offset = 0;         ///< from the start of that file
  uint64_t size = 0;           ///< bytes
};

class GgufFile {
public:
  /// Opens the file at \p path and, when it is the first of a split model, the others beside it.
  static llmrt::Result<GgufFile> open(const std::string &path);

  const std::vector<MappedFile> &files() const { return files_; }
  const std::vector<GgufTensor> &tensors() const { return tensors_; }
  /// The tensor called \p name, or null.
  const GgufTensor *findTensor(std::string_view name) const;
  /// Rows, columns, encoding and bytes of \p tensor: all dimensions but the last make the rows; a
  /// vector [N] is N rows of one column. Unsupported for an encoding that isn't read here.
  llmrt::Result<WeightSource> source(const GgufTensor &tensor) const;

  /// All metadata keys, in order of their names.
  std::vector<std::string_view> keys() const;
  /// The metadata value under \p key, or null.
  const GgufValue *find(std::string_view key) const;
  // The value under a key; nothing when there is no such key, an error when it has another type.
  llmrt::Result<std::optional<uint64_t>> unsignedInteger(std::string_view key) const;
  llmrt::Result<std::optional<double>> number(std::string_view key) const;
  llmrt::Result<std::optional<bool>> boolean(std::string_view key) const;
  llmrt::Result<std::optional<std::string>> string(std::string_view key) const;
  llmrt::Result<std::optional<std::vector<std::string>>> strings(std::string_view key) const;
  llmrt::Result<std::optional<std::vector<float>>> floats(std::string_view key) const;
  llmrt::Result<std::optional<std::vector<int32_t>>> integers(std::string_view key) const;
  /// An array of int8 or uint8.
  llmrt::Result<std::optional<std::string>> byteArray(std::string_view key) const;
  /// A number a layer: an array of \p layers elements, or one number for all.
  llmrt::Result<std::optional<std::vector<uint64_t>>> perLayer(std::string_view key,
                                                               uint64_t layers) const;

  /// "blk.0.w of type Q2_K"-like names for messages.
  static std::string tensorTypeName(uint32_t type);

private:
  friend class GgufParser;
  GgufFile() = default;
  llmrt::Status openRest(const std::string &path);
  llmrt::Status addTensors(std::vector<GgufTensor> tensors);
  llmrt::Status wrongType(std::string_view key, const GgufValue &found, const char *wanted) const;

  std::vector<MappedFile> files_;
  std::unordered_map<std::string_view, GgufValue> metadata_;
  std::vector<GgufTensor> tensors_;
  std::unordered_map<std::string, size_t> tensorIndex_;
};

/// "uint32", "array of string", ...
std::string ggufTypeName(const GgufValue &value);

} // namespace llmc

#endif // LLMC_IMPORT_GGUF_GGUFFILE_H
