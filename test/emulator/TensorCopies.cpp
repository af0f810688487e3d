// cp.async.bulk.tensor: boxes of a tensor to shared memory, swizzled, counted by an mbarrier. They
// land as late as they may; until then their bytes are NaN, and touching them is a fault.
#include "test/emulator/TensorCopies.h"

#include "test/emulator/Block.h"
#include "test/emulator/DeviceMemory.h"
#include "test/emulator/Emulator.h"
#include "test/emulator/Mbarriers.h"
#include "test/emulator/Traffic.h"

#include <cstring>

namespace simt {
namespace {

constexpr uint64_t mapMark = 0x70616d726f736e74;
constexpr int elementBytes = 2;

struct TensorMap {
  uint64_t mark;
  const char *base;
  uint64_t strides[3];
  uint64_t sizes[4];
  uint16_t box[4];
};
static_assert(sizeof(TensorMap) <= 128);

/// Where the byte at \p offset of a box lies: 16-byte parts of 128 change places by the address.
unsigned char *swizzled(unsigned char *shared, uint64_t offset) {
  return shared + (offset ^ (offset >> 7 & 7) << 4);
}

void land(Block &b, const TensorCopy &c) {
  Mbarrier &m = b.mbarriers.at(c.barrier);
  for (const TensorCopy::Row &row : c.rows) {
    if (row.source)
      std::memcpy(row.destination, row.source, 16);
    else
      std::memset(row.destination, 0, 16);
    noteCopied(row.destination, 16, m.slot, c.site);
  }
  m.bytes -= int64_t(16 * c.rows.size());
  if (b.checker.on) {
    Knowledge &k = m.arrivals;
    if (k.own.epoch != b.checker.epoch) {
      k.own.epoch = b.checker.epoch;
      k.own.clocks.assign(b.checker.clocks.size(), 0);
    }
    k.own.clocks[m.slot] = b.checker.clocks[m.slot]++;
  }
  completePhase(c.barrier, m);
}

} // namespace

std::string encodeTensorMap(void *map, const TensorShape &s) {
  TensorMap m{mapMark, static_cast<const char *>(s.base), {}, {}, {}};
  if (s.rank != 4)
    return "a rank of " + std::to_string(s.rank) + "; the emulator has 4";
  if (reinterpret_cast<uintptr_t>(s.base) % 16 != 0 || reinterpret_cast<uintptr_t>(map) % 64 != 0)
    return "an address that isn't aligned";
  for (uint32_t i = 0; i < s.rank; ++i) {
    if (s.sizes[i] == 0 || s.sizes[i] > uint64_t(1) << 32 || s.box[i] == 0 || s.box[i] > 256)
      return "a size of 0 or beyond 2^32, or a box beyond 256";
    m.sizes[i] = s.sizes[i];
    m.box[i] = uint16_t(s.box[i]);
    if (i + 1 < s.rank && (s.strides[i] % 16 != 0 || s.strides[i] >= uint64_t(1) << 40))
      return "a stride that isn't a multiple of 16 below 2^40";
    if (i + 1 < s.rank)
      m.strides[i] = s.strides[i];
  }
  if (s.box[0] * elementBytes > 128 || s.box[0] * elementBytes % 16 != 0)
    return "rows of a box that aren't a multiple of 16 bytes, up to 128";
  std::memset(map, 0, 128);
  std::memcpy(map, &m, sizeof m);
  return "";
}

bool landTensorCopy(Block &b) {
  if (b.tensorCopies.empty())
    return false;
  size_t i = 0;
  if (options().order == Order::Reverse)
    i = b.tensorCopies.size() - 1;
  else if (options().order == Order::Random)
    i = size_t(b.random()) % b.tensorCopies.size();
  const TensorCopy copy = std::move(b.tensorCopies[i]);
  b.tensorCopies.erase(b.tensorCopies.begin() + ptrdiff_t(i));
  land(b, copy);
  return true;
}

} // namespace simt

using namespace simt;

void simt_copy_tensor(void *destination, const void *map, const int *at, int rank, void *barrier,
                      Where where) {
  Thread &t = *currentThread();
  Block &b = *currentBlock;
  TensorMap m;
  std::memcpy(&m, map, sizeof m);
  if (m.mark != mapMark || rank != 4)
    fail("bad tensor map", describe(t) + ": not what the driver encoded; at " + Site(where).text());
  Mbarrier &counter = mbarrierAt(barrier, where);
  checkAccess(barrier, 8, Mode::Atomic, where, 8, false);
  if (!counter.isFenced)
    fail("missing proxy fence", describe(t) +
                                    ": a copy counts on an mbarrier that no "
                                    "fence.mbarrier_init has published; at " +
                                    Site(where).text());
  const auto begin =
      reinterpret_cast<uintptr_t>(destination) - reinterpret_cast<uintptr_t>(b.shared);
  const uint64_t rowBytes = uint64_t(m.box[0]) * elementBytes;
  const uint64_t bytes = rowBytes * m.box[1] * m.box[2] * m.box[3];
  if (!isShared(b, destination) || begin + bytes > b.sharedBytes)
    fail("shared out of bounds", describe(t) + ": a copy of " + std::to_string(bytes) +
                                     " bytes to shared offset " + std::to_string(begin) + "; at " +
                                     Site(where).text());
  if (begin % 128 != 0)
    fail("misaligned access", describe(t) + ": a copy to shared offset " + std::to_string(begin) +
                                  ", which isn't a multiple of 128; at " + Site(where).text());
  TensorCopy copy{{}, barrier, where};
  uint64_t offset = begin;
  for (int x3 = at[3]; x3 < at[3] + m.box[3]; ++x3)
    for (int x2 = at[2]; x2 < at[2] + m.box[2]; ++x2)
      for (int x1 = at[1]; x1 < at[1] + m.box[1]; ++x1) {
        const bool isInside = x1 >= 0 && x2 >= 0 && x3 >= 0 && uint64_t(x1) < m.sizes[1] &&
                              uint64_t(x2) < m.sizes[2] && uint64_t(x3) < m.sizes[3];
        const char *row = m.base + int64_t(m.strides[0]) * x1 + int64_t(m.strides[1]) * x2 +
                          int64_t(m.strides[2]) * x3;
        for (int x0 = at[0]; x0 < at[0] + m.box[0]; x0 += 8, offset += 16) {
          const bool exists = isInside && x0 >= 0 && uint64_t(x0) + 8 <= m.sizes[0];
          copy.rows.push_back(
              {swizzled(b.shared, offset), exists ? row + x0 * elementBytes : nullptr});
        }
        if (isInside)
          noteBulkRead(reinterpret_cast<uintptr_t>(row) + uintptr_t(at[0]) * elementBytes, rowBytes,
                       where);
      }
  for (const TensorCopy::Row &row : copy.rows) {
    if (row.source)
      checkAccess(row.source, 16, Mode::Read, where, 16, false);
    checkAccess(row.destination, 16, Mode::Write, where, 16, false);
  }
  for (const TensorCopy::Row &row : copy.rows) {
    std::memset(row.destination, 0xff, 16);
    setSharedState(row.destination, 16, InFlight);
  }
  b.tensorCopies.push_back(std::move(copy));
  if (options().copiesLandEarly)
    landTensorCopy(b);
}

void simt_proxy_fence(Where) {
  BlockChecker &c = currentBlock->checker;
  if (!c.on)
    return;
  const unsigned thread = currentThread()->linear;
  c.fencedAt[thread] = c.clocks[thread]++;
}
