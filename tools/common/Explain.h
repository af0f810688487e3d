//===- Explain.h - `llmc explain` and `llmrt explain` -----------------------===//
#ifndef LLMC_TOOLS_COMMON_EXPLAIN_H
#define LLMC_TOOLS_COMMON_EXPLAIN_H

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace llmc::tools {

struct ExplainOptions {
  int64_t context = -1; ///< tokens in the cache before the decode step; -1: 512, or what fits
  int64_t tokens = 0;   ///< also a prompt of so many tokens; 0: decode only
  unsigned threads = 0;
  bool measure = false; ///< the roofline of this machine, measured, instead of defaults
  bool json = false;
  std::vector<std::string> gpus; ///< of CudaGpus.inc: explain the CUDA kernels, which run nowhere
};

/// Runs steps of the plan at \p path with a clock around every command and prints, kernel by
/// kernel, what it moves and computes, how long the roofline says that takes, and how long it
/// took: each command's median over several steps. Returns the exit status.
int explainMain(const std::string &path, const ExplainOptions &options, std::ostream &out,
                std::ostream &err);

/// What the CUDA kernels of the plan do in the same steps on ExplainOptions::gpus, without a GPU:
/// the bytes and operations that each launch asks for against the least possible, its time by the
/// roofline, and how many blocks a multiprocessor holds. Returns the exit status.
int explainCudaMain(const std::string &path, const ExplainOptions &options, std::ostream &out,
                    std::ostream &err);

} // namespace llmc::tools

#endif // LLMC_TOOLS_COMMON_EXPLAIN_H
