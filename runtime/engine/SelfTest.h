//===- SelfTest.h - a plan proves itself on the machine at hand --------------===//
//
// A plan records what the compiler's machine computed for a fixed prompt. Since results have the
// same bits on every CPU level, any machine must get them again: bad memory, a damaged plan or code
// that this CPU runs otherwise shows before a user's text does.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_ENGINE_SELFTEST_H
#define LLMRT_ENGINE_SELFTEST_H

#include "runtime/plan/Plan.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <memory>
#include <span>

namespace llmrt {

/// Runs \p prompt through \p plan and fills \p tokens with what follows, greedily, end tokens
/// included; \p fingerprint is the XXH64 (seed 0) of the prompt's logits, f32 [prompt, vocabulary].
/// Unsupported: this machine can't run the plan.
Status runSelfTest(std::shared_ptr<const Plan> plan, std::span<const int32_t> prompt,
                   std::span<int32_t> tokens, uint64_t &fingerprint);

/// Runs the plan's own test. A failure says what differs; Unsupported: the plan has no test, or
/// this machine can't run it.
Status checkSelfTest(std::shared_ptr<const Plan> plan);

} // namespace llmrt

#endif // LLMRT_ENGINE_SELFTEST_H
