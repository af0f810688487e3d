//===- SafetensorsFile.h - the tensors of one .safetensors file ----------------===//
//
// A file is an 8-byte length, that many bytes of JSON that name the tensors, and their data. The
// checks are those of the reference reader (huggingface/safetensors), and duplicate names are
// refused as well.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_IMPORT_HUGGINGFACE_SAFETENSORSFILE_H
#define LLMC_IMPORT_HUGGINGFACE_SAFETENSORSFILE_H

#include "compiler/import/common/MappedFile.h"
#include "compiler/import/common/WeightSource.h"

#include <vector>

namespace llmc {

struct SafetensorsTensor {
  std::string name;
  std::string dtype; ///< "BF16" and so on
  std::vector<uint64_t> shape;
  uint64_t offset = 0; ///< from the start of the file
  uint64_t size = 0;   ///< bytes
};

/// Reads the head of \p file. Fails on anything that isn't exactly a safetensors file, naming Git
/// LFS pointers and empty files for what they are.
llmrt::Result<std::vector<SafetensorsTensor>> readSafetensors(const MappedFile &file);

/// Rows, columns, encoding and bytes of \p tensor: all dimensions but the last make the rows; a
/// vector [N] is N rows of one column, a scalar one. Unsupported for a dtype that isn't F32, F16,
/// BF16 or F64.
llmrt::Result<WeightSource> safetensorsSource(const MappedFile &file,
                                              const SafetensorsTensor &tensor);

} // namespace llmc

#endif // LLMC_IMPORT_HUGGINGFACE_SAFETENSORSFILE_H
