//===- BlockQueue.h - blocks that wait to be reused, oldest first ------------===//
#ifndef LLMRT_CACHE_BLOCKQUEUE_H
#define LLMRT_CACHE_BLOCKQUEUE_H

#include <cstdint>
#include <vector>

namespace llmrt {

/// A list through an array of all blocks: blocks come in at the end and leave anywhere.
class BlockQueue {
public:
  BlockQueue() = default;
  explicit BlockQueue(int32_t blocks) : links_(static_cast<size_t>(blocks)) {}

  /// -1: none.
  int32_t oldest() const { return oldest_; }
  int64_t size() const { return size_; }

  void append(int32_t block) {
    links_[static_cast<size_t>(block)] = {newest_, -1};
    (newest_ >= 0 ? links_[static_cast<size_t>(newest_)].newer : oldest_) = block;
    newest_ = block;
    ++size_;
  }
  void remove(int32_t block) {
    auto [older, newer] = links_[static_cast<size_t>(block)];
    (older >= 0 ? links_[static_cast<size_t>(older)].newer : oldest_) = newer;
    (newer >= 0 ? links_[static_cast<size_t>(newer)].older : newest_) = older;
    --size_;
  }

private:
  struct Links {
    int32_t older = -1, newer = -1;
  };
  std::vector<Links> links_;
  int32_t oldest_ = -1, newest_ = -1;
  int64_t size_ = 0;
};

} // namespace llmrt

#endif // LLMRT_CACHE_BLOCKQUEUE_H
