//===- Completion.h - shell completion made from the tool's own flags -------===//
#ifndef LLMC_TOOLS_COMMON_COMPLETION_H
#define LLMC_TOOLS_COMMON_COMPLETION_H

#include <CLI/CLI.hpp>
#include <string>

namespace llmc::tools {

/// A script for \p shell ("bash", "zsh", "fish") that completes the subcommands of \p app, their
/// flags and the values of flags that take one of a few words; files elsewhere.
std::string completionScript(const CLI::App &app, const std::string &shell);

/// Adds `completion SHELL`, which prints the script. After all other subcommands.
CLI::App *addCompletionCommand(CLI::App &app, int &status);

} // namespace llmc::tools

#endif // LLMC_TOOLS_COMMON_COMPLETION_H
