#include "test/emulator/DeviceMemory.h"

#include "test/emulator/Emulator.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <sys/mman.h>

namespace simt {
namespace {

/// Addresses are never used twice, so a stale pointer is always found out.
constexpr size_t rangeBytes = size_t(1) << 38;
constexpr size_t gap = 4096;

struct DeviceMemory {
  char *base = nullptr;
  size_t used = 0, live = 0;
  std::map<uintptr_t, std::unique_ptr<Allocation>> byLow;
  std::mutex mutex;
};
DeviceMemory &memory() {
  static DeviceMemory m;
  return m;
}

} // namespace

void Allocation::prepare() {
  if (!initialised.empty())
    return;
  initialised.assign(high - low, 0);
  for (auto [begin, end] : early)
    std::fill(initialised.begin() + ptrdiff_t(begin), initialised.begin() + ptrdiff_t(end), 1);
  early.clear();
}

void Allocation::mark(uintptr_t p, size_t bytes) {
  size_t begin = p - low;
  if (early.size() > 64) // a buffer that the host writes again and again
    prepare();
  if (initialised.empty())
    early.push_back({begin, begin + bytes});
  else
    std::fill_n(initialised.begin() + ptrdiff_t(begin), bytes, 1);
}

const uint8_t *Allocation::firstUninitialised(uintptr_t p, size_t bytes) {
  prepare();
  const uint8_t *begin = initialised.data() + (p - low);
  const void *zero = std::memchr(begin, 0, bytes);
  return zero ? reinterpret_cast<const uint8_t *>(low) +
                    (static_cast<const uint8_t *>(zero) - initialised.data())
              : nullptr;
}

void *allocate(size_t bytes) {
  DeviceMemory &m = memory();
  std::lock_guard lock(m.mutex);
  if (!m.base) {
    void *p =
        mmap(nullptr, rangeBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
      return nullptr;
    m.base = static_cast<char *>(p);
  }
  size_t size = (bytes + gap - 1) / gap * gap;
  if (bytes == 0 || size < bytes || size + gap > rangeBytes - m.used)
    return nullptr;
  char *p = m.base + m.used;
  if (mprotect(p, size, PROT_READ | PROT_WRITE) != 0)
    return nullptr;
  m.used += size + gap;
  m.live += bytes;
  std::memset(p, 0xff, bytes);
  auto a = std::make_unique<Allocation>();
  a->low = reinterpret_cast<uintptr_t>(p);
  a->high = a->low + bytes;
  m.byLow[a->low] = std::move(a);
  return p;
}

bool release(void *p) {
  DeviceMemory &m = memory();
  std::lock_guard lock(m.mutex);
  auto it = m.byLow.find(reinterpret_cast<uintptr_t>(p));
  if (it == m.byLow.end())
    return false;
  size_t bytes = it->second->high - it->second->low, size = (bytes + gap - 1) / gap * gap;
  m.live -= bytes;
  m.byLow.erase(it);
  mmap(p, size, PROT_NONE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return true;
}

Allocation *findAllocation(uintptr_t p) {
  DeviceMemory &m = memory();
  auto it = m.byLow.upper_bound(p);
  if (it == m.byLow.begin())
    return nullptr;
  --it;
  return p < it->second->high ? it->second.get() : nullptr;
}

bool inDeviceRange(uintptr_t p) {
  auto base = reinterpret_cast<uintptr_t>(memory().base);
  return base && p >= base && p < base + rangeBytes;
}

std::string describeNearest(uintptr_t p) {
  DeviceMemory &m = memory();
  auto it = m.byLow.upper_bound(p);
  if (it == m.byLow.begin())
    return "below every allocation";
  --it;
  return std::to_string(p - it->second->high) + " bytes past the end of an allocation of " +
         std::to_string(it->second->high - it->second->low) + " bytes";
}

bool isDeviceMemory(const void *p, size_t bytes) {
  std::lock_guard lock(memory().mutex);
  auto address = reinterpret_cast<uintptr_t>(p);
  Allocation *a = findAllocation(address);
  return a && bytes <= a->high - address;
}

void markInitialised(const void *p, size_t bytes) {
  std::lock_guard lock(memory().mutex);
  auto address = reinterpret_cast<uintptr_t>(p);
  if (Allocation *a = findAllocation(address); a && bytes <= a->high - address)
    a->mark(address, bytes);
}

uint64_t &bytesToHost() {
  static uint64_t bytes;
  return bytes;
}

HostWaits &hostWaits() {
  static HostWaits waits;
  return waits;
}

size_t allocatedBytes() { return memory().live; }

} // namespace simt
