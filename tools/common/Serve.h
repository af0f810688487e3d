//===- Serve.h - `llmc serve` and `llmrt serve` -----------------------------===//
#ifndef LLMC_TOOLS_COMMON_SERVE_H
#define LLMC_TOOLS_COMMON_SERVE_H

#include "runtime/server/Options.h"
#include "tools/common/Commands.h"

namespace llmc::tools {

struct ServeOptions {
  llmrt::server::ServerOptions server;
  std::string device;
  unsigned threads = 0;
  int64_t maxSequences = 32;
  int64_t maxBatchedTokens = 0;
  int64_t blockSize = 0;
  int64_t kvTokens = 0;
  bool prefixCaching = true;
  int64_t swapTokens = 0;
  std::string preemption = "auto";
  std::string speculativeConfig;
  std::string apiKeyFile;
  std::string metricsCompat;
};

/// Adds `serve`; the plan is resolved, and a model compiled, while the server already listens.
CLI::App *addServeCommand(CLI::App &app, PlanResolver resolve, int &status);

} // namespace llmc::tools

#endif // LLMC_TOOLS_COMMON_SERVE_H
