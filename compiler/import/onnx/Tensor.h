//===- Tensor.h - where the elements of an ONNX tensor are --------------------===//
//
// A tensor's elements are a range of bytes of a file: of the model itself (raw_data, packed
// float_data or double_data) or of an external data file beside it. Only what a writer spread over
// varints (int32_data, int64_data, uint64_data) has to be collected in memory.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_IMPORT_ONNX_TENSOR_H
#define LLMC_IMPORT_ONNX_TENSOR_H

#include "compiler/import/common/MappedFile.h"
#include "compiler/import/onnx/Model.h"
#include "llvm/ADT/StringMap.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace llmc::onnx {

/// The elements of a tensor, row-major and little-endian; 4-bit ones two to a byte, the first in
/// the low nibble, an odd count ending in half a byte.
struct TensorData {
  llvm::ArrayRef<uint8_t> bytes;
  /// The file that the bytes are mapped from (index of TensorReader::files) and their place in
  /// it; none when they had to be collected.
  std::optional<unsigned> file;
  uint64_t offset = 0;

  TensorData() = default;
  TensorData(TensorData &&) = default;
  TensorData &operator=(TensorData &&) = default;

private:
  friend class TensorReader;
  std::unique_ptr<uint8_t[]> owned;
};

/// Finds the elements of tensors, keeping external data files mapped while it lives.
class TensorReader {
public:
  /// \p model is the mapped file at \p path; external data is looked for in its folder only.
  TensorReader(llvm::StringRef path, llvm::ArrayRef<uint8_t> model);

  /// Errors name the tensor and what is wrong: a size that is not that of its shape, external
  /// data that is missing, too short or outside the model's folder, strings.
  llvm::Expected<TensorData> read(const TensorView &tensor);

  /// The files that tensors were found in, relative to the model's folder; the first is the model.
  llvm::ArrayRef<std::string> files() const { return names; }

private:
  llvm::Expected<TensorData> readExternal(const TensorView &tensor, uint64_t size);
  llvm::Expected<TensorData> readTyped(const TensorView &tensor, int64_t count, uint64_t size);
  llvm::Expected<unsigned> open(llvm::StringRef location);

  llvm::ArrayRef<uint8_t> model;
  std::string folder;
  std::vector<std::string> names;
  std::vector<MappedFile> external;    ///< external[i] is mapped from names[i + 1]
  llvm::StringMap<unsigned> locations; ///< index of names by the location that tensors give
};

} // namespace llmc::onnx

#endif // LLMC_IMPORT_ONNX_TENSOR_H
