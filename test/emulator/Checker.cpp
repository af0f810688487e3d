#include "test/emulator/Checker.h"

#include "test/emulator/Block.h"
#include "test/emulator/DeviceMemory.h"
#include "test/emulator/Traffic.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>

namespace simt {
namespace {

bool orderedBefore(const Access &a, const Thread &t, const BlockChecker &c, bool shared) {
  if (a.run != c.run) {
    if (shared || a.run < c.firstRunOfLaunch)
      return true;
    const OtherRuns &seen = c.visibility[t.linear].seen;
    if (!seen)
      return false;
    auto known = seen->find(a.run);
    return known != seen->end() && known->second.covers(a.epoch, a.clock, a.thread);
  }
  if (a.epoch < c.epoch || a.thread == t.linear)
    return true;
  return c.knownEpoch[t.linear] == c.epoch &&
         a.clock <= c.known[size_t(t.linear) * c.clocks.size() + a.thread];
}

[[noreturn]] void race(const char *space, const std::string &what, const char *now,
                       const char *before, const Access &other, Site site, const BlockChecker &c) {
  std::string otherBlock =
      other.run == c.run
          ? std::string()
          : "block " + std::to_string(other.run - c.firstRunOfLaunch) + " (in order of runs) ";
  fail((std::string(space) + " race").c_str(),
       what + ": " + now + " at " + site.text() + " is not ordered after the " + before + " by " +
           otherBlock +
           (other.thread < currentBlock->threadCount ? "thread " + std::to_string(other.thread)
                                                     : "an asynchronous copy") +
           " at " + other.site.text());
}

/// Compares this access with what the cell remembers, and remembers it.
void touch(Cell &cell, Thread &t, BlockChecker &c, Mode mode, Site site, bool shared,
           const std::string &(*describeWhat)()) {
  const char *space = shared ? "shared" : "global";
  const char *now = mode == Mode::Read ? "read" : mode == Mode::Write ? "write" : "atomic";
  const Access &w = cell.write;
  if (w.run != 0 && !(mode == Mode::Atomic && w.atomic) && !orderedBefore(w, t, c, shared))
    race(space, describeWhat(), now, w.atomic ? "atomic" : "write", w, site, c);
  Access &r = cell.read;
  bool severalReaders = cell.readers >= 0 && r.run == c.run;
  if (mode != Mode::Read && r.run != 0) {
    if (!shared && cell.readByOtherRuns && r.run >= c.firstRunOfLaunch &&
        (r.run == c.run || !orderedBefore(r, t, c, shared)))
      race(space, describeWhat(), now, "read (by several blocks)", r, site, c);
    if (severalReaders) {
      for (const Access &one : c.readers[size_t(cell.readers)])
        if (!orderedBefore(one, t, c, shared))
          race(space, describeWhat(), now, "read", one, site, c);
    } else if (!orderedBefore(r, t, c, shared)) {
      race(space, describeWhat(), now, "read", r, site, c);
    }
  }
  Access access{c.run, c.epoch, c.clocks[t.linear], uint16_t(t.linear), mode == Mode::Atomic, site};
  if (mode != Mode::Read) {
    cell.write = access;
    return;
  }
  if (r.run != c.run) {
    cell.readByOtherRuns = r.run >= c.firstRunOfLaunch && r.run != 0;
    cell.readers = -1;
    r = access;
  } else if (severalReaders) {
    std::vector<Access> &all = c.readers[size_t(cell.readers)];
    std::erase_if(all, [&](const Access &one) { return orderedBefore(one, t, c, shared); });
    all.push_back(access);
  } else if (orderedBefore(r, t, c, shared)) {
    r = access;
  } else {
    cell.readers = int32_t(c.readers.size());
    c.readers.push_back({r, access});
  }
}

thread_local struct {
  uint64_t offset;
  int bytes;
  uint64_t size;
} whatNow;

const std::string &describeSharedAccess() {
  static std::string text;
  text = describe(*currentThread()) + ": " + std::to_string(whatNow.bytes) +
         " bytes at shared offset " + std::to_string(whatNow.offset);
  return text;
}
const std::string &describeGlobalAccess() {
  static std::string text;
  text = describe(*currentThread()) + ": " + std::to_string(whatNow.bytes) + " bytes at offset " +
         std::to_string(whatNow.offset) + " of an allocation of " + std::to_string(whatNow.size) +
         " bytes";
  return text;
}

void sharedAccess(Shadow &shadow, std::vector<uint8_t> &state, uint64_t offset, int bytes,
                  Mode mode, Site site) {
  Thread &t = *currentThread();
  BlockChecker &c = currentBlock->checker;
  if (offset + uint64_t(bytes) > state.size())
    fail("shared out of bounds", describe(t) + ": " + std::to_string(bytes) +
                                     " bytes at shared offset " + std::to_string(offset) +
                                     ", but the block has " + std::to_string(state.size()) +
                                     "; at " + site.text());
  for (int i = 0; i < bytes; ++i) {
    uint8_t &s = state[offset + uint64_t(i)];
    if (s == InFlight)
      fail("copy in flight", describe(t) + ": a " + (mode == Mode::Read ? "read" : "write") +
                                 " of shared offset " + std::to_string(offset + uint64_t(i)) +
                                 ", to which an asynchronous copy has not been waited for; at " +
                                 site.text());
    if (mode == Mode::Write)
      s = Initialised;
    else if (s == Uninitialised)
      fail("uninitialised shared read", describe(t) + ": shared offset " +
                                            std::to_string(offset + uint64_t(i)) + " at " +
                                            site.text());
  }
  whatNow = {offset, bytes, 0};
  shadow.each(offset, bytes,
              [&](Cell &cell) { touch(cell, t, c, mode, site, true, describeSharedAccess); });
}

void globalAccess(Allocation &a, uintptr_t p, int bytes, Mode mode, Site site) {
  Thread &t = *currentThread();
  if (mode != Mode::Write) {
    if (const uint8_t *bad = a.firstUninitialised(p, size_t(bytes)))
      fail("uninitialised global read",
           describe(t) + ": offset " + std::to_string(uintptr_t(bad) - a.low) +
               " of an allocation of " + std::to_string(a.high - a.low) + " bytes at " +
               site.text());
  }
  if (mode != Mode::Read)
    a.mark(p, size_t(bytes));
  whatNow = {p - a.low, bytes, a.high - a.low};
  a.shadow.each(p - a.low, bytes, [&](Cell &cell) {
    touch(cell, t, currentBlock->checker, mode, site, false, describeGlobalAccess);
  });
}

} // namespace

void BlockChecker::start(const Block &block, uint64_t thisRun, uint64_t firstRun) {
  run = thisRun;
  firstRunOfLaunch = firstRun;
  epoch = 1;
  clocks.assign(block.threadCount + maxMbarriers, 1);
  known.resize(size_t(block.threadCount) * clocks.size());
  fencedAt.assign(block.threadCount, 0);
  knownEpoch.assign(block.threadCount, 0);
  readers.clear();
  visibility.assign(block.threadCount, {});
  sharedState.assign(block.sharedBytes, Uninitialised);
  staticState.assign(block.staticHigh - block.staticLow, Uninitialised);
}

void checkAccess(const void *address, int bytes, Mode mode, Site site, int alignment,
                 bool isCounted) {
  Thread *t = currentThread();
  if (!t) // the host runs code of the object: its constructors
    return;
  Block &b = *currentBlock;
  auto p = reinterpret_cast<uintptr_t>(address);
  if (p >= t->stackLow && p < t->stackHigh) // registers and local memory
    return;
  if (alignment > 1 && p % uintptr_t(alignment) != 0)
    fail("misaligned access", describe(*t) + ": " + std::to_string(bytes) +
                                  " bytes at an address that is " + std::to_string(p % 16) +
                                  " mod 16; at " + site.text());
  auto shared = reinterpret_cast<uintptr_t>(b.shared);
  constexpr uintptr_t sharedWindow = 256 << 10;
  if (p >= shared && p < shared + sharedWindow) {
    if (isCounted)
      noteTraffic(*t, p - shared, bytes, site, true);
    if (b.checker.on)
      sharedAccess(b.checker.sharedShadow, b.checker.sharedState, p - shared, bytes, mode, site);
    else if (p + uintptr_t(bytes) > shared + b.sharedBytes)
      fail("shared out of bounds", describe(*t) + " at " + site.text());
    return;
  }
  if (p >= b.staticLow && p < b.staticHigh) {
    if (isCounted)
      noteTraffic(*t, p - b.staticLow, bytes, site, true);
    if (b.checker.on)
      sharedAccess(b.checker.staticShadow, b.checker.staticState, p - b.staticLow, bytes, mode,
                   site);
    return;
  }
  if (Allocation *a = findAllocation(p); a && uintptr_t(bytes) <= a->high - p) {
    if (isCounted)
      noteTraffic(*t, p, bytes, site, false);
    if (b.checker.on)
      globalAccess(*a, p, bytes, mode, site);
    return;
  }
  const char *what = mode == Mode::Read ? " bytes read" : " bytes written";
  if (inDeviceRange(p))
    fail("global out of bounds", describe(*t) + ": " + std::to_string(bytes) + what + ", " +
                                     describeNearest(p) + "; at " + site.text());
  Dl_info info;
  if (mode == Mode::Read && dladdr(address, &info)) // constants of the object
    return;
  for (const Thread &other : b.threads)
    if (p >= other.stackLow && p < other.stackHigh)
      fail("local memory of another thread", describe(*t) + ": " + std::to_string(bytes) + what +
                                                 " of thread " + std::to_string(other.linear) +
                                                 "; at " + site.text());
  // Kernel arguments lie in the launcher's memory.
  for (int i = 0; i < b.kernel->argumentCount; ++i) {
    auto argument = reinterpret_cast<uintptr_t>(b.arguments[i]);
    if (mode == Mode::Read && p >= argument &&
        p + uintptr_t(bytes) <= argument + b.kernel->argumentBytes[i])
      return;
  }
  char text[32];
  std::snprintf(text, sizeof text, " at %p", address);
  fail("not device memory",
       describe(*t) + ": " + std::to_string(bytes) + what + text + "; at " + site.text());
}

void checkProxyRead(const void *address, int bytes, Site site) {
  checkAccess(address, bytes, Mode::Read, site, 16, false);
  Block &b = *currentBlock;
  BlockChecker &c = b.checker;
  if (!c.on)
    return;
  const auto offset = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(b.shared);
  c.sharedShadow.each(offset, bytes, [&](Cell &cell) {
    const Access &w = cell.write;
    if (w.run == c.run && w.thread < b.threadCount && w.clock > c.fencedAt[w.thread])
      fail("missing proxy fence", describe(*currentThread()) + ": shared offset " +
                                      std::to_string(offset) + " at " + site.text() +
                                      ", which thread " + std::to_string(w.thread) + " wrote at " +
                                      w.site.text() + " without fence.proxy.async after it");
  });
}

void noteCopied(const void *address, int bytes, unsigned slot, Site site) {
  setSharedState(address, bytes, Initialised);
  Block &b = *currentBlock;
  BlockChecker &c = b.checker;
  if (!c.on)
    return;
  const auto offset = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(b.shared);
  const Access write{c.run, c.epoch, c.clocks[slot], uint16_t(slot), false, site};
  c.sharedShadow.each(offset, bytes, [&](Cell &cell) {
    cell.write = write;
    cell.read = {};
    cell.readers = -1;
  });
}

void setSharedState(const void *address, int bytes, ByteState state) {
  Block &b = *currentBlock;
  if (!b.checker.on)
    return;
  auto p = reinterpret_cast<uintptr_t>(address), shared = reinterpret_cast<uintptr_t>(b.shared);
  bool isStatic = p >= b.staticLow && p < b.staticHigh;
  std::vector<uint8_t> &s = isStatic ? b.checker.staticState : b.checker.sharedState;
  std::fill_n(s.begin() + ptrdiff_t(p - (isStatic ? b.staticLow : shared)), bytes, uint8_t(state));
}

} // namespace simt
