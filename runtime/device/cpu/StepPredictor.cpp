#include "runtime/device/cpu/StepPredictor.h"

#include <algorithm>

namespace llmrt {

StepPredictor::StepPredictor(std::shared_ptr<const Plan> plan, const MachineLimits &limits)
    : plan_(std::move(plan)), limits_(limits),
      contextLimit_(std::max<int64_t>(1, plan_->head().model()->max_context() - 1)),
      ofToken_(perOlderToken(1)) {
  ofTile_ = ofToken_;
}

double StepPredictor::perOlderToken(int64_t count) const {
  const fbs::Plan &head = plan_->head();
  double longest = predictStep(head, limits_, {count, 0, contextLimit_}).seconds;
  return (longest - predictStep(head, limits_, {count, 0, 0}).seconds) /
         static_cast<double>(contextLimit_);
}

double StepPredictor::seconds(const LlmrtStep &step) {
  if (step.T != tokens_ || step.R != rows_) {
    tokens_ = step.T, rows_ = step.R;
    shared_ = predictStep(plan_->head(), limits_, {tokens_, rows_, 0}).seconds;
  }
  double sum = shared_;
  for (int64_t q = 0; q < step.Q; ++q) {
    int64_t count = step.tileCount[q];
    if (count > 1 && count != tile_)
      tile_ = count, ofTile_ = perOlderToken(count);
    // Tokens of this step before the tile are in the shared part already.
    int64_t older = step.positions[step.queryStart[step.tileSeq[q]]];
    sum += (count > 1 ? ofTile_ : ofToken_) * static_cast<double>(older);
  }
  return sum;
}

} // namespace llmrt
