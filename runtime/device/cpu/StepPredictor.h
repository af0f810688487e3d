//===- StepPredictor.h - the roofline of whole steps ------------------------===//
#ifndef LLMRT_DEVICE_CPU_STEPPREDICTOR_H
#define LLMRT_DEVICE_CPU_STEPPREDICTOR_H

#include "runtime/device/cpu/KernelAbi.h"
#include "runtime/plan/Plan.h"
#include "runtime/plan/Roofline.h"

#include <memory>

namespace llmrt {

/// Seconds that steps should take. Everything but the attention to older tokens follows from the
/// counts of tokens and rows, and is kept from step to step while these stay the same; that
/// attention is added for each query tile. Allocates nothing.
class StepPredictor {
public:
  /// \p plan has costs; otherwise every step is predicted to take 0 seconds.
  StepPredictor(std::shared_ptr<const Plan> plan, const MachineLimits &limits);

  double seconds(const LlmrtStep &step);

private:
  /// Of a tile of \p count tokens for each token before it.
  double perOlderToken(int64_t count) const;

  std::shared_ptr<const Plan> plan_;
  MachineLimits limits_;
  int64_t contextLimit_;
  int64_t tokens_ = 0, rows_ = 0, tile_ = 1; ///< what the next two are for
  double shared_ = 0, ofTile_ = 0;
  double ofToken_; ///< perOlderToken(1)
};

} // namespace llmrt

#endif // LLMRT_DEVICE_CPU_STEPPREDICTOR_H
