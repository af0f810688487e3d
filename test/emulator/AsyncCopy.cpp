// cp.async: data lands when the thread waits for its group, as late as a GPU may be; until then
// the destination is NaN, and touching it is a fault.
#include "test/emulator/Block.h"
#include "test/emulator/Emulator.h"
#include "test/emulator/Traffic.h"

#include <cstring>

namespace simt {
namespace {

void land(const AsyncCopy &c) {
  setSharedState(c.destination, c.bytes, Initialised);
  checkAccess(c.destination, c.bytes, Mode::Write, c.site, 1, false);
  if (c.sourceBytes) // it may read as late as this
    checkAccess(c.source, c.sourceBytes, Mode::Read, c.site, 1, false);
  if (c.sourceBytes)
    std::memcpy(c.destination, c.source, size_t(c.sourceBytes));
  std::memset(c.destination + c.sourceBytes, 0, size_t(c.bytes - c.sourceBytes));
}

} // namespace
} // namespace simt

using namespace simt;

void simt_copy_async(void *destination, const void *source, int bytes, int sourceBytes,
                     Where where) {
  Thread &t = *currentThread();
  AsyncCopy c{static_cast<unsigned char *>(destination), source, bytes, sourceBytes, where};
  const Block &b = *currentBlock;
  auto p = reinterpret_cast<uintptr_t>(destination), shared = reinterpret_cast<uintptr_t>(b.shared);
  bool inShared =
      (p >= shared && p < shared + b.sharedBytes) || (p >= b.staticLow && p < b.staticHigh);
  if (!inShared)
    fail("shared out of bounds",
         describe(t) +
             ": an asynchronous copy to an address outside the block's shared memory at " +
             c.site.text());
  if (sourceBytes < 0 || sourceBytes > bytes)
    fail("bad copy size", describe(t) + ": " + std::to_string(sourceBytes) + " of " +
                              std::to_string(bytes) + " bytes at " + c.site.text());
  instruction = __builtin_return_address(0);
  if (sourceBytes)
    checkAccess(source, sourceBytes, Mode::Read, where, bytes);
  checkAccess(destination, bytes, Mode::Write, where, bytes);
  instruction = nullptr;
  if (options().copiesLandEarly) {
    land(c);
    return;
  }
  std::memset(destination, 0xff, size_t(bytes));
  setSharedState(destination, bytes, InFlight);
  t.openCopies.push_back(c);
}

void simt_copy_async_commit(Where) {
  Thread &t = *currentThread();
  t.copyGroups.push_back(std::move(t.openCopies));
  t.openCopies.clear();
}

void simt_copy_async_wait(int groupsLeft, Where) {
  Thread &t = *currentThread();
  size_t done = 0;
  while (t.copyGroups.size() - done > size_t(groupsLeft))
    for (const AsyncCopy &c : t.copyGroups[done++])
      land(c);
  t.copyGroups.erase(t.copyGroups.begin(), t.copyGroups.begin() + ptrdiff_t(done));
}
