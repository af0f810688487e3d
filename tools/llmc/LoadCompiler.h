//===- LoadCompiler.h - the compiler, when it is needed -------------------------------------===//
#ifndef LLMC_TOOLS_LLMC_LOADCOMPILER_H
#define LLMC_TOOLS_LLMC_LOADCOMPILER_H

#include "compiler/driver/CompilerLibrary.h"

namespace llmc::tools {

/// Loads libllmc_compiler.so from beside this program (../lib) and compiles.
llmrt::Status compile(const CompileOptions &options, CompileReport &report);

/// A plan is itself; a model is compiled into the cache, once for each set of options.
llmrt::Result<std::string> planOf(const std::string &modelOrPlan, CompileOptions options);

} // namespace llmc::tools

#endif // LLMC_TOOLS_LLMC_LOADCOMPILER_H
