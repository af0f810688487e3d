#include "runtime/text/MergeQueue.h"

#include <algorithm>
#include <functional>

namespace llmrt {

void MergeQueue::reset(uint32_t rankCount) {
  // An encode that ran to its end leaves nothing behind but capacity.
  for (uint32_t rank : ranks) {
    lists[listOfRank[rank]].clear();
    freeLists.push_back(listOfRank[rank]);
    listOfRank[rank] = kNone;
  }
  ranks.clear();
  urgent.clear();
  active.clear();
  cursor = 0;
  activeRank = kNone;
  listOfRank.resize(rankCount, kNone);
}

void MergeQueue::push(uint32_t rank, uint32_t position) {
  if (activeRank != kNone && rank <= activeRank) {
    urgent.push_back(static_cast<uint64_t>(rank) << 32 | position);
    std::push_heap(urgent.begin(), urgent.end(), std::greater<>());
    return;
  }
  uint32_t &list = listOfRank[rank];
  if (list == kNone) {
    if (freeLists.empty()) {
      freeLists.push_back(static_cast<uint32_t>(lists.size()));
      lists.emplace_back();
    }
    list = freeLists.back();
    freeLists.pop_back();
    ranks.push_back(rank);
    std::push_heap(ranks.begin(), ranks.end(), std::greater<>());
  }
  lists[list].push_back(position);
}

void MergeQueue::activateNext() {
  active.clear();
  cursor = 0;
  activeRank = kNone;
  if (ranks.empty())
    return;
  std::pop_heap(ranks.begin(), ranks.end(), std::greater<>());
  activeRank = ranks.back();
  ranks.pop_back();
  uint32_t &list = listOfRank[activeRank];
  active.swap(lists[list]);
  freeLists.push_back(list);
  list = kNone;
  if (!std::is_sorted(active.begin(), active.end()))
    std::sort(active.begin(), active.end());
}

std::optional<MergeQueue::Entry> MergeQueue::pop() {
  if (cursor == active.size() && urgent.empty())
    activateNext();
  if (!urgent.empty()) {
    uint64_t first = urgent.front();
    if (cursor == active.size() ||
        first < (static_cast<uint64_t>(activeRank) << 32 | active[cursor])) {
      std::pop_heap(urgent.begin(), urgent.end(), std::greater<>());
      urgent.pop_back();
      return Entry{static_cast<uint32_t>(first >> 32), static_cast<uint32_t>(first)};
    }
  }
  if (cursor == active.size())
    return std::nullopt;
  return Entry{activeRank, active[cursor++]};
}

} // namespace llmrt
