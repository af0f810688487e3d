//===- CompileCommand.h - `llmc compile` ------------------------------------------------------===//
#ifndef LLMC_TOOLS_LLMC_COMPILECOMMAND_H
#define LLMC_TOOLS_LLMC_COMPILECOMMAND_H

#include "compiler/driver/CompileOptions.h"

#include <CLI/CLI.hpp>

namespace llmc::tools {

/// Flags that decide what is compiled, for `compile` and for the commands that compile a model on
/// their way.
void addCompileFlags(CLI::App &command, CompileOptions &options);

/// `llmc compile`; its exit status goes to \p status.
CLI::App *addCompileCommand(CLI::App &app, int &status);

} // namespace llmc::tools

#endif // LLMC_TOOLS_LLMC_COMPILECOMMAND_H
