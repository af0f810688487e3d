//===- CommandFlags.h - what several subcommands take -----------------------===//
#ifndef LLMC_TOOLS_COMMON_COMMANDFLAGS_H
#define LLMC_TOOLS_COMMON_COMMANDFLAGS_H

#include "tools/common/Commands.h"

#include <iostream>
#include <memory>

namespace llmc::tools {

/// The positional argument PLAN; the result has its value once the command is called.
std::shared_ptr<std::string> addPlan(CLI::App &command, const char *what);
/// --speculative-config.
void addSpeculationFlag(CLI::App &command, std::string &config);

/// Resolves the path, then calls \p run with it; the exit status goes to \p status.
template <typename Run>
void whenCalled(CLI::App &command, std::shared_ptr<std::string> path, PlanResolver resolve,
                int &status, Run run) {
  command.callback([=, &status] {
    llmrt::Result<std::string> plan = resolve(*path);
    if (!plan) {
      std::cerr << "error: " << plan.status().message() << std::endl;
      status = 1;
      return;
    }
    status = run(*plan);
  });
}

} // namespace llmc::tools

#endif // LLMC_TOOLS_COMMON_COMMANDFLAGS_H
