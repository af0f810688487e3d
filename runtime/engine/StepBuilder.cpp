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
      longContext_(makeArray<int32_t>(largest.tokens)),
      ancestors_(makeArray<int32_t>(largest.tokens * maxGuesses)),
      slots_(makeArray<int64_t>(largest.tokens)) {
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

int64_t StepBuilder::treeWidth(std::span<const Chunk> chunks) {
  int64_t width = 0;
  for (const Chunk &chunk : chunks)
    for (int64_t i = 0; i < chunk.drafted; ++i)
      if (chunk.sequence->tree.isAside(i))
        width = std::max(width, chunk.sequence->tree.depth(i));
  return width;
}

void StepBuilder::fillAncestors(const DraftTree &tree, int64_t guess, int64_t t, int64_t newest) {
  // The newest token of the text is one of them, so that a guess right behind it has one, too.
  int32_t *row = &ancestors_[t * step_.ancestorWidth];
  const int64_t depth = tree.depth(guess);
  std::fill(row + depth, row + step_.ancestorWidth, -1);
  for (int64_t i = depth - 1; i > 0; --i) {
    guess = tree.parent(guess);
    row[i] = static_cast<int32_t>(newest + 1 + guess);
  }
  row[0] = static_cast<int32_t>(newest);
}

LlmrtStep &StepBuilder::build(std::span<const Chunk> chunks) {
  // The table is as wide as the longest sequence of this step.
  int64_t width = 1;
  for (const Chunk &chunk : chunks)
    width = std::max(width, static_cast<int64_t>(chunk.sequence->blocks.size()));
  step_.ancestorWidth = treeWidth(chunks);
  step_.ancestors = step_.ancestorWidth > 0 ? ancestors_.get() : nullptr;

  int64_t t = 0, r = 0, q = 0, s = 0;
  for (const Chunk &chunk : chunks) {
    const Sequence &sequence = *chunk.sequence;
    const int64_t first = sequence.computed, end = first + chunk.tokens;
    const int64_t known = static_cast<int64_t>(sequence.tokens.size());
    assert(end <= static_cast<int64_t>(sequence.blocks.size()) * blockTokens_ &&
           "a token without a KV block");
    queryStart_[s] = static_cast<int32_t>(t);
    contextLen_[s] = static_cast<int32_t>(end);
    fillTable(sequence.blocks, &blockTable_[s * width], width);
    for (size_t i = 0; i < windows_.size(); ++i)
      fillTable(sequence.windows[i].blocks, &windows_[i].blockTable[s * width], width);
    bool tileIsOpen = false;
    for (int64_t place = first; place < end; ++place, ++t) {
      // A guess takes the next slot, whatever its position.
      const int64_t guess = place - known;
      const bool isAside = guess >= 0 && sequence.tree.isAside(guess);
      tokens_[t] = guess < 0 ? sequence.tokens[static_cast<size_t>(place)]
                             : sequence.draft[static_cast<size_t>(guess)];
      positions_[t] =
          static_cast<int32_t>(isAside ? known - 1 + sequence.tree.depth(guess) : place);
      longContext_[t] = sequence.inLongContext ? 1 : 0;
      slots_[t] = slotOf(sequence.blocks, place);
      for (size_t i = 0; i < windows_.size(); ++i)
        windows_[i].slots[t] = slotOf(sequence.windows[i].blocks, place);
      if (isAside)
        fillAncestors(sequence.tree, guess, t, t - guess - 1);
      else if (step_.ancestors)
        std::fill_n(&ancestors_[t * step_.ancestorWidth], step_.ancestorWidth, -1);
      if (!tileIsOpen || isAside || tileCount_[q - 1] == queryTile_) {
        tileSeq_[q] = static_cast<int32_t>(s);
        tileStart_[q] = static_cast<int32_t>(t);
        tileCount_[q++] = 0;
      }
      ++tileCount_[q - 1];
      tileIsOpen = !isAside;
      if (place >= end - chunk.rows)
        logitRows_[r++] = static_cast<int32_t>(t);
    }
    ++s;
  }
  assert(q <= maxTiles_ && "guesses aside of a chain beyond the scheduler's count");
  queryStart_[s] = static_cast<int32_t>(t);
  step_.T = t;
  step_.S = s;
  step_.R = r;
  step_.Q = q;
  step_.maxBlocks = width;
  return step_;
}

} // namespace llmrt
