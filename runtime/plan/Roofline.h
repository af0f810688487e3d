//===- Roofline.h - how fast a plan can run on a machine ---------------------===//
//
// The roofline model (Williams, Waterman, Patterson, CACM 2009), command by command: a command
// takes as long as the slower of moving its bytes and doing its operations at the machine's
// limits; commands run one after the other, so a step takes their sum. It is a bound, not an
// estimate of overheads: what a measured run loses against it is ours to win.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_PLAN_ROOFLINE_H
#define LLMRT_PLAN_ROOFLINE_H

#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace llmrt {

/// What a machine can do at most, all threads together.
struct MachineLimits {
  double bytesPerSecond = 0;           ///< reads from memory
  double intOperationsPerSecond = 0;   ///< int8 multiply and add, each one operation
  double floatOperationsPerSecond = 0; ///< f32, the same
  unsigned threads = 1;
  std::string source; ///< where the numbers come from: "defaults for x86-64-v3", "measured"
};

/// Documented defaults for a CPU level, for machines that nobody measured. A core at 3 GHz:
///   level       f32                               int8
///   x86-64-v3   2 FMA x 8 lanes: 96 GFLOPS        32 products in 3 instructions, 2 a cycle: 128
///   GOPS x86-64-v4   2 FMA x 16 lanes: 192 GFLOPS      64 products in a vpdpbusd, 2 a cycle: 768
///   GOPS
/// An unknown level counts as the first. Memory: 12 GB/s a core, at most 40 GB/s, as two channels
/// of DDR4-3200 give.
MachineLimits defaultLimits(std::string_view level, unsigned threads);

/// One step of one sequence.
struct StepShape {
  int64_t tokens = 1;  ///< new tokens
  int64_t rows = 1;    ///< of them with logits
  int64_t context = 0; ///< tokens before this step
};

struct Prediction {
  double seconds = 0;
  double bytes = 0; ///< read or written in memory
  double intOperations = 0;
  double floatOperations = 0;
  double tokensPerSecond = 0; ///< tokens of the shape / seconds; 0 for a plan without costs
};

/// The bound for one command of such a step; nothing where the plan gives no cost.
Prediction predictCommand(const fbs::Plan &plan, const fbs::Command &command,
                          const MachineLimits &limits, const StepShape &shape);

/// The bound for one step of \p plan, a verified head. Weights count as read once a step; attention
/// reads the KV of a tile's context once a query tile, and does 2 operations for each element
/// of K and V, query head and query.
Prediction predictStep(const fbs::Plan &plan, const MachineLimits &limits, const StepShape &shape);

} // namespace llmrt

#endif // LLMRT_PLAN_ROOFLINE_H
