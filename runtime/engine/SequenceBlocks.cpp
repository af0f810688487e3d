#include "runtime/engine/SequenceBlocks.h"

#include <algorithm>
#include <cassert>

namespace llmrt {

static bool growWindows(PrefixCache &cache, StepExecutor &executor, Sequence &sequence) {
  for (uint32_t w = 0; w < sequence.windows.size(); ++w) {
    WindowBlocks &own = sequence.windows[w];
    while (own.blocks.size() < sequence.blocks.size()) {
      std::optional<BlockPool::Allocation> block = cache.windows()[w].allocate();
      assert(block && "a window's pool suffices for all that run");
      if (!block)
        return false;
      if (block->used)
        executor.clearKvBlock(block->block, w + 1);
      own.blocks.push_back(block->block);
    }
  }
  return true;
}

bool growBlocks(PrefixCache &cache, StepExecutor &executor, Sequence &sequence, int64_t blocks) {
  bool fits = true;
  while (fits && static_cast<int64_t>(sequence.blocks.size()) < blocks) {
    std::optional<BlockPool::Allocation> block = cache.allocate();
    if (block && block->used)
      executor.clearKvBlock(block->block);
    if (block)
      sequence.blocks.push_back(block->block);
    fits = block.has_value();
  }
  return growWindows(cache, executor, sequence) && fits;
}

/// Gives back those of \p blocks up to \p end that are still there.
template <typename Pool>
static void slide(Pool &pool, std::vector<int32_t> &blocks, int64_t &first, int64_t end) {
  for (; first < end; ++first) {
    int32_t &block = blocks[static_cast<size_t>(first)];
    if (block != Sequence::slidOut)
      pool.release(block);
    block = Sequence::slidOut;
  }
}

void slideBlocks(PrefixCache &cache, int64_t window, int64_t blockTokens, Sequence &sequence,
                 int64_t position) {
  for (size_t w = 0; w < sequence.windows.size(); ++w) {
    WindowBlocks &own = sequence.windows[w];
    slide(cache.windows()[w], own.blocks, own.firstBlock, cache.windows()[w].firstNeeded(position));
  }
  if (window > 0)
    slide(cache, sequence.blocks, sequence.firstBlock,
          std::max<int64_t>(0, position - window + 1) / blockTokens);
}

/// From the last to the first: the cache then forgets the ends of texts before their beginnings.
template <typename Pool> static void drop(Pool &pool, std::vector<int32_t> &blocks) {
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block)
    if (*block != Sequence::slidOut)
      pool.release(*block);
  blocks.clear();
}

void dropBlocks(PrefixCache &cache, Sequence &sequence) {
  drop(cache, sequence.blocks);
  for (size_t w = 0; w < sequence.windows.size(); ++w) {
    drop(cache.windows()[w], sequence.windows[w].blocks);
    sequence.windows[w].firstBlock = 0;
  }
  sequence.computed = sequence.firstBlock = sequence.keptBlocks = 0;
  sequence.keptNode = 0;
}

} // namespace llmrt
