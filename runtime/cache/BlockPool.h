//===- BlockPool.h - who owns which KV block --------------------------------===//
//
// Bookkeeping only: the memory belongs to the device. A block has a reference count, so that
// sequences can share the blocks of a common prefix. Blocks given out for the first time are zero
// already; used ones are handed back to the caller to clear.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_CACHE_BLOCKPOOL_H
#define LLMRT_CACHE_BLOCKPOOL_H

#include <cassert>
#include <cstdint>
#include <optional>
#include <vector>

namespace llmrt {

class BlockPool {
public:
  struct Allocation {
    int32_t block;
    bool used; ///< holds what another sequence left: clear it
  };

  BlockPool() = default;
  explicit BlockPool(int32_t blocks) : references_(static_cast<size_t>(blocks), 0) {
    free_.reserve(static_cast<size_t>(blocks));
  }

  /// A block with one reference; none when all are taken.
  std::optional<Allocation> allocate();
  /// One more owner of \p block.
  void retain(int32_t block) {
    assert(references_[static_cast<size_t>(block)] > 0 && "retaining a free block");
    ++references_[static_cast<size_t>(block)];
  }
  /// One owner less; the block is free when none is left.
  void release(int32_t block);

  uint32_t references(int32_t block) const { return references_[static_cast<size_t>(block)]; }
  int32_t capacity() const { return static_cast<int32_t>(references_.size()); }
  int32_t freeCount() const {
    return capacity() - firstFresh_ + static_cast<int32_t>(free_.size());
  }

private:
  std::vector<uint32_t> references_;
  std::vector<int32_t> free_; ///< used before, the last one released on top
  int32_t firstFresh_ = 0;    ///< blocks from here on were never given out
};

} // namespace llmrt

#endif // LLMRT_CACHE_BLOCKPOOL_H
