// mbarrier: phases of arrivals and bytes. Who waits learns what the arrivals of the phase knew and
// what copies it counted.
#include "test/emulator/Mbarriers.h"

namespace simt {

Mbarrier &mbarrierAt(void *address, Where where) {
  Block &b = *currentBlock;
  auto it = b.mbarriers.find(address);
  if (it == b.mbarriers.end())
    fail("bad mbarrier", describe(*currentThread()) +
                             ": no mbarrier was made at that address; at " + Site(where).text());
  return it->second;
}

void completePhase(void *address, Mbarrier &m) {
  Block &b = *currentBlock;
  if (m.pending != 0 || m.bytes != 0)
    return;
  m.pending = m.expected;
  m.done = std::move(m.arrivals);
  m.arrivals = {};
  const int completed = m.parity;
  m.parity ^= 1;
  for (Thread &t : b.threads)
    if (t.state == State::AtMbarrier && t.mbarrier == address && t.parity == completed)
      wake(t);
}

} // namespace simt

using namespace simt;

void simt_mbarrier_init(void *address, int arrivals, Where where) {
  Thread &t = *currentThread();
  Block &b = *currentBlock;
  if (!isShared(b, address) || arrivals < 1)
    fail("bad mbarrier", describe(t) + ": " + std::to_string(arrivals) +
                             " arrivals, or not in shared memory; at " + Site(where).text());
  checkAccess(address, 8, Mode::Write, where, 8, false);
  Mbarrier m;
  m.expected = m.pending = arrivals;
  m.initialiser = t.linear;
  m.slot = b.threadCount + unsigned(b.mbarriers.size());
  if (b.mbarriers.size() >= maxMbarriers || !b.mbarriers.emplace(address, m).second)
    fail("bad mbarrier", describe(t) + ": made twice, or more than " +
                             std::to_string(maxMbarriers) + " of them; at " + Site(where).text());
}

void simt_mbarrier_init_fence(Where) {
  for (auto &[address, m] : currentBlock->mbarriers)
    m.isFenced |= m.initialiser == currentThread()->linear;
}

void simt_mbarrier_arrive(void *address, int bytes, Where where) {
  Thread &t = *currentThread();
  Block &b = *currentBlock;
  Mbarrier &m = mbarrierAt(address, where);
  checkAccess(address, 8, Mode::Atomic, where, 8, false);
  if (m.pending == 0)
    fail("bad mbarrier", describe(t) + ": more than " + std::to_string(m.expected) +
                             " arrivals in a phase at " + Site(where).text());
  m.bytes += bytes;
  if (b.checker.on)
    b.checker.tell(t.linear, m.arrivals);
  --m.pending;
  completePhase(address, m);
}

void simt_mbarrier_wait(void *address, int parity, Where where) {
  Thread &t = *currentThread();
  Block &b = *currentBlock;
  Mbarrier &m = mbarrierAt(address, where);
  checkAccess(address, 8, Mode::Atomic, where, 8, false);
  if (m.parity == parity) {
    t.mbarrier = address;
    t.parity = parity;
    block(t, State::AtMbarrier, where);
    yieldThread();
    // The phase after may be over before this thread has its turn: then it would wait on a device.
    if (m.parity == parity)
      fail("bad mbarrier", describe(t) +
                               ": the phase that it waited for was over, and so is the "
                               "next one, before it saw that; at " +
                               Site(where).text());
  }
  if (b.checker.on)
    b.checker.learn(t.linear, m.done);
}
