//===- GemmFloat.h - f32 activations times a tile of weights of any format ---===//
//
// One fused multiply-add per k and output, k ascending, whatever the number of tokens.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CODEGEN_CPU_KERNELS_GEMMFLOAT_H
#define LLMC_CODEGEN_CPU_KERNELS_GEMMFLOAT_H

#include "codegen/cpu/kernels/FourBit.h"

namespace llmc::kernel {

/// acc[t][m] += weight (16 rows of tile t) * x[m][k] for one k.
template <int Tiles, int Tokens>
KERNEL_INLINE void addElement(const F32x16 (&weight)[Tiles], const float *x, int64_t stride,
                              int64_t k, F32x16 (&acc)[Tiles][Tokens]) {
  unroll<Tokens>([&](auto m) KERNEL_LAMBDA {
    const F32x16 a = splat(x[m * stride + k]);
    unroll<Tiles>([&](auto t) KERNEL_LAMBDA { acc[t][m] = fma(weight[t], a, acc[t][m]); });
  });
}

/// acc[t][m] = sum over k of w[16 rows of tile t][k] * x[m][k]; \p w: the first tile, the others
/// \p tileBytes apart; \p x: rows \p stride floats apart.
template <int Tiles, int Tokens>
KERNEL_INLINE void floatBlock(const Format &f, const uint8_t *w, int64_t tileBytes, const float *x,
                              int64_t stride, int64_t k, F32x16 (&acc)[Tiles][Tokens]) {
  unroll<Tiles>([&](auto t) KERNEL_LAMBDA {
    unroll<Tokens>([&](auto m) KERNEL_LAMBDA { acc[t][m] = splat(0.0f); });
  });
  F32x16 weight[Tiles];
  if (f.packing == kN16 && f.element != kBF16) {
    const int64_t step = 16 * elementBytes(f.element);
    for (int64_t i = 0; i < k; ++i) {
      unroll<Tiles>([&](auto t) KERNEL_LAMBDA {
        weight[t] = loadElements(w + t * tileBytes + i * step, f.element);
      });
      addElement(weight, x, stride, i, acc);
    }
    return;
  }
  if (f.packing == kN16) { // pairs of bf16: the even k in the low half of each lane
    for (int64_t i = 0; i < k; i += 2) {
      U32x16 pair[Tiles];
      unroll<Tiles>([&](auto t) KERNEL_LAMBDA {
        pair[t] = loadAs<U32x16>(w + t * tileBytes + i * 32);
        weight[t] = asFloat(pair[t] << 16);
      });
      addElement(weight, x, stride, i, acc);
      if (i + 1 == k)
        break;
      unroll<Tiles>([&](auto t) KERNEL_LAMBDA { weight[t] = asFloat(pair[t] & 0xffff0000u); });
      addElement(weight, x, stride, i + 1, acc);
    }
    return;
  }
  const int perUnit = f.isFourBit() ? 8 : 4;
  for (int64_t begin = 0; begin < k; begin += f.group, w += f.groupBytes()) {
    GroupScale s[Tiles];
    unroll<Tiles>([&](auto t) KERNEL_LAMBDA { s[t] = loadScale(f, w + t * tileBytes); });
    const int64_t end = smaller(begin + f.group, k);
    const uint8_t *unit = w;
    for (int64_t i = begin; i < end; i += perUnit, unit += 64) {
      U32x16 v[Tiles];
      unroll<Tiles>([&](auto t) KERNEL_LAMBDA { v[t] = loadAs<U32x16>(unit + t * tileBytes); });
      auto element = [&](auto j, auto high) KERNEL_LAMBDA {
        unroll<Tiles>([&](auto t) KERNEL_LAMBDA {
          weight[t] = fma(quantizedElement(f, v[t], j, high), s[t].scale, s[t].offset);
        });
        addElement(weight, x, stride, i + 4 * high + j, acc);
      };
      const bool isWhole = i + perUnit <= end;
      unroll<4>([&](auto j) KERNEL_LAMBDA {
        if (isWhole || i + j < end)
          element(j, Index<0>{});
      });
      if (f.isFourBit())
        unroll<4>([&](auto j) KERNEL_LAMBDA {
          if (isWhole || i + 4 + j < end)
            element(j, Index<1>{});
        });
    }
  }
}

} // namespace llmc::kernel

#endif // LLMC_CODEGEN_CPU_KERNELS_GEMMFLOAT_H
