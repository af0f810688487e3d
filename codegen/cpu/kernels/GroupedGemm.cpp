//===- GroupedGemm.cpp - projections by one of many matrices ---------------------===//
//
// Experts of a mixture (`chosen`: a row's slots name the matrices that it goes through) and heads
// with a matrix each (slot h goes through matrix h). A slot's result is that of `gemm` with its
// matrix, bit for bit: which other rows share a pass over the weights changes speed only.
//
// With `chosen` a task is `task_tiles` tiles of *every* matrix: it visits the matrices that are
// named at all, in ascending order, so decoding reads k of E experts, evenly over the threads, and
// a task is never empty. Otherwise tasks go over matrices and tiles.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/kernels/GemmFloat.h"
#include "codegen/cpu/kernels/GemmInt.h"
#include "codegen/cpu/kernels/Kernel.h"
#include "codegen/cpu/kernels/Scratch.h"

using namespace llmc::kernel;

namespace {

struct GroupedGemm {
  Format format;
  int64_t k, n, xInt8, group, activation, glu, groups, slots, tileBytes, tiles;
  int64_t rowBytes;   ///< of an input row
  int64_t slotBytes;  ///< from one slot's input to the next; 0 where all share one
  int64_t tokenBytes; ///< from one token's first input to the next
  float alpha, limit;
  const uint8_t *x, *w;
  const int32_t *ids; ///< [M, slots], or null: slot j goes through matrix j
  const float *bias;
  float *y;
  uint8_t *gathered; ///< scratch of kTokenBlock rows

  KERNEL_LAMBDA int64_t outputs() const { return glu ? n / 2 : n; }
  /// The input of entry e = token * slots + slot.
  KERNEL_LAMBDA const uint8_t *input(int64_t entry) const {
    return x + entry / slots * tokenBytes + entry % slots * slotBytes;
  }

  KERNEL_LAMBDA F32x16 product(F32x16 gate, F32x16 up) const {
    if (alpha == 0.0f)
      return activate(gate, activation) * up;
    if (limit > 0.0f) {
      gate = gate > splat(limit) ? splat(limit) : gate;
      up = up > splat(limit) ? splat(limit) : up;
      up = up < splat(-limit) ? splat(-limit) : up;
    }
    return gate / (1.0f + exp(-alpha * gate)) * (up + 1.0f);
  }

  /// Tile (pair) \p tile of matrix \p matrix times \p Tokens gathered rows.
  template <int Tiles, int Tokens>
  KERNEL_LAMBDA void block(int64_t matrix, int64_t tile, const uint8_t *rows,
                           const int64_t *entries) const {
    F32x16 acc[Tiles][Tokens];
    const uint8_t *at = w + (matrix * tiles + tile) * tileBytes;
    if (xInt8)
      unroll<Tiles>([&](auto t) KERNEL_LAMBDA {
        intBlock<Tokens>(format, at + t * tileBytes, rows, rowBytes, k, group, acc[t]);
      });
    else
      floatBlock<Tiles, Tokens>(format, at, tileBytes, reinterpret_cast<const float *>(rows),
                                rowBytes / 4, k, acc);
    if (bias)
      unroll<Tiles>([&](auto t) KERNEL_LAMBDA {
        const F32x16 b = load(bias + (matrix * tiles + tile + t) * 16);
        unroll<Tokens>([&](auto j) KERNEL_LAMBDA { acc[t][j] = acc[t][j] + b; });
      });
    F32x16 v[Tokens][Tiles];
    unroll<Tokens>([&](auto j) KERNEL_LAMBDA {
      unroll<Tiles>([&](auto t) KERNEL_LAMBDA { v[j][t] = acc[t][j]; });
    });
    for (int64_t j = 0; j < Tokens; ++j) // a text a token would take much of the time to compile
      finish<Tiles>(tile, entries[j], v[j]);
  }

  /// Tile (pair) \p tile of the outputs of an entry from its products.
  template <int Tiles>
  KERNEL_LAMBDA void finish(int64_t tile, int64_t entry, const F32x16 (&v)[Tiles]) const {
    float *out = y + entry * outputs();
    if constexpr (Tiles == 2) {
      const int64_t column = tile / 2 * 16;
      storePart(out + column, product(v[0], v[1]), outputs() - column);
    } else {
      const int64_t column = tile * 16;
      storePart(out + column, activate(v[0], activation), outputs() - column);
    }
  }

