//===- StepBuilder.h - the arrays of a ragged step --------------------------===//
#ifndef LLMRT_ENGINE_STEPBUILDER_H
#define LLMRT_ENGINE_STEPBUILDER_H

#include "runtime/device/StepExecutor.h"
#include "runtime/engine/Scheduler.h"

#include <cstdint>
#include <memory>
#include <span>

namespace llmrt {

/// Writes chunks as an LlmrtStep. The arrays are made once for the largest step and only as far
/// as a step needs them are they ever touched.
class StepBuilder {
public:
  /// With \p windows groups of layers that have blocks of their own.
  StepBuilder(const StepBudget &largest, int64_t queryTile, int64_t blockTokens,
              int64_t maxBlocksPerSequence, size_t windows = 0);

  /// The step of \p chunks, whose sequences own the blocks for their new tokens. Valid until the
  /// next call.
  LlmrtStep &build(std::span<const Chunk> chunks);

  /// What the last step has for those groups.
  std::span<const KvTable> windowTables() const { return windowTables_; }

  int64_t maxTiles() const { return maxTiles_; }

private:
  template <typename T> using Array = std::unique_ptr<T[]>;
  /// The depth of the deepest guess that is aside of a chain; 0: none is.
  static int64_t treeWidth(std::span<const Chunk> chunks);
  /// Writes token \p t's row of ancestors: guess \p guess of \p tree, whose root is token \p
  /// newest.
  void fillAncestors(const DraftTree &tree, int64_t guess, int64_t t, int64_t newest);
  /// Writes a sequence's row of a block table.
  void fillTable(std::span<const int32_t> blocks, int32_t *row, int64_t width) const;
  int64_t slotOf(std::span<const int32_t> blocks, int64_t position) const {
    return int64_t(blocks[static_cast<size_t>(position / blockTokens_)]) * blockTokens_ +
           position % blockTokens_;
  }

  int64_t queryTile_, blockTokens_, maxTiles_;
  Array<int32_t> tokens_, positions_, queryStart_, contextLen_, blockTable_, logitRows_;
  Array<int32_t> tileSeq_, tileStart_, tileCount_, longContext_;
  Array<int32_t> ancestors_; ///< as wide as a step needs, at most [T, maxGuesses]
  Array<int64_t> slots_;
  struct WindowArrays {
    Array<int32_t> blockTable;
    Array<int64_t> slots;
  };
  std::vector<WindowArrays> windows_;
  std::vector<KvTable> windowTables_; ///< of windows_
  LlmrtStep step_{};
};

} // namespace llmrt

#endif // LLMRT_ENGINE_STEPBUILDER_H
