//===- ArenaLayout.h - where a step's buffers lie ----------------------------===//
//
// The arena is one allocation. A plan gives each slot a size that is affine in the step's T, S, R
// and Q; slots follow each other, each rounded up to 64 bytes; buffers that are never alive at
// the same time share a slot.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_PLAN_ARENALAYOUT_H
#define LLMRT_PLAN_ARENALAYOUT_H

#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace llmrt {

/// The sizes of one step: new tokens, sequences, rows that need logits, query tiles.
struct StepDims {
  int64_t T = 0, S = 0, R = 0, Q = 0;
};

/// The most query tiles that \p tokens tokens of \p sequences sequences can need: a tile holds up
/// to
/// \p queryTile tokens of one sequence. Each sequence has at least one token.
int64_t maxQueryTiles(int64_t tokens, int64_t sequences, int64_t queryTile);

/// The largest step that the plan's limits allow. No step has more sequences or rows than tokens.
StepDims stepLimits(const fbs::Limits &limits);

/// The value of \p a; valid for dims within the limits of a verified plan.
inline int64_t evaluate(const fbs::Affine &a, const StepDims &d) {
  return a.constant() + a.per_token() * d.T + a.per_sequence() * d.S + a.per_row() * d.R +
         a.per_tile() * d.Q;
}
/// The same for numbers that nobody checked yet: nothing if a coefficient is negative or a sum
/// overflows int64.
std::optional<uint64_t> evaluateChecked(const fbs::Affine &a, const StepDims &d);

class ArenaLayout {
public:
  /// The layout for one step of a verified plan, \p dims within its limits.
  static ArenaLayout compute(const fbs::Plan &head, const StepDims &dims);
  static ArenaLayout compute(const fbs::Plan &head, int64_t T, int64_t S, int64_t R, int64_t Q) {
    return compute(head, StepDims{T, S, R, Q});
  }
  /// Recomputes in place: allocates nothing once a layout of the same plan was computed.
  void update(const fbs::Plan &head, const StepDims &dims);

  const std::vector<uint64_t> &offsets() const { return offsets_; } ///< bytes, one a slot
  uint64_t total() const { return total_; }                         ///< bytes of the arena

private:
  std::vector<uint64_t> offsets_;
  uint64_t total_ = 0;
};

} // namespace llmrt

#endif // LLMRT_PLAN_ARENALAYOUT_H
