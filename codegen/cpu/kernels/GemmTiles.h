//===- GemmTiles.h - int8 activations times int4 or int8 weights in AMX tiles --===//
//
// The sums of a group are exact integers, so tiles give them as any instruction does; what follows
// (addGroup) is GemmInt.h's text, and the results have its bits. A tile of weights is what lies in
// memory: a row of it is a K-quad of 16 outputs (Intel SDM volume 1, chapter 18; TDPBSSD).
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CODEGEN_CPU_KERNELS_GEMMTILES_H
#define LLMC_CODEGEN_CPU_KERNELS_GEMMTILES_H

#include "codegen/cpu/kernels/GemmInt.h"
#include "codegen/cpu/kernels/TileInstructions.h"

namespace llmc::kernel {

/// Tokens of a tile of activations.
constexpr int64_t kTileTokens = 16;

#if defined(LLMC_KERNEL_TILES)

/// Whether tiles take activations in groups of \p xGroup: 32 or 64 along K at a time.
constexpr bool tilesTake(int64_t xGroup) { return xGroup % 32 == 0; }
constexpr int64_t tileDepth(int64_t xGroup) { return xGroup % 64 == 0 ? 64 : 32; }

/// Which tile registers hold what: 0 to 3 the sums of 16 tokens each.
enum TileRegister { kSums = 0, kActivations = 4, kWeights = 5 };

/// Gives the tile registers their shapes while it lives.
class TileShapes {
public:
  KERNEL_LAMBDA explicit TileShapes(int64_t depth) {
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

/// \p depth values along K of 16 outputs as a tile's rows: int8 weights as they lie, int4 ones as
/// unsigned bytes in \p decoded.
KERNEL_INLINE const uint8_t *tileOfWeights(const Format &f, const uint8_t *w, int64_t depth,
                                           uint8_t *decoded) {
  if (f.element != kI4)
    return w;
  decodeNibbles(w, depth, decoded);
  return decoded;
}

/// intBlock (GemmInt.h) for 16 * Blocks tokens; the registers have TileShapes.
template <int Blocks>
KERNEL_INLINE void tileBlock(const Format &f, const uint8_t *w, const uint8_t *x, int64_t stride,
                             int64_t k, int64_t xGroup, F32x16 *acc) {
  static_assert(Blocks <= 4);
  constexpr int64_t tokens = Blocks * kTileTokens;
  const int64_t padded = roundUp(k, xGroup), groups = padded / xGroup;
  const uint8_t *scales = x + padded, *sums = scales + 4 * groups;
  const int64_t perWeightGroup = f.group / xGroup, depth = tileDepth(xGroup);
  alignas(64) I32x16 dot[tokens];
  alignas(64) uint8_t decoded[16 * 64];
  for (int64_t m = 0; m < tokens; ++m)
    acc[m] = splat(0.0f);
  for (int64_t first = 0; first < groups; first += perWeightGroup, w += f.groupBytes()) {
    for (int64_t g = first; g < smaller(first + perWeightGroup, groups); ++g) {
      unroll<Blocks>([&](auto b) KERNEL_LAMBDA { zeroTile<kSums + decltype(b)::value>(); });
      for (int64_t i = 0; i < xGroup; i += depth) {
        const int64_t at = (g - first) * xGroup + i;
        loadTile<kWeights>(tileOfWeights(f, w + (f.element == kI4 ? 8 : 16) * at, depth, decoded),
                           64);
        unroll<Blocks>([&](auto b) KERNEL_LAMBDA {
          loadTile<kActivations>(x + b * kTileTokens * stride + g * xGroup + i, stride);
          multiplyTiles<kSums + decltype(b)::value, kActivations, kWeights>();
        });
      }
      unroll<Blocks>([&](auto b) KERNEL_LAMBDA {
        storeTile<kSums + decltype(b)::value>(dot + b * kTileTokens, 64);
      });
      const F32x16 scale = loadElements(w + f.valueBytes(), f.scale);
      for (int64_t m = 0; m < tokens; ++m) {
        const float sa = loadAs<float>(scales + m * stride + 4 * g);
        const int32_t sum = loadAs<int32_t>(sums + m * stride + 4 * g);
        const int32_t excess = f.element == kI4 && !f.hasMin ? 8 * sum : 0;
        acc[m] = addGroup(f, w, scale, dot[m] - excess, sa, sum, acc[m]);
      }
    }
  }
}

#endif

} // namespace llmc::kernel

#endif // LLMC_CODEGEN_CPU_KERNELS_GEMMTILES_H
