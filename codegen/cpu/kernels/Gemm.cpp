//===- Gemm.cpp - linear layers --------------------------------------------------===//
//
// A task is `task_tiles` tiles of 16 rows of the weights for all tokens. Tokens go in chunks whose
// activations stay in the second-level cache; inside a chunk every tile of the task is multiplied
// with blocks of tokens. None of this changes an output's order of additions.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/kernels/GemmFloat.h"
#include "codegen/cpu/kernels/GemmInt.h"
#include "codegen/cpu/kernels/GemmTiles.h"
#include "codegen/cpu/kernels/Kernel.h"

using namespace llmc::kernel;

namespace {

struct Gemm {
  Format format;
  int64_t k, n, xInt8, group, activation, glu, tileBytes, xStride, yStride;
  const uint8_t *x, *w;
  const float *bias, *residual;
  float *y;

  /// 16 outputs of token \p m from column \p column on: bias is in \p v already.
  KERNEL_LAMBDA void finish(F32x16 v, int64_t m, int64_t column, int64_t columns) const {
    const int64_t count = columns - column;
    if (residual)
      v = v + loadPart(residual + m * yStride + column, count);
    storePart(y + m * yStride + column, v, count);
  }
  KERNEL_LAMBDA F32x16 biased(F32x16 v, int64_t row, int64_t rows) const {
    return bias ? v + loadPart(bias + row, rows - row) : v;
  }

  /// acc = tiles [tile, tile + Tiles) times tokens [m, m + Tokens).
  template <int Tiles, int Tokens>
  KERNEL_LAMBDA void multiply(int64_t tile, int64_t m, F32x16 (&acc)[Tiles][Tokens]) const {
    const uint8_t *at = w + tile * tileBytes;
    if (xInt8)
      unroll<Tiles>([&](auto t) KERNEL_LAMBDA {
        intBlock<Tokens>(format, at + t * tileBytes, x + m * xStride, xStride, k, group, acc[t]);
      });
    else
      floatBlock<Tiles, Tokens>(format, at, tileBytes,
                                reinterpret_cast<const float *>(x + m * xStride), xStride / 4, k,
                                acc);
  }

  /// Token \p m's outputs of tiles [tile, tile + Tiles) from their products.
  template <int Tiles>
  KERNEL_LAMBDA void finishToken(int64_t tile, int64_t m, const F32x16 (&v)[Tiles]) const {
    if (glu) {
      // Tiles alternate gate, up; both are padded alike, so tile pair p makes columns 16 p on.
      unroll<Tiles / 2>([&](auto p) KERNEL_LAMBDA {
        const int64_t column = (tile / 2 + p) * 16;
        finish(activate(v[2 * p], activation) * v[2 * p + 1], m, column, n / 2);
      });
    } else {
      unroll<Tiles>([&](auto t) KERNEL_LAMBDA {
        const int64_t column = (tile + t) * 16;
        finish(activate(biased(v[t], column, n), activation), m, column, n);
      });
    }
  }

  template <int Tiles, int Tokens> KERNEL_LAMBDA void block(int64_t tile, int64_t m) const {
    F32x16 acc[Tiles][Tokens];
    multiply<Tiles, Tokens>(tile, m, acc);
    unroll<Tokens>([&](auto j) KERNEL_LAMBDA {
      F32x16 v[Tiles];
      unroll<Tiles>([&](auto t) KERNEL_LAMBDA { v[t] = acc[t][j]; });
      finishToken<Tiles>(tile, m + j, v);
    });
  }

#if defined(LLMC_KERNEL_TILES)
  /// The same for 16 * Blocks tokens in tile registers.
  template <int Tiles, int Blocks> KERNEL_LAMBDA void tileTokens(int64_t tile, int64_t m) const {
    constexpr int64_t tokens = Blocks * kTileTokens;
    F32x16 acc[Tiles][tokens];
    unroll<Tiles>([&](auto t) KERNEL_LAMBDA {
      tileBlock<Blocks>(format, w + (tile + t) * tileBytes, x + m * xStride, xStride, k, group,
                        acc[t]);
    });
    for (int64_t j = 0; j < tokens; ++j) {
      F32x16 v[Tiles];
      unroll<Tiles>([&](auto t) KERNEL_LAMBDA { v[t] = acc[t][j]; });
      finishToken<Tiles>(tile, m + j, v);
    }
  }
#endif

  /// Tiles [tile, tile + Tiles) times tokens [begin, end).
  template <int Tiles> KERNEL_LAMBDA void tokens(int64_t tile, int64_t begin, int64_t end) const {
    int64_t m = begin;
#if defined(LLMC_KERNEL_TILES)
    if (xInt8 && tilesTake(group) && m + kTileTokens <= end) {
      TileShapes shapes(tileDepth(group));
      for (; m + 4 * kTileTokens <= end; m += 4 * kTileTokens)
        tileTokens<Tiles, 4>(tile, m);
      for (; m + kTileTokens <= end; m += kTileTokens)
        tileTokens<Tiles, 1>(tile, m);
    }
#endif
    for (; m + kTokenBlock <= end; m += kTokenBlock)
      block<Tiles, kTokenBlock>(tile, m);
    if constexpr (kTokenBlock > 4)
      for (; m + 4 <= end; m += 4)
        block<Tiles, 4>(tile, m);
    for (; m < end; ++m)
      block<Tiles, 1>(tile, m);
  }
};

} // namespace

LLMC_KERNEL(gemm, int64_t k, int64_t n, int64_t wElement, int64_t wPacking, int64_t wGroup,
            int64_t wScale, int64_t wHasMin, int64_t wMin, int64_t xInt8, int64_t group,
            int64_t rows, int64_t bias, int64_t residual, int64_t activation, int64_t glu,
            int64_t taskTiles) {
  Gemm g;
  g.format = {wElement, wPacking, wGroup, wScale, wHasMin, wMin};
  g.k = k, g.n = n, g.xInt8 = xInt8, g.group = group, g.activation = activation, g.glu = glu;
  g.tileBytes = g.format.tileBytes(k);
  g.xStride = xInt8 ? LLMRT_Q8_ROW_BYTES(roundUp(k, group), group) : 4 * k;
  g.yStride = glu ? n / 2 : n;
  g.x = binding<uint8_t>(bindings, 0);
  g.w = binding<uint8_t>(bindings, 1);
  g.bias = bias ? binding<float>(bindings, 2) : nullptr;
  g.residual = residual ? binding<float>(bindings, 2 + (bias != 0)) : nullptr;
  g.y = binding<float>(bindings, 2 + (bias != 0) + (residual != 0));
  const int64_t m = rows ? step->R : step->T;
  const int64_t tiles = glu ? 2 * ((n / 2 + 15) / 16) : (n + 15) / 16;
  const int64_t begin = taskBegin * taskTiles, end = smaller(taskEnd * taskTiles, tiles);

  const int64_t chunk = 64;
  for (int64_t first = 0; first < m; first += chunk) {
    const int64_t last = smaller(first + chunk, m);
    // Tiles alternate gate, up with glu: a pair is one step.
    for (int64_t tile = begin; tile < end; tile += glu ? 2 : 1)
      if (glu)
        g.tokens<2>(tile, first, last);
      else
        g.tokens<1>(tile, first, last);
  }
}
