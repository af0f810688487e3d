//===- Inspect.h - `llmc inspect` and `llmrt inspect` -------------------------===//
#ifndef LLMC_TOOLS_COMMON_INSPECT_H
#define LLMC_TOOLS_COMMON_INSPECT_H

#include "runtime/plan/Plan.h"
#include "runtime/plan/Roofline.h"

#include <cstdint>
#include <ostream>
#include <string>

namespace llmc::tools {

struct InspectOptions {
  bool json = false;
  bool measure = false;  ///< --measure: this machine's limits instead of the defaults
  unsigned threads = 0;  ///< 0: what affinity and the cgroup allow
  int64_t context = 512; ///< tokens in the cache when a token is decoded
  int64_t prompt = 512;  ///< tokens of the prefill, in steps of at most the plan's limit
  double bandwidth = 0;  ///< bytes a second; 0: default or measured. The same for the next two.
  double intOperations = 0;
  double floatOperations = 0;
};

/// Prints what \p path holds and how fast it can be: as aligned tables, or as one JSON object with
/// `model`, `weights`, `kv_bytes_per_token`, `arena`, `kernels`, `predicted` and more. Nothing of
/// the plan is run. Returns the exit status: 1, with one line on \p err, for a bad plan.
int inspectMain(const std::string &path, const InspectOptions &options, std::ostream &out,
                std::ostream &err);

/// The machine that the options describe, for a plan's CPU levels.
llmrt::MachineLimits machineLimits(const llmrt::Plan &plan, const InspectOptions &options);

/// The bound for decoding one token, and for a whole prompt, of one sequence.
llmrt::Prediction predictDecode(const llmrt::fbs::Plan &plan, const llmrt::MachineLimits &limits,
                                int64_t context);
llmrt::Prediction predictPrefill(const llmrt::fbs::Plan &plan, const llmrt::MachineLimits &limits,
                                 int64_t prompt);

} // namespace llmc::tools

#endif // LLMC_TOOLS_COMMON_INSPECT_H
