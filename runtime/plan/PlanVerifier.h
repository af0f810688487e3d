//===- PlanVerifier.h - is this head one that can be trusted? ----------------===//
//
// The flatbuffers verifier proves that a head can be read; this proves that it means something:
// every index in range, every extent inside its segment, no overlap, no arithmetic that overflows,
// every string printable, every count within what the runtime is built for. It is the only reader
// of an unverified head, so the rest of the runtime checks nothing again.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_PLAN_PLANVERIFIER_H
#define LLMRT_PLAN_PLANVERIFIER_H

#include "runtime/plan/plan_generated.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <span>

namespace llmrt {

class Plan;

struct VerifyOptions {
  uint64_t fileSize = 0; ///< segments must end inside it; its end is the last one's padded end
};

class PlanVerifier {
public:
  /// Verifies the flatbuffer in \p head, 8-byte aligned, and returns its root. The message names
  /// the first thing that is wrong, as "commands[3] 'layers.0.attention': ...".
  static Result<const fbs::Plan *> verifyHead(std::span<const uint8_t> head,
                                              const VerifyOptions &options);

  /// Verifies that each module of \p plan is an ELF object that provides its target's kernels.
  /// The head must have been verified.
  static Status verifyCode(const Plan &plan);
};

} // namespace llmrt

#endif // LLMRT_PLAN_PLANVERIFIER_H
