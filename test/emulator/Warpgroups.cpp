// wgmma: products that four warps ask for and that are carried out when they wait for them, as late
// as a GPU may. Until then sums are NaN, and registers that change are a fault.
#include "test/emulator/Block.h"
#include "test/emulator/Traffic.h"

#include <cstring>
#include <memory>

namespace simt {
namespace {

constexpr unsigned groupThreads = 128;
constexpr uint32_t poison = 0xffffffffu;

/// A 64-bit descriptor of a matrix in shared memory (PTX ISA, "Matrix descriptor").
struct Descriptor {
  uint32_t start, leading, stride;
  unsigned swizzle;

  explicit Descriptor(uint64_t bits)
      : start(uint32_t(bits & 0x3fff) << 4), leading(uint32_t(bits >> 16 & 0x3fff) << 4),
        stride(uint32_t(bits >> 32 & 0x3fff) << 4), swizzle(unsigned(bits >> 62)) {}

  /// The shared offset of the 16 bytes of a core matrix's row: 8 rows (of N, or of K where N goes
  /// along the row), 128 bytes apart.
  uint32_t at(uint32_t offset) const {
    offset += start;
    return offset ^ (offset >> 7 & 7) << 4;
  }
};

/// Of b[16][columns]: the offsets of its core matrices' rows, 8 elements each.
struct Pieces {
  /// Element (k, n) is element `inner` of the piece.
  template <typename F> static void each(const Product &p, F f) {
    const Descriptor d(p.b);
    if (p.alongRows) {
      for (uint32_t n = 0; n < uint32_t(p.columns); n += 8)
        for (uint32_t k = 0; k < 16; ++k)
          f(d.at(n / 64 * d.leading + n % 64 * 2 + k / 8 * d.stride + k % 8 * 128), k, n, k % 8);
      return;
    }
    for (uint32_t k = 0; k < 16; k += 8)
      for (uint32_t n = 0; n < uint32_t(p.columns); ++n)
        f(d.at(n / 8 * d.stride + n % 8 * 128 + k * 2), k, n, n % 8);
  }
};

float value(uint16_t bits, bool isBf16) {
  return isBf16 ? std::bit_cast<float>(uint32_t(bits) << 16) : float(std::bit_cast<_Float16>(bits));
}

[[noreturn]] void wrong(const char *kind, const Thread &t, const Product &p, const char *what) {
  fail(kind, describe(t) + ": " + what + "; at " + Site(p.at).text());
}

/// What the product reads of shared memory is there. For the first thread of the group, whose warp
/// tells of it when it is done.
void checkOperand(const Product &p, bool isCounted) {
  const Block &b = *currentBlock;
  uint32_t rows[8];
  Pieces::each(p, [&](uint32_t offset, uint32_t, uint32_t, uint32_t row) {
    checkProxyRead(b.shared + offset, 16, p.at);
    rows[row] = offset;
    if (isCounted && row == 7)
      noteCoreMatrix(rows, p.at);
  });
}

struct Matrices {
  float a[64][16], c[64][256], b[16][256];
};

/// The product of all threads of a group, which asked for the same one.
void carryOut(Thread *group, size_t index, size_t of) {
  const Product &first = group->productGroups[of][index];
  Thread *last = currentThread();
  simt_thread = group;
  checkOperand(first, true);
  simt_thread = last;
  // On the heap: a library that is loaded late has little room for thread-local variables.
  static thread_local const std::unique_ptr<Matrices> kept = std::make_unique<Matrices>();
  auto &[a, c, matrix] = *kept;
  for (unsigned l = 0; l < groupThreads; ++l) {
    const Product &p = group[l].productGroups[of][index];
    if (p.b != first.b || p.columns != first.columns || p.alongRows != first.alongRows ||
        p.isBf16 != first.isBf16 || p.add != first.add || !sameWhere(p.at, first.at))
      wrong("warpgroup divergence", group[l], p, "its warpgroup asks for different products");
    if (std::memcmp(p.a, p.aNow, sizeof p.a) != 0)
      wrong("product in flight", group[l], p, "registers of its operand have changed");
    const unsigned row = l / 32 * 16 + l % 32 / 4, t = l % 4;
    for (unsigned i = 0; i < 4; ++i)
      for (unsigned e = 0; e < 2; ++e)
        a[row + 8 * (i & 1)][8 * (i / 2) + 2 * t + e] = value(uint16_t(p.a[i] >> 16 * e), p.isBf16);
    for (int j = 0; j < p.columns / 2; ++j) {
      uint32_t now;
      std::memcpy(&now, p.d + j, 4);
      if (!p.isChained && now != poison)
        wrong("product in flight", group[l], p, "registers of its sums have changed");
      const float before = p.isChained ? p.d[j] : p.sums[size_t(j)];
      c[row + 8 * (j / 2 % 2)][8 * unsigned(j / 4) + 2 * t + unsigned(j % 2)] =
          p.add ? before : 0.0f;
    }
  }
  Pieces::each(first, [&](uint32_t offset, uint32_t k, uint32_t n, uint32_t) {
    uint16_t bits[8];
    std::memcpy(bits, currentBlock->shared + offset, 16);
    for (uint32_t e = 0; e < 8; ++e)
      matrix[k + (first.alongRows ? 0 : e)][n + (first.alongRows ? e : 0)] =
          value(bits[e], first.isBf16);
  });
  for (unsigned row = 0; row < 64; ++row)
    for (unsigned k = 0; k < 16; ++k)
      for (int n = 0; n < first.columns; ++n)
        c[row][n] += a[row][k] * matrix[k][n];
  for (unsigned l = 0; l < groupThreads; ++l) {
    const Product &p = group[l].productGroups[of][index];
    const unsigned row = l / 32 * 16 + l % 32 / 4, t = l % 4;
    for (int j = 0; j < p.columns / 2; ++j)
      p.d[j] = c[row + 8 * (j / 2 % 2)][8 * unsigned(j / 4) + 2 * t + unsigned(j % 2)];
  }
}

} // namespace
} // namespace simt

