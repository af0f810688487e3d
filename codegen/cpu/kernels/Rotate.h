//===- Rotate.h - rotary positions of one head ---------------------------------===//
#ifndef LLMC_CODEGEN_CPU_KERNELS_ROTATE_H
#define LLMC_CODEGEN_CPU_KERNELS_ROTATE_H

#include "codegen/cpu/kernels/Vector.h"

namespace llmc::kernel {

/// Rotates one head from \p x into \p y (both of headSize, y not x): pairs (i, i + half), or
/// (2i, 2i+1) where interleaved; values from 2 half on are copied.
KERNEL_INLINE void rotate(const float *x, float *y, const float *angles, int64_t headSize,
                          int64_t half, int64_t interleaved) {
  const float *cosines = angles, *sines = angles + half;
  if (interleaved) {
    for (int64_t i = 0; i < half; ++i) {
      float a = x[2 * i], b = x[2 * i + 1];
      y[2 * i] = fma(-b, sines[i], a * cosines[i]);
      y[2 * i + 1] = fma(a, sines[i], b * cosines[i]);
    }
  } else {
    for (int64_t i = 0; i < half; i += kLanes) {
      const int64_t n = half - i;
      F32x16 a = loadPart(x + i, n), b = loadPart(x + half + i, n);
      F32x16 c = loadPart(cosines + i, n), s = loadPart(sines + i, n);
      storePart(y + i, fma(-b, s, a * c), n);
      storePart(y + half + i, fma(a, s, b * c), n);
    }
  }
  for (int64_t i = 2 * half; i < headSize; i += kLanes)
    storePart(y + i, loadPart(x + i, headSize - i), headSize - i);
}

} // namespace llmc::kernel

#endif // LLMC_CODEGEN_CPU_KERNELS_ROTATE_H
