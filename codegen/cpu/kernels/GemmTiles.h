//===- GemmTiles.h - int8 activations times int4 or int8 weights by matrices ----===//
//
// The sums of a group are exact integers, so instructions that multiply matrices give them as any
// others do; what follows (addGroup) is GemmInt.h's text, and the results have its bits. With AMX a
// tile of weights is what lies in memory: a row of it is a K-quad of 16 outputs (Intel SDM volume
// 1, chapter 18; TDPBSSD). Arm's SMMLA takes two outputs by eight along K, times as much of two
// tokens (Arm ARM, C7.2; FEAT_I8MM).
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CODEGEN_CPU_KERNELS_GEMMTILES_H
#define LLMC_CODEGEN_CPU_KERNELS_GEMMTILES_H

#include "codegen/cpu/kernels/GemmInt.h"
#include "codegen/cpu/kernels/TileInstructions.h"

#if defined(LLMC_KERNEL_TILES) || defined(__ARM_FEATURE_MATMUL_INT8)
#define LLMC_KERNEL_MATRICES 1
#endif

namespace llmc::kernel {

#if defined(LLMC_KERNEL_TILES)

/// Tokens that go together.
constexpr int64_t kTileTokens = 16;

/// Whether tiles take activations in groups of \p xGroup: 32 or 64 along K at a time.
constexpr bool tilesTake(int64_t xGroup) { return xGroup % 32 == 0; }
constexpr int64_t tileDepth(int64_t xGroup) { return xGroup % 64 == 0 ? 64 : 32; }

/// Which tile registers hold what: 0 to 3 the sums of 16 tokens each.
enum TileRegister { kSums = 0, kActivations = 4, kWeights = 5 };

/// Gives the tile registers their shapes while it lives.
class TileShapes {
public:
  KERNEL_LAMBDA explicit TileShapes(int64_t xGroup) {
    const int64_t depth = tileDepth(xGroup);
    TileConfiguration shapes = {};
    shapes.palette = 1;
    for (int i = 0; i < 4; ++i)
      shapes.rows[kSums + i] = kTileTokens, shapes.columnBytes[kSums + i] = 64;
    shapes.rows[kActivations] = kTileTokens;
    shapes.columnBytes[kActivations] = static_cast<uint16_t>(depth);
    shapes.rows[kWeights] = static_cast<uint8_t>(depth / 4);
    shapes.columnBytes[kWeights] = 64;
    configureTiles(shapes);
  }
  KERNEL_LAMBDA ~TileShapes() { releaseTiles(); }
  TileShapes(const TileShapes &) = delete;
};

/// \p depth values along K of 16 outputs as a tile's rows: int8 weights as they lie, those of
/// four bits as unsigned bytes in \p decoded.
KERNEL_INLINE const uint8_t *tileOfWeights(const Format &f, const uint8_t *w, int64_t depth,
                                           uint8_t *decoded) {
  if (!f.isFourBit())
    return w;
  decodeNibbles(f, w, depth, decoded);
  return decoded;
}

/// dot[m] = \p depth values along K of 16 outputs, from \p w on, times those of 16 * Blocks tokens
/// from \p x on; the registers have TileShapes.
template <int Blocks>
KERNEL_INLINE void tileGroup(const Format &f, const uint8_t *w, const uint8_t *x, int64_t stride,
                             int64_t xGroup, I32x16 *dot) {
  static_assert(Blocks <= 4);
  const int64_t depth = tileDepth(xGroup);
  alignas(64) uint8_t decoded[16 * 64];
  unroll<Blocks>([&](auto b) KERNEL_LAMBDA { zeroTile<kSums + decltype(b)::value>(); });
  for (int64_t i = 0; i < xGroup; i += depth) {
    loadTile<kWeights>(tileOfWeights(f, w + f.bytesAlong(i), depth, decoded), 64);
    unroll<Blocks>([&](auto b) KERNEL_LAMBDA {
      loadTile<kActivations>(x + b * kTileTokens * stride + i, stride);
      multiplyTiles<kSums + decltype(b)::value, kActivations, kWeights>();
    });
  }
  unroll<Blocks>([&](auto b) KERNEL_LAMBDA {
    storeTile<kSums + decltype(b)::value>(dot + b * kTileTokens, 64);
  });
}

#elif defined(__ARM_FEATURE_MATMUL_INT8)

constexpr int64_t kTileTokens = 4; // two pairs: 16 of the 32 registers hold sums

constexpr bool tilesTake(int64_t xGroup) { return xGroup % 32 == 0; }

/// SMMLA works on ordinary registers.
struct TileShapes {
  KERNEL_LAMBDA explicit TileShapes(int64_t) {}
};

/// How many values along K are made ready at a time; what they take stays in the nearest cache.
constexpr int64_t kReadyDepth = 32;

/// kReadyDepth values along K of 16 outputs, from \p w on, as SMMLA takes them: of each eight along
/// K eight registers, two outputs each.
KERNEL_INLINE void makeReady(const Format &f, const uint8_t *w, int8x16_t *ready) {
  for (int64_t i = 0; i < kReadyDepth; i += 8, ready += 8) {
    U32x16 first, second; // four along K each
    if (f.isFourBit()) {
      const NibblePair v = loadNibbles(f, w + i * 8);
      first = v.first, second = v.second;
    } else {
      first = loadAs<U32x16>(w + i * 16), second = loadAs<U32x16>(w + i * 16 + 64);
    }
    unroll<4>([&](auto p) KERNEL_LAMBDA {
      constexpr int part = decltype(p)::value;
      const int32x4_t a = quarter<part>((I32x16)first), b = quarter<part>((I32x16)second);
      ready[2 * p] = vreinterpretq_s8_s32(vzip1q_s32(a, b));
      ready[2 * p + 1] = vreinterpretq_s8_s32(vzip2q_s32(a, b));
    });
  }
}

/// dot[m] = \p xGroup values along K of 16 outputs, from \p w on, times those of 4 * Blocks tokens
/// from \p x on.
template <int Blocks>
KERNEL_INLINE void tileGroup(const Format &f, const uint8_t *w, const uint8_t *x, int64_t stride,
                             int64_t xGroup, I32x16 *dot) {
  int8x16_t ready[kReadyDepth];
  for (int64_t i = 0; i < xGroup; i += kReadyDepth) {
    makeReady(f, w + f.bytesAlong(i), ready);
    for (int64_t m = 0; m < Blocks * kTileTokens; m += kTileTokens) {
      int32x4_t sums[2][8]; // of a pair of tokens: outputs 2 r, 2 r + 1
      unroll<2>([&](auto t) KERNEL_LAMBDA {
        unroll<8>([&](auto r) KERNEL_LAMBDA { sums[t][r] = vdupq_n_s32(0); });
      });
#pragma clang loop unroll(disable)
      for (int64_t j = 0; j < kReadyDepth; j += 8) {
        const int8_t *at = reinterpret_cast<const int8_t *>(x) + m * stride + i + j;
        unroll<2>([&](auto t) KERNEL_LAMBDA {
          const int8x16_t tokens =
              vcombine_s8(vld1_s8(at + 2 * t * stride), vld1_s8(at + (2 * t + 1) * stride));
          unroll<8>([&](auto r) KERNEL_LAMBDA {
            sums[t][r] = vmmlaq_s32(sums[t][r], ready[j + r], tokens);
          });
        });
      }
      // A register is [output][token] of two each: a token's are every second lane.
      unroll<2>([&](auto t) KERNEL_LAMBDA {
        const int32x4_t *s = sums[t];
        const I32x16 even = join(vuzp1q_s32(s[0], s[1]), vuzp1q_s32(s[2], s[3]),
                                 vuzp1q_s32(s[4], s[5]), vuzp1q_s32(s[6], s[7]));
        const I32x16 odd = join(vuzp2q_s32(s[0], s[1]), vuzp2q_s32(s[2], s[3]),
                                vuzp2q_s32(s[4], s[5]), vuzp2q_s32(s[6], s[7]));
        I32x16 *to = dot + m + 2 * t;
        to[0] = i == 0 ? even : to[0] + even;
        to[1] = i == 0 ? odd : to[1] + odd;
      });
    }
  }
}

#endif

#if defined(LLMC_KERNEL_MATRICES)

/// intBlock (GemmInt.h) for Blocks * kTileTokens tokens while TileShapes live.
template <int Blocks>
KERNEL_INLINE void tileBlock(const Format &f, const uint8_t *w, const uint8_t *x, int64_t stride,
                             int64_t k, int64_t xGroup, F32x16 *acc) {
  constexpr int64_t tokens = Blocks * kTileTokens;
  const int64_t padded = roundUp(k, xGroup), groups = padded / xGroup;
  const uint8_t *scales = x + padded, *sums = scales + 4 * groups;
  const int64_t perWeightGroup = f.group / xGroup;
  alignas(64) I32x16 dot[tokens];
  for (int64_t m = 0; m < tokens; ++m)
    acc[m] = splat(0.0f);
  for (int64_t first = 0; first < groups; first += perWeightGroup, w += f.groupBytes()) {
    for (int64_t g = first; g < smaller(first + perWeightGroup, groups); ++g) {
      tileGroup<Blocks>(f, w + f.bytesAlong((g - first) * xGroup), x + g * xGroup, stride, xGroup,
                        dot);
      const F32x16 scale = loadScales(f, w);
      for (int64_t m = 0; m < tokens; ++m) {
        const float sa = loadAs<float>(scales + m * stride + 4 * g);
        const int32_t sum = loadAs<int32_t>(sums + m * stride + 4 * g);
        const int32_t excess = excessOfValue(f) * sum;
        acc[m] = addGroup(f, w, scale, dot[m] - excess, sa, sum, acc[m]);
      }
    }
  }
}

#endif

} // namespace llmc::kernel

#endif // LLMC_CODEGEN_CPU_KERNELS_GEMMTILES_H