using namespace simt;

void simt_wgmma(float *d, int columns, const unsigned *a, uint64_t b, int alongRows, int isBf16,
                int add, Where where) {
  Thread &t = *currentThread();
  Block &block = *currentBlock;
  Product p{d, columns, a, {}, b, alongRows != 0, isBf16 != 0, add != 0, false, {}, where};
  std::memcpy(p.a, a, sizeof p.a);
  const Descriptor descriptor(b);
  if (t.linear / groupThreads * groupThreads + groupThreads > block.threadCount)
    wrong("warpgroup divergence", t, p, "wgmma takes four warps");
  if (descriptor.swizzle != 1 || descriptor.stride % 1024 != 0 || (descriptor.start & 0x380) != 0)
    wrong("bad matrix descriptor", t, p,
          "the emulator has matrices that are swizzled by 128 bytes, whose pieces of 1024 are "
          "aligned");
  uint32_t end = 0;
  Pieces::each(
      p, [&](uint32_t offset, uint32_t, uint32_t, uint32_t) { end = std::max(end, offset + 16); });
  if (end > block.sharedBytes)
    wrong("shared out of bounds", t, p, "its matrix goes beyond the block's shared memory");
  auto overlaps = [&](const Product &other) {
    return d < other.d + other.columns / 2 && other.d < d + columns / 2;
  };
  auto meet = [&](const Product &other) {
    if (!overlaps(other))
      return;
    if (other.d != d || other.columns != columns)
      wrong("product in flight", t, p, "its sums are part of those of an unfinished product");
    p.isChained = true;
  };
  for (const std::vector<Product> &group : t.productGroups)
    for (const Product &other : group)
      meet(other);
  for (const Product &other : t.openProducts)
    meet(other);
  if (!t.registersFenced)
    wrong("missing wgmma fence", t, p, "its registers were touched since the last wgmma.fence");
  if (!p.isChained) {
    p.sums.assign(d, d + columns / 2);
    std::memset(d, 0xff, size_t(columns / 2) * 4);
  }
  if (t.linear % groupThreads == 0)
    checkOperand(p, false);
  t.openProducts.push_back(std::move(p));
}

void simt_wgmma_fence(Where) { currentThread()->registersFenced = true; }

void simt_wgmma_commit(Where) {
  Thread &t = *currentThread();
  t.productGroups.push_back(std::move(t.openProducts));
  t.openProducts.clear();
}

void simt_wgmma_wait(int groupsLeft, Where where) {
  Thread &t = *currentThread();
  Block &b = *currentBlock;
  ++t.meetings;
  WarpgroupWait &wait = b.warpgroups[t.linear / groupThreads];
  if (!wait.arrived) {
    wait.groupsLeft = groupsLeft;
    wait.at = where;
  } else if (wait.groupsLeft != groupsLeft || !sameWhere(wait.at, where)) {
    fail("warpgroup divergence", describe(t) + " waits for products at " + Site(where).text() +
                                     ", others of its warpgroup at " + Site(wait.at).text());
  }
  if (++wait.arrived < groupThreads) {
    block(t, State::AtWarpgroup, where);
    yieldThread();
    return;
  }
  wait.arrived = 0;
  Thread *group = &b.threads[t.linear / groupThreads * groupThreads];
  const size_t groups = group->productGroups.size();
  const size_t done = groups > size_t(groupsLeft) ? groups - size_t(groupsLeft) : 0;
  for (unsigned l = 0; l < groupThreads; ++l) {
    if (group[l].productGroups.size() != groups)
      fail("warpgroup divergence", describe(group[l]) +
                                       ": its warpgroup has asked for different "
                                       "products before the wait at " +
                                       Site(where).text());
    for (size_t i = 0; i < done; ++i)
      if (group[l].productGroups[i].size() != group->productGroups[i].size())
        fail("warpgroup divergence", describe(group[l]) +
                                         ": its warpgroup has asked for different "
                                         "products before the wait at " +
                                         Site(where).text());
  }
  for (size_t i = 0; i < done; ++i)
    for (size_t j = 0; j < group->productGroups[i].size(); ++j)
      carryOut(group, j, i);
  for (unsigned l = 0; l < groupThreads; ++l) {
    std::vector<std::vector<Product>> &all = group[l].productGroups;
    all.erase(all.begin(), all.begin() + ptrdiff_t(done));
    group[l].registersFenced = false;
    if (&group[l] != &t)
      wake(group[l]);
  }
}

void simt_set_registers(int count, Where where) {
  if (count < 24 || count > 256 || count % 8 != 0)
    fail("bad register count", describe(*currentThread()) + ": " + std::to_string(count) +
                                   "; setmaxnreg takes multiples of 8 from 24 to 256; at " +
                                   Site(where).text());
}
