//===- PlanSummary.h - the numbers that inspect prints ------------------------===//
//
// Gathered once from a verified head, so that the text and the JSON form can't disagree.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TOOLS_COMMON_PLANSUMMARY_H
#define LLMC_TOOLS_COMMON_PLANSUMMARY_H

#include "runtime/plan/KvGroups.h"
#include "runtime/plan/Plan.h"

#include <cstdint>
#include <string>
#include <vector>

namespace llmc::tools {

struct WeightType {
  std::string name;    ///< "i4.g32.f16"
  uint64_t count = 0;  ///< tensors
  uint64_t values = 0; ///< rows * columns of all of them, without padding
  uint64_t bytes = 0;
  double bitsPerValue() const { return values ? 8.0 * double(bytes) / double(values) : 0; }
};

struct KernelRow {
  std::string name, kind, target; ///< target: "cpu" or "sm_80"; the name is that of its entry there
  const llmrt::fbs::Kernel *kernel = nullptr;   ///< null: it draws tokens, after the commands
  uint64_t uses = 0;                            ///< launches of a step at most
  const llmrt::fbs::CudaKernel *cuda = nullptr; ///< how it is launched; null on a CPU
};

struct PlanSummary {
  std::vector<WeightType> weights; ///< most bytes first
  WeightType allWeights;
  std::vector<KernelRow> kernels; ///< the CPU's, CUDA's entries (not those of PTX), its draws
  llmrt::fbs::Affine arena;       ///< sum of the slots before each is rounded up to 64 bytes
  uint64_t arenaAtLimits = 0;     ///< bytes to allocate for any step
  uint64_t logitsAtLimits = 0;
  uint64_t scratchAThread = 0;   ///< on a CPU, as the next
  uint64_t partialsAtLimits = 0; ///< of attention that threads share; none for one thread
  std::string kvTypes;           ///< "f16", or "f16, f32" where layers differ
  std::vector<llmrt::KvGroup> kvGroups;
  double kvAtMaxContext = 0; ///< bytes that one sequence keeps: of windows what they span
};

PlanSummary summarize(const llmrt::fbs::Plan &plan, unsigned threads);

/// "constant + 4608 T + ...", without the terms that are 0.
std::string formatAffine(const llmrt::fbs::Affine &a);
/// "d=576, eps=1e-05": what a kernel was specialised for.
std::string formatConstants(const llmrt::fbs::Kernel &kernel);

} // namespace llmc::tools

#endif // LLMC_TOOLS_COMMON_PLANSUMMARY_H
