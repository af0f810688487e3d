//===- CompileReport.h - what a compilation tells beside the plan ---------------------------===//
#ifndef LLMC_COMPILER_DRIVER_COMPILEREPORT_H
#define LLMC_COMPILER_DRIVER_COMPILEREPORT_H

#include <cstdint>
#include <string>
#include <vector>

namespace llmc {

/// A file that the compilation read, with its contents' hash.
struct SourceHash {
  std::string path; ///< as it was opened
  uint64_t size = 0;
  std::string sha256; ///< hexadecimal
};

struct CompileReport {
  std::vector<SourceHash> files;    ///< all of the model but the small texts beside it
  std::vector<std::string> remarks; ///< missed fast paths, with the operation and the reason
};

} // namespace llmc

#endif // LLMC_COMPILER_DRIVER_COMPILEREPORT_H
