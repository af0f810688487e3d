// __syncthreads, its reductions, and named barriers.
#include "test/emulator/Block.h"

namespace simt {
namespace {

void complete(Block &b, int id) {
  Barrier &barrier = b.barriers[id];
  if (b.checker.on) {
    if (barrier.waiting.size() == b.threadCount)
      b.checker.barrierOfAll();
    else
      b.checker.join(barrier.waiting, std::move(barrier.arrivals));
  }
  barrier.doneCount = barrier.count;
  barrier.doneAny = barrier.any;
  barrier.doneAll = barrier.all;
  barrier.count = barrier.any = 0;
  barrier.all = 1;
  barrier.arrived = 0;
  barrier.waiting.clear();
  barrier.arrivals = {};
  for (Thread &t : b.threads)
    if (t.state == State::AtBarrier && t.barrier == id)
      wake(t);
}

/// One arrival; returns whether the barrier completed by it. What a thread does after it arrived
/// without \p waits is ordered neither before nor after those that wait.
bool arrive(int id, unsigned expected, bool waits, Where where) {
  Thread &t = *currentThread();
  Block &b = *currentBlock;
  if (id < 0 || id > 15)
    fail("bad barrier", describe(t) + ": barrier " + std::to_string(id) + " at " +
                            Site(where).text() + "; a block has barriers 0 to 15");
  if (expected == 0 || (expected % 32 != 0 && expected != b.threadCount))
    fail("bad barrier", describe(t) + ": a barrier of " + std::to_string(expected) +
                            " threads at " + Site(where).text() + "; it counts whole warps");
  Barrier &barrier = b.barriers[id];
  // __syncthreads is one place for all; those who meet at a named barrier come from anywhere.
  const bool whole = id == 0;
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
  if (waits)
    barrier.waiting.push_back(t.linear);
  else if (b.checker.on)
    b.checker.tell(t.linear, barrier.arrivals);
  if (++barrier.arrived < expected)
    return false;
  complete(b, id);
  return true;
}

void synchronise(int id, unsigned expected, Where where) {
  Thread &t = *currentThread();
  ++t.meetings;
  if (arrive(id, expected, true, where))
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

void simt_barrier_arrive(int id, int threads, Where where) {
  arrive(id, unsigned(threads), false, where);
}
