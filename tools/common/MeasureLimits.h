//===- MeasureLimits.h - this machine's limits, in about 50 ms ---------------===//
#ifndef LLMC_TOOLS_COMMON_MEASURELIMITS_H
#define LLMC_TOOLS_COMMON_MEASURELIMITS_H

#include "runtime/plan/Roofline.h"

namespace llmc::tools {

/// Measures memory reads, int8 and f32 arithmetic with \p threads threads at once: each for about
/// 15 ms after a warm-up, the best of a few short runs, with the widest instructions of this CPU
/// that the kernels use. Off x86-64: the defaults.
llmrt::MachineLimits measureLimits(unsigned threads);

} // namespace llmc::tools

#endif // LLMC_TOOLS_COMMON_MEASURELIMITS_H
