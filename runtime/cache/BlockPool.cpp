#include "runtime/cache/BlockPool.h"

namespace llmrt {

std::optional<BlockPool::Allocation> BlockPool::allocate() {
  // Used ones first: their pages are in memory, a fresh block's are not.
  Allocation allocation{-1, true};
  if (!free_.empty()) {
    allocation.block = free_.back();
    free_.pop_back();
  } else if (firstFresh_ < capacity()) {
    allocation = {firstFresh_++, false};
  } else {
    return std::nullopt;
  }
  references_[static_cast<size_t>(allocation.block)] = 1;
  return allocation;
}

void BlockPool::release(int32_t block) {
  uint32_t &count = references_[static_cast<size_t>(block)];
  assert(count > 0 && "releasing a free block");
  if (--count == 0)
    free_.push_back(block); // never grows: reserved for all blocks
}

} // namespace llmrt
