// Fences and atomics between the threads of a launch, as release and acquire patterns of PTX.
#include "test/emulator/Visibility.h"

#include "test/emulator/Block.h"
#include "test/emulator/Checker.h"

#include <algorithm>

namespace simt {

void RunKnowledge::add(const RunKnowledge &other) {
  if (other.epoch < epoch || other.clocks.empty())
    return;
  if (other.epoch > epoch || clocks.empty()) {
    *this = other;
    return;
  }
  for (size_t i = 0; i < clocks.size(); ++i)
    clocks[i] = std::max(clocks[i], other.clocks[i]);
}

OtherRuns merged(const OtherRuns &a, const OtherRuns &b) {
  if (!b || a == b)
    return a;
  if (!a)
    return b;
  auto both = std::make_shared<std::map<uint64_t, RunKnowledge>>(*a);
  for (const auto &[run, knowledge] : *b)
    (*both)[run].add(knowledge);
  return both;
}

namespace {

/// What atomics have published at an address in one launch; in shared memory, in one run.
struct Published {
  uint64_t scope = 0;
  OtherRuns knowledge;
};
std::map<const void *, Published> &published() {
  static std::map<const void *, Published> all;
  return all;
}

} // namespace

bool isShared(const Block &b, const void *address) {
  const auto p = reinterpret_cast<uintptr_t>(address),
             shared = reinterpret_cast<uintptr_t>(b.shared);
  return (p >= shared && p < shared + b.sharedBytes) || (p >= b.staticLow && p < b.staticHigh);
}

void BlockChecker::tell(unsigned thread, Knowledge &knowledge) {
  const size_t n = clocks.size();
  std::vector<uint32_t> &sum = knowledge.own.clocks;
  if (knowledge.own.epoch != epoch) { // a barrier of all has ordered what was in it
    knowledge.own.epoch = epoch;
    sum.assign(n, 0);
  }
  if (knownEpoch[thread] == epoch)
    for (size_t i = 0; i < n; ++i)
      sum[i] = std::max(sum[i], known[thread * n + i]);
  sum[thread] = std::max(sum[thread], clocks[thread]++);
  knowledge.others = merged(knowledge.others, visibility[thread].seen);
}

void BlockChecker::learn(unsigned thread, const Knowledge &knowledge) {
  const size_t n = clocks.size();
  if (knowledge.own.epoch == epoch && !knowledge.own.clocks.empty()) {
    uint32_t *row = &known[thread * n];
    if (knownEpoch[thread] != epoch)
      std::fill_n(row, n, 0);
    for (size_t i = 0; i < n; ++i)
      row[i] = std::max(row[i], knowledge.own.clocks[i]);
    knownEpoch[thread] = epoch;
  }
  visibility[thread].seen = merged(visibility[thread].seen, knowledge.others);
}

void BlockChecker::barrierOfAll() {
  ++epoch;
  OtherRuns all;
  for (const ThreadVisibility &v : visibility)
    all = merged(all, v.seen);
  if (all)
    for (ThreadVisibility &v : visibility)
      v.seen = all;
}

void BlockChecker::join(const std::vector<unsigned> &threads, Knowledge more) {
  for (unsigned t : threads)
    tell(t, more);
  for (unsigned t : threads)
    learn(t, more);
}

void BlockChecker::fence(unsigned thread) {
  ThreadVisibility &v = visibility[thread];
  if (v.pending) {
    Knowledge news;
    news.others = v.pending;
    if (auto own = v.pending->find(run); own != v.pending->end())
      news.own = own->second; // by way of an atomic from a thread of this block
    learn(thread, news);
    v.pending = nullptr;
  }
  Knowledge mine;
  tell(thread, mine);
  auto all = std::make_shared<std::map<uint64_t, RunKnowledge>>();
  if (v.seen)
    *all = *v.seen;
  (*all)[run].add(mine.own);
  v.fenced = all;
}

void noteAtomic(const void *address) {
  const Block &b = *currentBlock;
  BlockChecker &c = currentBlock->checker;
  if (!c.on)
    return;
  Published &there = published()[address];
  const uint64_t scope = isShared(b, address) ? c.run : c.firstRunOfLaunch;
  if (there.scope != scope)
    there = {scope, nullptr};
  ThreadVisibility &v = c.visibility[currentThread()->linear];
  v.pending = merged(v.pending, there.knowledge);
  there.knowledge = merged(there.knowledge, v.fenced);
}

} // namespace simt
