// Operations that the lanes of a warp carry out together.
#include "test/emulator/Block.h"

#include <cmath>
#include <cstring>

namespace simt {
namespace {

float fromF16(uint16_t bits) { return float(std::bit_cast<_Float16>(bits)); }
float fromBf16(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }
/// OCP E4M3: no infinities, S.1111.111 is NaN, bias 7.
float fromE4m3(uint8_t bits) {
  int exponent = bits >> 3 & 15, mantissa = bits & 7;
  float v = exponent == 15 && mantissa == 7 ? NAN
            : exponent == 0                 ? std::ldexp(float(mantissa), -9)
                                            : std::ldexp(float(8 + mantissa), exponent - 10);
  return bits & 0x80 ? -v : v;
}

/// Fragments as PTX has them (mma.m16n8k8 with 32-bit, k16 with 16-bit, k32 with 8-bit elements):
/// lane l is row group g = l / 4, column q = l % 4. Register i of A holds row g + 8 * (i & 1), of B
/// column (n) g; a register packs consecutive k. C: row g + 8 * (i / 2), column 2 q + (i & 1).
template <typename T> struct Mma {
  T a[16][32], b[32][8];
};

template <typename T, typename Decode>
void gather(const Gathering &g, int elementBits, Mma<T> &m, Decode decode) {
  const int perRegister = 32 / elementBits, kHalf = 4 * perRegister;
  for (int l = 0; l < 32; ++l) {
    const auto &lane = *static_cast<const MmaLane *>(g.lanes[l]);
    int group = l / 4, q = l % 4;
    for (int i = 0; i < 4; ++i)
      for (int e = 0; e < perRegister; ++e)
        m.a[group + 8 * (i & 1)][kHalf * (i / 2) + q * perRegister + e] =
            decode(lane.a[i] >> (e * elementBits));
    for (int i = 0; i < 2; ++i)
      for (int e = 0; e < perRegister; ++e)
        m.b[kHalf * i + q * perRegister + e][group] = decode(lane.b[i] >> (e * elementBits));
  }
}

template <typename T, typename C> void multiply(const Gathering &g, int k, const Mma<T> &m) {
  C c[16][8];
  auto place = [](int l, int i) { return std::pair(l / 4 + 8 * (i / 2), 2 * (l % 4) + (i & 1)); };
  for (int l = 0; l < 32; ++l)
    for (int i = 0; i < 4; ++i) {
      auto [row, column] = place(l, i);
      std::memcpy(&c[row][column],
                  static_cast<const char *>(static_cast<const MmaLane *>(g.lanes[l])->c) + 4 * i,
                  4);
    }
  for (int row = 0; row < 16; ++row)
    for (int j = 0; j < k; ++j)
      for (int column = 0; column < 8; ++column)
        c[row][column] += m.a[row][j] * m.b[j][column];
  for (int l = 0; l < 32; ++l)
    for (int i = 0; i < 4; ++i) {
      auto [row, column] = place(l, i);
      std::memcpy(static_cast<char *>(static_cast<MmaLane *>(g.lanes[l])->d) + 4 * i,
                  &c[row][column], 4);
    }
}

template <typename Decode> void mmaHalf(const Gathering &g, Decode decode) {
  Mma<float> m;
  gather(g, 16, m, [&](unsigned bits) { return decode(uint16_t(bits)); });
  multiply<float, float>(g, 16, m);
}

/// The rows that lanes give, and each lane's elements: of matrix j, row l / 4, columns 2 (l % 4)
/// and the next; transposed: column l / 4.
void loadMatrix(Gathering &g, bool transposed) {
  Thread *last = currentThread();
  Thread *first = &currentBlock->threads[last->linear / 32 * 32];
  int matrices = static_cast<LoadMatrixLane *>(g.lanes[0])->matrices;
  for (int l = 0; l < 8 * matrices; ++l) {
    simt_thread = first + l;
    checkAccess(static_cast<LoadMatrixLane *>(g.lanes[l])->row, 16, Mode::Read, g.at, 16);
  }
  simt_thread = last;
  auto row = [&](int matrix, int r) {
    return static_cast<const char *>(static_cast<LoadMatrixLane *>(g.lanes[8 * matrix + r])->row);
  };
  for (int l = 0; l < 32; ++l)
    for (int j = 0; j < matrices; ++j) {
      unsigned &result = static_cast<LoadMatrixLane *>(g.lanes[l])->result[j];
      if (!transposed) {
        std::memcpy(&result, row(j, l / 4) + 4 * (l % 4), 4);
        continue;
      }
      uint16_t low, high;
      std::memcpy(&low, row(j, 2 * (l % 4)) + 2 * (l / 4), 2);
      std::memcpy(&high, row(j, 2 * (l % 4) + 1) + 2 * (l / 4), 2);
      result = low | unsigned(high) << 16;
    }
}

template <typename Lane, typename F> void eachLane(const Gathering &g, F f) {
  for (unsigned rest = g.mask; rest; rest &= rest - 1) {
    int l = std::countr_zero(rest);
    f(l, *static_cast<Lane *>(g.lanes[l]));
  }
}

void carryOut(Gathering &g) {
  switch (g.kind) {
  case SyncWarp:
    if (currentBlock->checker.on) {
      std::vector<unsigned> threads;
      unsigned first = currentThread()->linear / 32 * 32;
      for (unsigned rest = g.mask; rest; rest &= rest - 1)
        threads.push_back(first + unsigned(std::countr_zero(rest)));
      currentBlock->checker.join(threads);
    }
    break;
  case Shuffle:
    eachLane<ShuffleLane>(g, [&](int l, ShuffleLane &lane) {
      if (!(g.mask >> (lane.source & 31) & 1))
        fail("shuffle from a lane outside the mask", "lane " + std::to_string(l) + " reads lane " +
                                                         std::to_string(lane.source & 31) + " at " +
                                                         Site(g.at).text());
      lane.result = static_cast<ShuffleLane *>(g.lanes[lane.source & 31])->value;
    });
    break;
  case Vote: {
    unsigned votes = 0;
    eachLane<VoteLane>(g, [&](int l, VoteLane &lane) { votes |= lane.predicate << l; });
    eachLane<VoteLane>(g, [&](int, VoteLane &lane) { lane.result = votes; });
    break;
  }
  case Reduce: {
    float v[32], next[32];
    eachLane<ReduceLane>(g, [&](int l, ReduceLane &lane) { v[l] = lane.value; });
    bool maximum = static_cast<ReduceLane *>(g.lanes[0])->maximum;
    for (int step = 16; step; step /= 2) {
      for (int l = 0; l < 32; ++l)
        next[l] = maximum ? std::fmax(v[l], v[l ^ step]) : v[l] + v[l ^ step];
      std::memcpy(v, next, sizeof v);
    }
    eachLane<ReduceLane>(g, [&](int l, ReduceLane &lane) { lane.value = v[l]; });
    break;
  }
  case LoadMatrix:
    loadMatrix(g, false);
    break;
  case LoadMatrixTransposed:
    loadMatrix(g, true);
    break;
  case MmaF16:
    mmaHalf(g, fromF16);
    break;
  case MmaBf16:
    mmaHalf(g, fromBf16);
    break;
  case MmaS8: {
    Mma<int32_t> m;
    gather(g, 8, m, [](unsigned bits) { return int32_t(int8_t(bits)); });
    multiply<int32_t, int32_t>(g, 32, m);
    break;
  }
  case MmaTf32: {
    Mma<float> m;
    gather(g, 32, m, [](unsigned bits) { return std::bit_cast<float>(bits & 0xffffe000u); });
    multiply<float, float>(g, 8, m);
    break;
  }
  case MmaE4m3: {
    Mma<float> m;
    gather(g, 8, m, [](unsigned bits) { return fromE4m3(uint8_t(bits)); });
    multiply<float, float>(g, 32, m);
    break;
  }
  }
}

std::string hexMask(unsigned mask) {
  char text[16];
  std::snprintf(text, sizeof text, "%08x", mask);
  return text;
}

} // namespace
} // namespace simt

