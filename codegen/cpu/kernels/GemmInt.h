//===- GemmInt.h - int8 activations times a tile of int4 or int8 weights -----===//
//
// Groups ascending in K; inside a group (the activations' group, which divides the weights') the
// sum is an exact integer; then
//
//   acc = fma(float(dot), sw * sa, acc)                       dot: of q - 8 (i4) or q, or of q with
//   acc = fma(min, sa * float(sum of the activations), acc)   a minimum, which adds the second line
//
// in this order and rounding, at every level and for any number of tokens.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CODEGEN_CPU_KERNELS_GEMMINT_H
#define LLMC_CODEGEN_CPU_KERNELS_GEMMINT_H

#include "codegen/cpu/kernels/FourBit.h"

namespace llmc::kernel {

/// How far ahead of a pass over weights memory is asked for.
constexpr int64_t kPrefetchBytes = 2048; // of 1024 to 16384 the fastest, measured on a quiet Zen 3
KERNEL_INLINE void prefetchGroup(const uint8_t *w, int64_t bytes) {
#pragma clang loop unroll(full)
  for (int64_t i = 0; i < bytes; i += 64)
    __builtin_prefetch(w + kPrefetchBytes + i);
}

/// dot[m] += nibbles of one unit (64 bytes, 8 along K) times activations.
template <int Tokens>
KERNEL_INLINE void addNibbles(const Format &f, const uint8_t *w, const int8_t *x, int64_t stride,
                              NibbleSum (&dot)[Tokens]) {
  const NibblePair v = loadNibbles(f, w);
  unroll<Tokens>([&](auto m) KERNEL_LAMBDA {
    addUnit(dot[m], v.first, loadQuad(x + m * stride));
    addUnit(dot[m], v.second, loadQuad(x + m * stride + 4));
  });
}

/// \p k values along K (a multiple of 8) of 16 rows of four bits as bytes: 16 \p k of them.
KERNEL_INLINE void decodeNibbles(const Format &f, const uint8_t *w, int64_t k, uint8_t *decoded) {
  for (int64_t i = 0; i < k; i += 8) {
    const NibblePair v = loadNibbles(f, w + i * 8);
    storeAs(decoded + i * 16, v.first);
    storeAs(decoded + i * 16 + 64, v.second);
  }
}

/// The exact dot products of one group of activations with 16 rows of four bits: \p k values, a
/// multiple of 8, from \p w and \p x on. The first sum begins with \p start(m).
template <int Tokens, typename Start>
KERNEL_INLINE void nibbleGroup(const Format &f, const uint8_t *w, const int8_t *x, int64_t stride,
                               int64_t k, Start start, I32x16 (&sum)[Tokens]) {
  unroll<Tokens>([&](auto m) KERNEL_LAMBDA { sum[m] = splatInt(0); });
  const int64_t step = nibblesAtOnce(f);
  for (int64_t i = 0; i < k; i += step) {
    NibbleSum part[Tokens];
    unroll<Tokens>([&](auto m) KERNEL_LAMBDA { part[m] = i == 0 ? start(m) : noNibbles(); });
    const int64_t end = smaller(i + step, k);
    if constexpr (Tokens == 1) {
#pragma clang loop unroll(full)
      for (int64_t j = i; j < end; j += 8)
        addNibbles<Tokens>(f, w + j * 8, x + j, stride, part);
    } else {
      // Unrolled, the decoded weights of all units would fight for registers.
#pragma clang loop unroll(disable)
      for (int64_t j = i; j < end; j += 8)
        addNibbles<Tokens>(f, w + j * 8, x + j, stride, part);
    }
    unroll<Tokens>([&](auto m) KERNEL_LAMBDA { sum[m] += total(part[m]); });
  }
}

/// The same for i8: \p k a multiple of 4; without the excess that IntDot's level leaves.
template <int Tokens>
KERNEL_INLINE void byteGroup(const uint8_t *w, const int8_t *x, int64_t stride, int64_t k,
                             I32x16 (&sum)[Tokens]) {
  unroll<Tokens>([&](auto m) KERNEL_LAMBDA { sum[m] = splatInt(0); });
  for (int64_t i = 0; i < k; i += 4) {
    const ByteUnit unit = prepareBytes(loadAs<U32x16>(w + i * 16));
    unroll<Tokens>([&](auto m) KERNEL_LAMBDA {
      sum[m] = addBytes(sum[m], unit, loadQuad(x + m * stride + i));
    });
  }
}

/// acc, and a group's exact \p dot products with the scale \p sa and the sum \p sum of its
/// activations; the group of weights is at \p w.
KERNEL_INLINE F32x16 addGroup(const Format &f, const uint8_t *w, F32x16 scale, I32x16 dot, float sa,
                              int32_t sum, F32x16 acc) {
  acc = fma(toFloat(dot), scale * sa, acc);
  if (f.hasMin)
    acc = fma(loadElements(w + f.valueBytes() + 16 * elementBytes(f.scale), f.min),
              splat(sa * static_cast<float>(sum)), acc);
  return acc;
}

/// Whether a NibbleSum of a group can begin with what turns q into q - 8 (lessEightTimes).
KERNEL_INLINE bool foldsExcess(const Format &f, int64_t xGroup) {
  return f.element == kI4 && !f.hasMin && xGroup <= 32;
}
/// What a group's dot product has too much, for \p sum, that of its activations.
KERNEL_INLINE int32_t excessOf(const Format &f, int64_t xGroup, int32_t sum) {
  if (!f.isFourBit())
    return byteExcess(sum);
  return foldsExcess(f, xGroup) ? 0 : excessOfValue(f) * sum;
}

/// acc[m] = row m of the int8 activations at \p x (rows \p stride bytes apart, groups of \p xGroup)
/// times the 16 rows of the tile at \p w.
template <int Tokens>
KERNEL_INLINE void intBlock(const Format &f, const uint8_t *w, const uint8_t *x, int64_t stride,
                            int64_t k, int64_t xGroup, F32x16 (&acc)[Tokens]) {
  const int64_t padded = roundUp(k, xGroup), groups = padded / xGroup;
  const uint8_t *scales = x + padded, *sums = scales + 4 * groups;
  const int8_t *values = reinterpret_cast<const int8_t *>(x);
  const int64_t perWeightGroup = f.group / xGroup;
  unroll<Tokens>([&](auto m) KERNEL_LAMBDA { acc[m] = splat(0.0f); });
  for (int64_t first = 0; first < groups; first += perWeightGroup, w += f.groupBytes()) {
    const F32x16 scale = loadScales(f, w);
    for (int64_t j = 0; j < perWeightGroup; ++j) {
      const int64_t g = first + j;
      if (perWeightGroup > 1 && g >= groups)
        break;
      const uint8_t *at = w + j * f.bytesAlong(xGroup);
      if constexpr (Tokens <= 4) // the pass that brings the weights, or one more from a cache
        prefetchGroup(at, f.bytesAlong(xGroup));
      I32x16 dot[Tokens];
      auto sumOf = [&](auto m) KERNEL_LAMBDA { return loadAs<int32_t>(sums + m * stride + 4 * g); };
      auto start = [&](auto m) KERNEL_LAMBDA {
        return foldsExcess(f, xGroup) ? lessEightTimes(sumOf(m)) : noNibbles();
      };
      if (f.isFourBit())
        nibbleGroup(f, at, values + g * xGroup, stride, xGroup, start, dot);
      else
        byteGroup(at, values + g * xGroup, stride, xGroup, dot);
      // Loads of scales and sums stay behind the products, where they are broadcast as they come:
      // hoisted above the loop they would be spilled.
      asm volatile("" ::: "memory");
      unroll<Tokens>([&](auto m) KERNEL_LAMBDA {
        const float sa = loadAs<float>(scales + m * stride + 4 * g);
        const int32_t sum = sumOf(m);
        acc[m] = addGroup(f, w, scale, dot[m] - excessOf(f, xGroup, sum), sa, sum, acc[m]);
      });
    }
  }
}

/// acc[t][m] += row m of the activations times the 16 rows of the i4 tile at \p w + t *
/// \p tileBytes, groups [first, last) of the activations along K, which begin where a group of the
/// weights does. \p decoded has their values (decodeNibbles), tiles \p decodedBytes apart. An
/// activation is loaded once for all tiles.
template <int Tiles, int Tokens>
KERNEL_INLINE void decodedGroups(const Format &f, const uint8_t *w, int64_t tileBytes,
                                 const uint8_t *x, int64_t stride, int64_t k, int64_t xGroup,
                                 int64_t first, int64_t last, const uint8_t *decoded,
                                 int64_t decodedBytes, F32x16 (&acc)[Tiles][Tokens]) {
  const int64_t padded = roundUp(k, xGroup), groups = padded / xGroup;
  const uint8_t *scales = x + padded, *sums = scales + 4 * groups;
  const int8_t *values = reinterpret_cast<const int8_t *>(x);
  const int64_t perWeightGroup = f.group / xGroup;
  for (int64_t g = first; g < last; ++g, decoded += 16 * xGroup) {
    I32x16 dot[Tiles][Tokens];
    auto sumOf = [&](auto m) KERNEL_LAMBDA { return loadAs<int32_t>(sums + m * stride + 4 * g); };
    const int64_t step = nibblesAtOnce(f);
    for (int64_t i = 0; i < xGroup; i += step) {
      NibbleSum part[Tiles][Tokens];
      unroll<Tokens>([&](auto m) KERNEL_LAMBDA {
        const NibbleSum start = foldsExcess(f, xGroup) ? lessEightTimes(sumOf(m)) : noNibbles();
        unroll<Tiles>([&](auto t) KERNEL_LAMBDA { part[t][m] = start; });
      });
#pragma clang loop unroll(disable)
      for (int64_t j = i; j < smaller(i + step, xGroup); j += 8)
        unroll<2>([&](auto half) KERNEL_LAMBDA {
          U32x16 unit[Tiles];
          unroll<Tiles>([&](auto t) KERNEL_LAMBDA {
            unit[t] = loadAs<U32x16>(decoded + t * decodedBytes + j * 16 + half * 64);
          });
          unroll<Tokens>([&](auto m) KERNEL_LAMBDA {
            const int32_t quad = loadQuad(values + m * stride + g * xGroup + j + half * 4);
            unroll<Tiles>([&](auto t) KERNEL_LAMBDA { addUnit(part[t][m], unit[t], quad); });
          });
        });
      unroll<Tiles>([&](auto t) KERNEL_LAMBDA {
        unroll<Tokens>([&](auto m) KERNEL_LAMBDA {
          dot[t][m] = i == 0 ? total(part[t][m]) : dot[t][m] + total(part[t][m]);
        });
      });
    }
    asm volatile("" ::: "memory"); // as in intBlock
    unroll<Tiles>([&](auto t) KERNEL_LAMBDA {
      const uint8_t *at = w + t * tileBytes + g / perWeightGroup * f.groupBytes();
      const F32x16 scale = loadScales(f, at);
      unroll<Tokens>([&](auto m) KERNEL_LAMBDA {
        const float sa = loadAs<float>(scales + m * stride + 4 * g);
        const int32_t sum = sumOf(m);
        acc[t][m] =
            addGroup(f, at, scale, dot[t][m] - excessOf(f, xGroup, sum), sa, sum, acc[t][m]);
      });
    });
  }
}

} // namespace llmc::kernel

#endif // LLMC_CODEGEN_CPU_KERNELS_GEMMINT_H
