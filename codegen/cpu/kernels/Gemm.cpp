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

/// Tokens of a chunk, whose activations stay in the second-level cache.
constexpr int64_t kChunk = 64;
/// From how many tokens on int4 weights are decoded once for all of them, and how much of K at a
/// time: 16 KB for two tiles, that stay in the first-level cache.
constexpr int64_t kDecodeFrom = 16, kDecodedDepth = 512;

struct Gemm {
  Format format;
  int64_t k, n, xInt8, group, activation, glu, hasBias, hasResidual, tileBytes, xStride, yStride;
  const uint8_t *x, *w;
  const float *bias, *residual; ///< where there are any
  float *y;

  /// 16 outputs of token \p m from column \p column on: bias is in \p v already.
  KERNEL_LAMBDA void finish(F32x16 v, int64_t m, int64_t column, int64_t columns) const {
    const int64_t count = columns - column;
    if (everyTime(hasResidual))
      v = v + loadPart(residual + m * yStride + column, count);
    storePart(y + m * yStride + column, v, count);
  }
  KERNEL_LAMBDA F32x16 biased(F32x16 v, int64_t row, int64_t rows) const {
    return everyTime(hasBias) ? v + loadPart(bias + row, rows - row) : v;
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
    F32x16 v[Tokens][Tiles];
    unroll<Tokens>([&](auto j) KERNEL_LAMBDA {
      unroll<Tiles>([&](auto t) KERNEL_LAMBDA { v[j][t] = acc[t][j]; });
    });
    for (int64_t j = 0; j < Tokens; ++j) // a text a token would take much of the time to compile
      finishToken<Tiles>(tile, m + j, v[j]);
  }

#if defined(LLMC_KERNEL_MATRICES)
  /// The same for Blocks * kTileTokens tokens by instructions for matrices.
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

  KERNEL_LAMBDA bool usesTiles() const {
#if defined(LLMC_KERNEL_MATRICES)
    return xInt8 && tilesTake(group);
#else
    return false;
#endif
  }
  KERNEL_LAMBDA bool decodes(int64_t tokens) const {
    return xInt8 && format.isFourBit() && format.group <= kDecodedDepth && tokens >= kDecodeFrom &&
           !usesTiles();
  }

  /// Tiles [tile, tile + Tiles) of int4 weights times at most kChunk tokens [begin, end): what the
  /// tokens have in common is decoded once.
  template <int Tiles>
  KERNEL_LAMBDA void decodedTokens(int64_t tile, int64_t begin, int64_t end) const {
    constexpr int block = kTokenBlock / Tiles;
    alignas(64) F32x16 acc[Tiles][kChunk];
    alignas(64) uint8_t decoded[Tiles][16 * kDecodedDepth];
    const uint8_t *at = w + tile * tileBytes;
    unroll<Tiles>([&](auto t) KERNEL_LAMBDA {
      for (int64_t m = 0; m < end - begin; ++m)
        acc[t][m] = splat(0.0f);
    });
    // K in pieces of whole groups of the weights, alike in size.
    const int64_t most = kDecodedDepth / format.group;
    const int64_t weightGroups = (k + format.group - 1) / format.group;
    const int64_t pieces = (weightGroups + most - 1) / most;
    const int64_t step = (weightGroups + pieces - 1) / pieces,
                  perWeightGroup = format.group / group;
    for (int64_t first = 0; first < weightGroups; first += step) {
      const int64_t last = smaller(first + step, weightGroups);
      unroll<Tiles>([&](auto t) KERNEL_LAMBDA {
        for (int64_t g = first; g < last; ++g)
          decodeNibbles(format, at + t * tileBytes + g * format.groupBytes(), format.group,
                        decoded[t] + (g - first) * 16 * format.group);
      });
      // The last group of the weights may have more than the activations do.
      const int64_t to = smaller(last * perWeightGroup, roundUp(k, group) / group);
      auto add = [&]<int Tokens>(int64_t m) KERNEL_LAMBDA {
        F32x16 part[Tiles][Tokens];
        unroll<Tiles>([&](auto t) KERNEL_LAMBDA {
          unroll<Tokens>([&](auto j) KERNEL_LAMBDA { part[t][j] = acc[t][m + j]; });
        });
        decodedGroups<Tiles, Tokens>(format, at, tileBytes, x + (begin + m) * xStride, xStride, k,
                                     group, first * perWeightGroup, to, decoded[0],
                                     sizeof decoded[0], part);
        unroll<Tiles>([&](auto t) KERNEL_LAMBDA {
          unroll<Tokens>([&](auto j) KERNEL_LAMBDA { acc[t][m + j] = part[t][j]; });
        });
      };
      int64_t m = 0;
      for (; m + block <= end - begin; m += block)
        add.template operator()<block>(m);
      for (; m < end - begin; ++m)
        add.template operator()<1>(m);
    }
    for (int64_t m = begin; m < end; ++m) {
      F32x16 v[Tiles];
      unroll<Tiles>([&](auto t) KERNEL_LAMBDA { v[t] = acc[t][m - begin]; });
      finishToken<Tiles>(tile, m, v);
    }
  }

