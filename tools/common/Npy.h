//===- Npy.h - writes a matrix of floats for NumPy --------------------------===//
#ifndef LLMC_TOOLS_COMMON_NPY_H
#define LLMC_TOOLS_COMMON_NPY_H

#include "runtime/support/Status.h"

#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

namespace llmc::tools {

/// Writes f32 [rows, columns] row by row in NumPy's format 1.0. The file has its name only when
/// commit() succeeded; otherwise nothing is left behind.
class NpyWriter {
public:
  NpyWriter() = default;
  ~NpyWriter();
  NpyWriter(const NpyWriter &) = delete;
  NpyWriter &operator=(const NpyWriter &) = delete;

  llmrt::Status open(const std::string &path, int64_t rows, int64_t columns);
  void append(std::span<const float> values);
  /// Fails if a write did, or if the values are not rows * columns.
  llmrt::Status commit();

private:
  std::string path_, temporary_;
  std::FILE *file_ = nullptr;
  int64_t missing_ = 0; ///< values still to come
  bool failed_ = false;
  int error_ = 0;
};

} // namespace llmc::tools

#endif // LLMC_TOOLS_COMMON_NPY_H
