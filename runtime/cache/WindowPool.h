//===- WindowPool.h - KV blocks of layers with a narrower window -------------===//
//
// Where layers differ in how far they look back, those of the widest window have the prefix tree's
// own blocks, and each narrower group has a pool of its own, from which a sequence takes a block
// beside each of its main blocks and gives it back as soon as it lies behind the window. For later
// requests the tree keeps such a block beside the main block of the same tokens; under pressure it
// goes before the main block does.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_CACHE_WINDOWPOOL_H
#define LLMRT_CACHE_WINDOWPOOL_H

#include "runtime/cache/BlockPool.h"
#include "runtime/cache/BlockQueue.h"
#include "runtime/plan/KvGroups.h"

#include <algorithm>
#include <span>

namespace llmrt {

/// A sequence's blocks of one group: as many as it has main blocks, the first ones slid out.
struct WindowBlocks {
  static constexpr int32_t slidOut = -1;
  std::vector<int32_t> blocks;
  int64_t firstBlock = 0;   ///< blocks before it slid out
  int64_t firstSwapped = 0; ///< firstBlock when it was moved to host memory
};

class WindowPool {
public:
  /// \p blocks blocks of \p blockTokens tokens beside \p mainBlocks; layers see \p window tokens,
  /// the current one counted.
  WindowPool(int32_t blocks, int32_t mainBlocks, int64_t blockTokens, int64_t window)
      : pool_(blocks), unused_(blocks), keeper_(static_cast<size_t>(blocks), none),
        kept_(static_cast<size_t>(mainBlocks), none), blockTokens_(blockTokens), window_(window) {}

  /// One for each of \p groups but the first, of \p blocks blocks; none where those are none.
  static std::vector<WindowPool> make(std::span<const KvGroup> groups,
                                      std::span<const int64_t> blocks, int64_t mainBlocks,
                                      int64_t blockTokens) {
    std::vector<WindowPool> pools;
    for (size_t i = 0; i < blocks.size(); ++i)
      pools.emplace_back(static_cast<int32_t>(blocks[i]), static_cast<int32_t>(mainBlocks),
                         blockTokens, groups[i + 1].window);
    return pools;
  }

  /// The first block that the token at position \p tokens sees.
  int64_t firstNeeded(int64_t tokens) const {
    return std::max<int64_t>(0, tokens - window_ + 1) / blockTokens_;
  }

  /// A free block, or the least recently used of those that only the tree holds; none when
  /// sequences hold all.
  std::optional<BlockPool::Allocation> allocate() {
    if (pool_.freeCount() == 0 && unused_.oldest() >= 0)
      forget(keeper_[static_cast<size_t>(unused_.oldest())]);
    return pool_.allocate();
  }
  void retain(int32_t block) {
    if (isKept(block) && pool_.references(block) == 1)
      unused_.remove(block);
    pool_.retain(block);
  }
  void release(int32_t block) {
    pool_.release(block);
    if (isKept(block) && pool_.references(block) == 1)
      unused_.append(block);
  }
  /// Others than the tree that hold \p block.
  uint32_t users(int32_t block) const { return pool_.references(block) - (isKept(block) ? 1 : 0); }

  /// The block that is kept beside \p mainBlock; -1: none.
  int32_t beside(int32_t mainBlock) const { return kept_[static_cast<size_t>(mainBlock)]; }
  /// Keeps \p block, a full one, beside \p mainBlock, one of the tree. If there is one already, its
  /// reference is exchanged for one of that. Returns what the caller uses from now on.
  int32_t keep(int32_t mainBlock, int32_t block) {
    int32_t &kept = kept_[static_cast<size_t>(mainBlock)];
    if (kept == block)
      return block;
    if (kept != none) {
      retain(kept);
      release(block);
      return kept;
    }
    kept = block;
    keeper_[static_cast<size_t>(block)] = mainBlock;
    pool_.retain(block);
    return block;
  }
  /// \p mainBlock leaves the tree, or what is beside it makes way.
  void forget(int32_t mainBlock) {
    int32_t &kept = kept_[static_cast<size_t>(mainBlock)];
    if (kept == none)
      return;
    if (pool_.references(kept) == 1)
      unused_.remove(kept);
    keeper_[static_cast<size_t>(kept)] = none;
    pool_.release(kept);
    kept = none;
  }

  int64_t capacity() const { return pool_.capacity(); }
  /// Blocks that allocate() could give.
  int64_t available() const { return pool_.freeCount() + unused_.size(); }

private:
  static constexpr int32_t none = -1;
  bool isKept(int32_t block) const { return keeper_[static_cast<size_t>(block)] != none; }

  BlockPool pool_;
  BlockQueue unused_;           ///< only the tree holds them
  std::vector<int32_t> keeper_; ///< [blocks] the main block beside which it is kept
  std::vector<int32_t> kept_;   ///< [main blocks] what is kept beside it
  int64_t blockTokens_, window_;
};

} // namespace llmrt

#endif // LLMRT_CACHE_WINDOWPOOL_H
