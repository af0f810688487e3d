#include "runtime/engine/Scheduler.h"

#include <algorithm>

namespace llmrt {

void scheduleStep(std::span<const std::unique_ptr<Sequence>> running, const StepBudget &budget,
                  std::vector<Chunk> &chunks) {
  chunks.clear();
  StepBudget left = budget;
  for (bool prompts : {false, true})
    for (const std::unique_ptr<Sequence> &sequence : running) {
      if (left.sequences == 0 || left.tokens == 0 || left.rows == 0)
        return;
      if (sequence->finished || sequence->inPrompt() != prompts)
        continue;
      Chunk chunk{sequence.get(), std::min(sequence->uncomputed(), left.tokens), 0, false};
      if (sequence->options.promptLogits && prompts)
        chunk.tokens = chunk.rows = std::min(chunk.tokens, left.rows);
      chunk.samples = chunk.tokens == sequence->uncomputed();
      if (chunk.samples)
        chunk.rows = std::max<int64_t>(chunk.rows, 1);
      left.tokens -= chunk.tokens;
      left.rows -= chunk.rows;
      --left.sequences;
      chunks.push_back(chunk);
    }
}

} // namespace llmrt
