//===- StepProfile.h - where the time of a step goes ------------------------===//
#ifndef LLMC_TOOLS_COMMON_STEPPROFILE_H
#define LLMC_TOOLS_COMMON_STEPPROFILE_H

#include "runtime/engine/CpuEngine.h"
#include "runtime/plan/Roofline.h"

#include <cstdint>
#include <string>
#include <vector>

namespace llmc::tools {

/// What the commands of one kernel do in a step, all together.
struct KernelProfile {
  std::string name;        ///< the symbol: "gemm_2"
  std::string kind;        ///< "gemm"
  std::string shape;       ///< "576 x 3072" (k x n), "576", "9 x 64" (heads x size), or ""
  std::string format;      ///< of its weight: "i4.g32.f16", or ""
  int64_t used = 0;        ///< commands
  llmrt::Prediction bound; ///< bytes, operations and time by the roofline
  double seconds = 0;      ///< measured

  double operations() const { return bound.intOperations + bound.floatOperations; }
};

struct StepProfile {
  std::string name;    ///< "decode" or "prefill"
  int64_t tokens = 1;  ///< new tokens
  int64_t context = 0; ///< tokens before them
  KernelProfile total;
  std::vector<KernelProfile> kernels; ///< the slowest first
};

/// Decodes tokens after \p context, at least 1, and gives each command's median time.
llmrt::Result<StepProfile> profileDecode(llmrt::Engine &engine, const llmrt::fbs::Plan &plan,
                                         const llmrt::MachineLimits &limits, int64_t context);
/// The steps of a prompt of \p tokens, from an empty cache.
llmrt::Result<StepProfile> profilePrefill(llmrt::Engine &engine, const llmrt::fbs::Plan &plan,
                                          const llmrt::MachineLimits &limits, int64_t tokens);

/// Tokens that profileDecode needs beyond its context.
inline constexpr int64_t decodeProfileTokens = 16;

} // namespace llmc::tools

#endif // LLMC_TOOLS_COMMON_STEPPROFILE_H
