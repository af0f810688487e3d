//===- CompilerLibrary.h - the compiler as a library that is loaded when needed -----------===//
//
// Running a plan must not pay for loading MLIR and LLVM. `llmc` therefore links this header's one
// entry at run time, from libllmc_compiler.so beside it, and only to compile.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_COMPILER_DRIVER_COMPILERLIBRARY_H
#define LLMC_COMPILER_DRIVER_COMPILERLIBRARY_H

#include "compiler/driver/CompileOptions.h"
#include "compiler/driver/CompileReport.h"
#include "runtime/support/Status.h"

#include <string>

namespace llmc {

/// The entry's name and type. Both sides are of one build: the types are C++.
inline constexpr char kCompileEntry[] = "llmcCompileModel";
using CompileEntry = void (*)(const CompileOptions &options, CompileReport &report,
                              llmrt::Status &status);

} // namespace llmc

#endif // LLMC_COMPILER_DRIVER_COMPILERLIBRARY_H
