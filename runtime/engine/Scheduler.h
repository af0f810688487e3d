//===- Scheduler.h - what the next step works on ----------------------------===//
#ifndef LLMRT_ENGINE_SCHEDULER_H
#define LLMRT_ENGINE_SCHEDULER_H

#include "runtime/engine/Sequence.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace llmrt {

/// Limits of one step.
struct StepBudget {
  int64_t tokens = 0, sequences = 0, rows = 0;
  /// Tokens a query tile. A guess aside of a chain has a tile of its own, and counts as a full one.
  int64_t queryTile = 1;
};

/// A run of one sequence's next tokens. Rows are its last `rows` tokens: none inside a prompt, one
/// at its end, all where the prompt's logits are wanted, one a token of a speculative window.
struct Chunk {
  Sequence *sequence = nullptr;
  int64_t tokens = 0;
  int64_t rows = 0;
  /// Of the tokens, the last ones that are guesses (Sequence::draft, window).
  int64_t drafted = 0;
  /// It has the sequence's newest token: its row decides the next one.
  bool samples = false;
};

/// Chooses the chunks of a step: first one token of every sequence that is generating, so that
/// nobody's text stalls behind a long prompt; then their speculative windows, one token more for
/// each in turn; then prompts, and what preempted sequences have to compute again, in order of
/// rank, cut to the tokens that are left. \p running is in order of rank; \p chunks is reused, not
/// grown beyond budget.sequences.
void scheduleStep(std::span<const std::unique_ptr<Sequence>> running, const StepBudget &budget,
                  std::vector<Chunk> &chunks);

} // namespace llmrt

#endif // LLMRT_ENGINE_SCHEDULER_H
