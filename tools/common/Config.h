//===- Config.h - flags from a YAML file ------------------------------------===//
//
//   llmc serve m.plan --config serve.yaml
//
//   port: 8000                  # --port 8000
//   max_num_seqs: 16            # dashes or underscores
//   api-key: [first, second]    # a flag that may be given several times
//   log-json: true              # a flag without a value
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TOOLS_COMMON_CONFIG_H
#define LLMC_TOOLS_COMMON_CONFIG_H

#include "runtime/support/Status.h"

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace llmc::tools {

/// "LLMC_ARG_MAX_NUM_SEQS" for "max-num-seqs".
std::string environmentName(const std::string &flag);

/// Puts the flags of the file that --config (or LLMC_ARG_CONFIG) names into \p arguments, those of
/// the command line without the program's name; they lose against what is there and against the
/// environment. A key that is no flag of the command is an error, which names similar ones.
llmrt::Status addConfiguredFlags(CLI::App &app, std::vector<std::string> &arguments);

} // namespace llmc::tools

#endif // LLMC_TOOLS_COMMON_CONFIG_H
