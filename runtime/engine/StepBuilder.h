//===- StepBuilder.h - the arrays of a ragged step --------------------------===//
#ifndef LLMRT_ENGINE_STEPBUILDER_H
#define LLMRT_ENGINE_STEPBUILDER_H

#include "runtime/device/cpu/KernelAbi.h"
#include "runtime/engine/Scheduler.h"

#include <cstdint>
#include <memory>
#include <span>

namespace llmrt {

/// Writes chunks as an LlmrtStep. The arrays are made once for the largest step and only as far
/// as a step needs them are they ever touched.
class StepBuilder {
public:
  StepBuilder(const StepBudget &largest, int64_t queryTile, int64_t blockTokens,
              int64_t maxBlocksPerSequence);

  /// The step of \p chunks, whose sequences own the blocks for their new tokens. Valid until the
  /// next call.
  LlmrtStep &build(std::span<const Chunk> chunks);

  int64_t maxTiles() const { return maxTiles_; }

private:
  template <typename T> using Array = std::unique_ptr<T[]>;
  int64_t queryTile_, blockTokens_, maxTiles_;
  Array<int32_t> tokens_, positions_, queryStart_, contextLen_, blockTable_, logitRows_;
  Array<int32_t> tileSeq_, tileStart_, tileCount_, longContext_;
  Array<int64_t> slots_;
  LlmrtStep step_{};
};

} // namespace llmrt

#endif // LLMRT_ENGINE_STEPBUILDER_H
