#include "runtime/engine/Scheduler.h"

#include <algorithm>

namespace llmrt {

namespace {

/// Adds guesses to the chunks of \p chunks, all of which decode: a token more for each in turn, so
/// that one long window doesn't leave the others none.
void addWindows(std::vector<Chunk> &chunks, StepBudget &left) {
  for (bool more = true; more;) {
    more = false;
    for (Chunk &chunk : chunks) {
      if (chunk.drafted >= chunk.sequence->window)
        continue;
      const int64_t tokens = chunk.sequence->tree.isAside(chunk.drafted) ? left.queryTile : 1;
      if (left.tokens < tokens || left.rows == 0)
        return;
      ++chunk.drafted, ++chunk.tokens, ++chunk.rows;
      left.tokens -= tokens, --left.rows;
      more = true;
    }
  }
}

} // namespace

void scheduleStep(std::span<const std::unique_ptr<Sequence>> running, const StepBudget &budget,
                  std::vector<Chunk> &chunks) {
  chunks.clear();
  StepBudget left = budget;
  for (bool decoding : {true, false}) {
    for (const std::unique_ptr<Sequence> &sequence : running) {
      if (left.sequences == 0 || left.tokens == 0 || left.rows == 0)
        return;
      if (sequence->finished || sequence->parked || sequence->isDecoding() != decoding)
        continue;
      Chunk chunk{sequence.get(), std::min(sequence->uncomputed(), left.tokens), 0, 0, false};
      if (sequence->givesPromptRows() && sequence->computed < sequence->promptTokens) {
        // Positions that were given before a preemption aren't given again.
        int64_t skipped = std::max<int64_t>(0, sequence->promptRowsGiven - sequence->computed);
        chunk.rows = std::clamp<int64_t>(chunk.tokens - skipped, 0, left.rows);
        chunk.tokens = std::min(chunk.tokens, skipped + chunk.rows);
      }
      chunk.samples = chunk.tokens == sequence->uncomputed();
      if (chunk.samples)
        chunk.rows = std::max<int64_t>(chunk.rows, 1);
      left.tokens -= chunk.tokens;
      left.rows -= chunk.rows;
      --left.sequences;
      chunks.push_back(chunk);
    }
    if (decoding)
      addWindows(chunks, left);
  }
}

} // namespace llmrt
