#include "runtime/engine/StepBuilder.h"

#include "runtime/plan/ArenaLayout.h"

#include <algorithm>
#include <cassert>

namespace llmrt {
namespace {

/// Not zeroed: a block table for the largest step would be megabytes that nobody reads.
template <typename T> std::unique_ptr<T[]> makeArray(int64_t n) {
  return std::make_unique_for_overwrite<T[]>(static_cast<size_t>(n));
}

} // namespace

StepBuilder::StepBuilder(const StepBudget &largest, int64_t queryTile, int64_t blockTokens,
                         int64_t maxBlocksPerSequence, size_t windows)
    : queryTile_(queryTile), blockTokens_(blockTokens),
      maxTiles_(maxQueryTiles(largest.tokens, largest.sequences, queryTile)),
      tokens_(makeArray<int32_t>(largest.tokens)), positions_(makeArray<int32_t>(largest.tokens)),
      queryStart_(makeArray<int32_t>(largest.sequences + 1)),
      contextLen_(makeArray<int32_t>(largest.sequences)),
      blockTable_(makeArray<int32_t>(largest.sequences * maxBlocksPerSequence)),
      logitRows_(makeArray<int32_t>(largest.rows)), tileSeq_(makeArray<int32_t>(maxTiles_)),
      tileStart_(makeArray<int32_t>(maxTiles_)), tileCount_(makeArray<int32_t>(maxTiles_)),
      longContext_(makeArray<int32_t>(largest.tokens)), slots_(makeArray<int64_t>(largest.tokens)) {
  step_.tokens = tokens_.get();
  step_.positions = positions_.get();
  step_.queryStart = queryStart_.get();
  step_.contextLen = contextLen_.get();
  step_.blockTable = blockTable_.get();
  step_.slots = slots_.get();
  step_.logitRows = logitRows_.get();
  step_.tileSeq = tileSeq_.get();
  step_.tileStart = tileStart_.get();
  step_.tileCount = tileCount_.get();
  step_.longContext = longContext_.get();
  for (size_t i = 0; i < windows; ++i) {
    windows_.push_back({makeArray<int32_t>(largest.sequences * maxBlocksPerSequence),
                        makeArray<int64_t>(largest.tokens)});
    windowTables_.push_back({windows_[i].blockTable.get(), windows_[i].slots.get()});
  }
}

void StepBuilder::fillTable(std::span<const int32_t> blocks, int32_t *row, int64_t width) const {
  // A block that slid out of the window is never read: any number will do.
  std::transform(blocks.begin(), blocks.end(), row,
                 [](int32_t block) { return std::max(block, 0); });
  std::fill(row + blocks.size(), row + width, 0);
}

LlmrtStep &StepBuilder::build(std::span<const Chunk> chunks) {
  // The table is as wide as the longest sequence of this step.
  int64_t width = 1;
  for (const Chunk &chunk : chunks)
    width = std::max(width, static_cast<int64_t>(chunk.sequence->blocks.size()));

  int64_t t = 0, r = 0, q = 0, s = 0;
  for (const Chunk &chunk : chunks) {
    const Sequence &sequence = *chunk.sequence;
    int64_t first = sequence.computed, end = first + chunk.tokens;
    assert(end <= static_cast<int64_t>(sequence.blocks.size()) * blockTokens_ &&
           "a token without a KV block");
    queryStart_[s] = static_cast<int32_t>(t);
    contextLen_[s] = static_cast<int32_t>(end);
    fillTable(sequence.blocks, &blockTable_[s * width], width);
    for (size_t i = 0; i < windows_.size(); ++i)
      fillTable(sequence.windows[i].blocks, &windows_[i].blockTable[s * width], width);
    for (int64_t done = 0; done < chunk.tokens; done += queryTile_) {
      tileSeq_[q] = static_cast<int32_t>(s);
      tileStart_[q] = static_cast<int32_t>(t + done);
      tileCount_[q] = static_cast<int32_t>(std::min(queryTile_, chunk.tokens - done));
      ++q;
    }
    for (int64_t position = first; position < end; ++position, ++t) {
      int64_t known = static_cast<int64_t>(sequence.tokens.size());
      tokens_[t] = position < known ? sequence.tokens[static_cast<size_t>(position)]
                                    : sequence.draft[static_cast<size_t>(position - known)];
      positions_[t] = static_cast<int32_t>(position);
      longContext_[t] = sequence.inLongContext ? 1 : 0;
      slots_[t] = slotOf(sequence.blocks, position);
      for (size_t i = 0; i < windows_.size(); ++i)
        windows_[i].slots[t] = slotOf(sequence.windows[i].blocks, position);
      if (position >= end - chunk.rows)
        logitRows_[r++] = static_cast<int32_t>(t);
    }
    ++s;
  }
  queryStart_[s] = static_cast<int32_t>(t);
  step_.T = t;
  step_.S = s;
  step_.R = r;
  step_.Q = q;
  step_.maxBlocks = width;
  return step_;
}

} // namespace llmrt
