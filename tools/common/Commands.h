//===- Commands.h - the subcommands that llmc and llmrt share ---------------===//
//
// run, bench, eval, explain, inspect and verify: their flags, help texts and exit statuses, so that
// `llmc run m.plan` is `llmrt run m.plan`. A tool adds them to its CLI11 application and ends
// with runTool.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TOOLS_COMMON_COMMANDS_H
#define LLMC_TOOLS_COMMON_COMMANDS_H

#include "runtime/support/Status.h"

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace llmc::tools {

/// Turns what the user named into the path of a plan. llmrt takes plans only; llmc compiles a
/// model into its cache.
using PlanResolver = std::function<llmrt::Result<std::string>(const std::string &modelOrPlan)>;

/// The path itself.
PlanResolver plansOnly();

/// --threads.
void addMachineFlags(CLI::App &command, unsigned &threads);
/// --device.
void addDeviceFlag(CLI::App &command, std::string &device);
/// --max-num-batched-tokens, --block-size.
void addStepFlags(CLI::App &command, int64_t &batchedTokens, int64_t &blockSize);

/// Each adds one subcommand, which stores its exit status in \p status when it was called.
CLI::App *addRunCommand(CLI::App &app, PlanResolver resolve, int &status);
CLI::App *addBenchCommand(CLI::App &app, PlanResolver resolve, int &status);
CLI::App *addEvalCommand(CLI::App &app, PlanResolver resolve, int &status);
CLI::App *addExplainCommand(CLI::App &app, PlanResolver resolve, int &status);
CLI::App *addInspectCommand(CLI::App &app, PlanResolver resolve, int &status);
CLI::App *addVerifyCommand(CLI::App &app, int &status);

/// Lets LLMC_ARG_<FLAG> set every long flag of \p command that isn't on the command line:
/// LLMC_ARG_MAX_NUM_BATCHED_TOKENS for --max-num-batched-tokens. Adds --config (Config.h).
void readFlagsFromEnvironment(CLI::App &command);

/// Parses and runs. Returns the process's exit status: \p status of the subcommand, 0 for help, 2
/// for wrong usage, with a message on stderr. No exception leaves.
int runTool(CLI::App &app, int argc, char **argv, int &status);

} // namespace llmc::tools

#endif // LLMC_TOOLS_COMMON_COMMANDS_H