  /// Tiles [tile, tile + Tiles) times tokens [begin, end).
  template <int Tiles> KERNEL_LAMBDA void tokens(int64_t tile, int64_t begin, int64_t end) const {
    int64_t m = begin;
#if defined(LLMC_KERNEL_MATRICES)
    if (usesTiles() && m + kTileTokens <= end) {
      [[maybe_unused]] TileShapes shapes(group);
      for (; m + 4 * kTileTokens <= end; m += 4 * kTileTokens)
        tileTokens<Tiles, 4>(tile, m);
      for (; m + kTileTokens <= end; m += kTileTokens)
        tileTokens<Tiles, 1>(tile, m);
    }
#endif
    if (decodes(end - m))
      return decodedTokens<Tiles>(tile, m, end);
    if constexpr (kTokenBlock > 4)
      for (; m + kTokenBlock <= end; m += kTokenBlock)
        block<Tiles, kTokenBlock>(tile, m);
    for (; m + 4 <= end; m += 4)
      block<Tiles, 4>(tile, m);
    if (m + 2 <= end) { // a guess and the token before it: speculation's smallest step
      block<Tiles, 2>(tile, m);
      m += 2;
    }
    if (m < end)
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
  g.hasBias = bias, g.hasResidual = residual;
  g.tileBytes = g.format.tileBytes(k);
  g.xStride = xInt8 ? LLMRT_Q8_ROW_BYTES(roundUp(k, group), group) : 4 * k;
  g.yStride = glu ? n / 2 : n;
  g.x = binding<uint8_t>(bindings, 0);
  g.w = binding<uint8_t>(bindings, 1);
  g.bias = binding<float>(bindings, 2);
  g.residual = residual ? binding<float>(bindings, 2 + (bias != 0)) : nullptr;
  g.y = binding<float>(bindings, 2 + (bias != 0) + (residual != 0));
  const int64_t m = rows ? step->R : step->T;
  const int64_t tiles = glu ? 2 * ((n / 2 + 15) / 16) : (n + 15) / 16;
  const int64_t begin = taskBegin * taskTiles, end = smaller(taskEnd * taskTiles, tiles);

  for (int64_t first = 0; first < m; first += kChunk) {
    const int64_t last = smaller(first + kChunk, m);
    // Tiles alternate gate, up with glu: a pair is one step. So is one of decoded weights.
    for (int64_t tile = begin; tile < end; ++tile)
      if (glu)
        g.tokens<2>(tile++, first, last);
      else if (g.decodes(last - first) && tile + 1 < end)
        g.decodedTokens<2>(tile++, first, last);
      else
        g.tokens<1>(tile, first, last);
  }
}
