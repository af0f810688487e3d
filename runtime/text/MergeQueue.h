//===- MergeQueue.h - the order of merges in a long piece ------------------------===//
//
// A priority queue of (rank, position) for the way that BPE uses one: nearly all that is
// added while a rank is worked on has a higher rank. So there is a list of positions for
// each rank, sorted when its turn comes, and a small heap for the exceptions. A megabyte of
// one character then costs a few sequential passes instead of millions of walks through a
// heap of megabytes.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_TEXT_MERGEQUEUE_H
#define LLMRT_TEXT_MERGEQUEUE_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace llmrt {

class MergeQueue {
public:
  struct Entry {
    uint32_t rank, position;
  };

  /// Empties the queue for ranks below \p rankCount.
  void reset(uint32_t rankCount);
  void push(uint32_t rank, uint32_t position);
  /// Removes the entry with the lowest rank, among these the one with the lowest position.
  std::optional<Entry> pop();

private:
  static constexpr uint32_t kNone = UINT32_MAX;
  void activateNext();

  std::vector<uint32_t> listOfRank;         ///< index into `lists`, or kNone
  std::vector<std::vector<uint32_t>> lists; ///< positions
  std::vector<uint32_t> freeLists;
  std::vector<uint32_t> ranks;  ///< min-heap of the ranks that have a list
  std::vector<uint64_t> urgent; ///< min-heap of rank << 32 | position
  uint32_t activeRank = kNone;  ///< its list is `active`
  std::vector<uint32_t> active;
  size_t cursor = 0;
};

} // namespace llmrt

#endif // LLMRT_TEXT_MERGEQUEUE_H
