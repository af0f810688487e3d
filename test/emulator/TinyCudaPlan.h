//===- TinyCudaPlan.h - the tiny plan with CUDA code for the stand-in -------===//
#ifndef LLMC_TEST_EMULATOR_TINYCUDAPLAN_H
#define LLMC_TEST_EMULATOR_TINYCUDAPLAN_H

#include "runtime/plan/Plan.h"
#include "test/unit/engine/TinyPlan.h"

#include <functional>
#include <memory>

namespace llmrt::test {

/// tinyPlan() for CUDA (sm_80), with draws on the device; \p change may alter it before it is
/// written.
std::shared_ptr<const Plan> tinyCudaPlan(
    const std::function<void(fbs::PlanT &)> &change = [](fbs::PlanT &) {},
    const TinyPlanOptions &options = {});

} // namespace llmrt::test

#endif // LLMC_TEST_EMULATOR_TINYCUDAPLAN_H