using namespace simt;

void simt_collective(int kind, unsigned mask, void *lane, Where where) {
  Thread &t = *currentThread();
  Warp &w = currentBlock->warpOf(t);
  const unsigned bit = 1u << t.lane;
  if (!(mask & bit))
    fail("bad mask", describe(t) + ": its own lane is not in mask " + hexMask(mask) + " at " +
                         Site(where).text());
  if (mask & ~w.alive)
    fail("warp divergence", describe(t) + " at " + Site(where).text() + " names lanes " +
                                hexMask(mask & ~w.alive) + " that have exited");
  if (kind >= LoadMatrix && mask != ~0u)
    fail("bad mask", describe(t) + ": a matrix operation of lanes " + hexMask(mask) + " at " +
                         Site(where).text() + "; it takes the whole warp");
  Gathering &g = w.gatherings[std::countr_zero(mask)];
  if (!g.arrived) {
    g.mask = mask;
    g.kind = kind;
    g.at = where;
  } else if (g.mask != mask || g.kind != kind || !sameWhere(g.at, where)) {
    fail("warp divergence", describe(t) + " at " + Site(where).text() + " with mask " +
                                hexMask(mask) + ", others of its warp wait at " +
                                Site(g.at).text() + " with mask " + hexMask(g.mask));
  }
  g.lanes[t.lane] = lane;
  g.arrived |= bit;
  t.meetings += mask == ~0u;
  if (g.arrived != mask) {
    t.collective = kind;
    t.mask = mask;
    block(t, State::AtCollective, where);
    yieldThread();
    return;
  }
  g.arrived = 0;
  carryOut(g);
  for (unsigned rest = mask & ~bit; rest; rest &= rest - 1)
    wake(currentBlock->threads[t.linear / 32 * 32 + unsigned(std::countr_zero(rest))]);
}