  /// Tiles [begin, end) of a matrix for the \p count (1 to kTokenBlock) rows of \p entries.
  template <int Tiles>
  KERNEL_LAMBDA void rows(int64_t matrix, int64_t begin, int64_t end, const int64_t *entries,
                          int64_t count) const {
    const uint8_t *from = input(entries[0]);
    if (count > 1) {
      for (int64_t j = 0; j < count; ++j) {
        const uint8_t *source = input(entries[j]);
        for (int64_t i = 0; i < rowBytes; i += 4)
          storeAs(gathered + j * rowBytes + i, loadAs<uint32_t>(source + i));
      }
      from = gathered;
    }
    for (int64_t tile = begin; tile < end; tile += Tiles) {
      int64_t j = 0;
      if (count == kTokenBlock) {
        block<Tiles, kTokenBlock>(matrix, tile, from, entries);
        j = kTokenBlock;
      }
      if constexpr (kTokenBlock > 4)
        for (; j + 4 <= count; j += 4)
          block<Tiles, 4>(matrix, tile, from + j * rowBytes, entries + j);
      for (; j < count; ++j)
        block<Tiles, 1>(matrix, tile, from + j * rowBytes, entries + j);
    }
  }

  /// All entries [0, total) that go through \p matrix.
  KERNEL_LAMBDA void matrix(int64_t index, int64_t begin, int64_t end, int64_t total) const {
    const int64_t step = ids ? 1 : slots;
    for (int64_t e = ids ? 0 : index; e < total;) {
      int64_t entries[kTokenBlock], count = 0;
      for (; e < total && count < kTokenBlock; e += step)
        if (!ids || ids[e] == index)
          entries[count++] = e;
      if (count > 0) // one place: all of the product is inlined there
        visit(index, begin, end, entries, count);
    }
  }
  KERNEL_LAMBDA void visit(int64_t index, int64_t begin, int64_t end, const int64_t *entries,
                           int64_t count) const {
    if (glu)
      rows<2>(index, begin, end, entries, count);
    else
      rows<1>(index, begin, end, entries, count);
  }
};

} // namespace

LLMC_KERNEL(grouped_gemm, int64_t k, int64_t n, int64_t wElement, int64_t wPacking, int64_t wGroup,
            int64_t wScale, int64_t wHasMin, int64_t wMin, int64_t xInt8, int64_t group,
            int64_t rows, int64_t bias, int64_t activation, int64_t glu, float alpha, float limit,
            int64_t groups, int64_t slots, int64_t chosen, int64_t xStride, int64_t taskTiles) {
  GroupedGemm g;
  g.format = {wElement, wPacking, wGroup, wScale, wHasMin, wMin};
  g.k = k, g.n = n, g.xInt8 = xInt8, g.group = group, g.activation = activation, g.glu = glu;
  g.groups = groups, g.slots = slots, g.alpha = alpha, g.limit = limit;
  g.tileBytes = g.format.tileBytes(k);
  g.tiles = glu ? 2 * ((n / 2 + 15) / 16) : (n + 15) / 16;
  g.rowBytes = xInt8 ? LLMRT_Q8_ROW_BYTES(roundUp(k, group), group) : 4 * k;
  g.slotBytes = xStride == 0 ? 0 : xInt8 ? g.rowBytes : 4 * xStride;
  g.tokenBytes = xStride == 0 ? g.rowBytes : slots * g.slotBytes;
  g.x = binding<uint8_t>(bindings, 0);
  g.w = binding<uint8_t>(bindings, 1);
  int next = 2;
  g.ids = chosen ? binding<int32_t>(bindings, next++) : nullptr;
  g.bias = bias ? binding<float>(bindings, next++) : nullptr;
  g.y = binding<float>(bindings, next);
  g.gathered = static_cast<uint8_t *>(scratch);
  const int64_t total = (rows ? step->R : step->T) * slots;
  const int64_t tasks = (g.tiles + taskTiles - 1) / taskTiles; // a matrix
  if (!chosen) {
    for (int64_t t = taskBegin; t < taskEnd; ++t) {
      const int64_t begin = t % tasks * taskTiles;
      g.matrix(t / tasks, begin, smaller(begin + taskTiles, g.tiles), total);
    }
    return;
  }
  const int64_t begin = taskBegin * taskTiles, end = smaller(taskEnd * taskTiles, g.tiles);
  for (int64_t last = -1;;) {
    int64_t least = groups;
    for (int64_t e = 0; e < total; ++e)
      if (g.ids[e] > last && g.ids[e] < least)
        least = g.ids[e];
    if (least == groups)
      return;
    g.matrix(least, begin, end, total);
    last = least;
  }
}
