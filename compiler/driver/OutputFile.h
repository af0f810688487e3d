//===- OutputFile.h - text files that are whole or not there -----------------------------===//
#ifndef LLMC_COMPILER_DRIVER_OUTPUTFILE_H
#define LLMC_COMPILER_DRIVER_OUTPUTFILE_H

#include "runtime/support/Status.h"

#include <string>

namespace llmc {

/// Writes \p text to a temporary file beside \p path and renames it.
llmrt::Status writeOutputFile(const std::string &path, const std::string &text);

/// Makes \p path and the folders above it, where they are missing.
llmrt::Status makeFolder(const std::string &path);

} // namespace llmc

#endif // LLMC_COMPILER_DRIVER_OUTPUTFILE_H
