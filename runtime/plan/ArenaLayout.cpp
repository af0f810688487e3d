#include "runtime/plan/ArenaLayout.h"

#include "runtime/plan/CheckedMath.h"
#include "runtime/plan/PlanFormat.h"

#include <algorithm>
#include <limits>

namespace llmrt {

int64_t maxQueryTiles(int64_t tokens, int64_t sequences, int64_t queryTile) {
  // Sum of ceil(n_s / q) is largest when all but one sequence hold one token more than full tiles:
  // floor((T + S (q - 1)) / q), and never above one tile a token.
  return std::min(tokens, (tokens + sequences * (queryTile - 1)) / queryTile);
}

StepDims stepLimits(const fbs::Limits &limits) {
  StepDims d;
  d.T = limits.max_tokens();
  d.S = std::min<int64_t>(limits.max_sequences(), d.T);
  d.R = std::min<int64_t>(limits.max_rows(), d.T);
  d.Q = maxQueryTiles(d.T, d.S, limits.query_tile());
  return d;
}

std::optional<uint64_t> evaluateChecked(const fbs::Affine &a, const StepDims &d) {
  const int64_t terms[] = {a.constant(), a.per_token(), a.per_sequence(), a.per_row(),
                           a.per_tile()};
  const int64_t counts[] = {1, d.T, d.S, d.R, d.Q};
  Checked sum(0);
  for (int i = 0; i < 5; ++i) {
    if (terms[i] < 0 || counts[i] < 0)
      return std::nullopt;
    sum =
        sum + Checked(static_cast<uint64_t>(terms[i])) * Checked(static_cast<uint64_t>(counts[i]));
  }
  std::optional<uint64_t> value = sum.get();
  if (value && *value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    return std::nullopt;
  return value;
}

ArenaLayout ArenaLayout::compute(const fbs::Plan &head, const StepDims &dims) {
  ArenaLayout layout;
  layout.update(head, dims);
  return layout;
}

void ArenaLayout::update(const fbs::Plan &head, const StepDims &dims) {
  const auto &slots = *head.arena_slots();
  offsets_.resize(slots.size());
  total_ = 0;
  for (uint32_t i = 0; i < slots.size(); ++i) {
    offsets_[i] = total_;
    total_ += alignUp(static_cast<uint64_t>(evaluate(*slots.Get(i)->size(), dims)), kPlanAlignment);
  }
}

} // namespace llmrt
