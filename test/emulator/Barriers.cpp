// __syncthreads, its reductions, and named barriers.
#include "test/emulator/Block.h"

namespace simt {
namespace {

void complete(Block &b, int id) {
  Barrier &barrier = b.barriers[id];
  if (b.checker.on) {
    if (barrier.expected == b.threadCount) {
      b.checker.barrierOfAll();
    } else {
      std::vector<unsigned> participants = std::move(barrier.arrivedThreads);
      b.checker.join(participants);
    }
  }
  barrier.doneCount = barrier.count;
  barrier.doneAny = barrier.any;
  barrier.doneAll = barrier.all;
  barrier.count = barrier.any = 0;
  barrier.all = 1;
  barrier.arrived = 0;
  barrier.arrivedThreads.clear();
  for (Thread &t : b.threads)
    if (t.state == State::AtBarrier && t.barrier == id)
      wake(t);
}

/// One arrival; returns whether the barrier completed by it.
bool arrive(int id, unsigned expected, Where where) {
  Thread &t = *currentThread();
  Block &b = *currentBlock;
  if (id < 0 || id > 15)
    fail("bad barrier", describe(t) + ": barrier " + std::to_string(id) + " at " +
                            Site(where).text() + "; a block has barriers 0 to 15");
  if (expected == 0 || (expected % 32 != 0 && expected != b.threadCount))
    fail("bad barrier", describe(t) + ": a barrier of " + std::to_string(expected) +
                            " threads at " + Site(where).text() + "; it counts whole warps");
  Barrier &barrier = b.barriers[id];
  const bool whole = expected == b.threadCount;
  if (!barrier.arrived) {
    barrier.at = where;
    barrier.expected = expected;
  } else if (barrier.expected != expected || (whole && !sameWhere(barrier.at, where))) {
    fail("barrier divergence", describe(t) + " arrives at the barrier " + Site(where).text() +
                                   " while others wait at " + Site(barrier.at).text());
  }
  if (whole && b.alive != b.threadCount)
    fail("barrier divergence", describe(t) + " waits at " + Site(where).text() + ", but " +
                                   std::to_string(b.threadCount - b.alive) +
                                   " threads of the block have exited");
  barrier.arrivedThreads.push_back(t.linear);
  if (++barrier.arrived < expected)
    return false;
  complete(b, id);
  return true;
}

void synchronise(int id, unsigned expected, Where where) {
  Thread &t = *currentThread();
  if (arrive(id, expected, where))
    return;
  t.barrier = id;
  block(t, State::AtBarrier, where);
  yieldThread();
}

} // namespace
} // namespace simt

using namespace simt;

void simt_syncthreads(Where where) { synchronise(0, currentBlock->threadCount, where); }

int simt_syncthreads_reduce(int predicate, int operation, Where where) {
  Barrier &b = currentBlock->barriers[0];
  b.count += predicate != 0;
  b.any |= predicate != 0;
  b.all &= predicate != 0;
  synchronise(0, currentBlock->threadCount, where);
  return operation == 0 ? b.doneCount : operation == 1 ? b.doneAll : b.doneAny;
}

void simt_barrier_sync(int id, int threads, Where where) {
  synchronise(id, unsigned(threads), where);
}

void simt_barrier_arrive(int id, int threads, Where where) { arrive(id, unsigned(threads), where); }
