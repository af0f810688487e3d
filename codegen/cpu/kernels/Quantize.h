//===- Quantize.h - activation rows to int8 ----------------------------------===//
#ifndef LLMC_CODEGEN_CPU_KERNELS_QUANTIZE_H
#define LLMC_CODEGEN_CPU_KERNELS_QUANTIZE_H

#include "codegen/cpu/kernels/Format.h"
#include "runtime/device/cpu/KernelAbi.h"

namespace llmc::kernel {

/// Writes one int8 row (LLMRT_Q8_ROW_BYTES) of \p k values in groups of \p group (a multiple of 8).
/// \p values(i, n) gives the 16 lanes from i on, zeros from lane n.
///
/// scale = amax / 127, q = nearest even of x / scale, at most 127 in magnitude; a group of zeros
/// has scale 0. A group with a NaN or an infinity gets a NaN scale: the row's results become NaN,
/// no other row's do.
template <typename Values>
KERNEL_INLINE void quantizeRow(uint8_t *row, int64_t k, int64_t group, Values values) {
  const int64_t padded = roundUp(k, group);
  const int64_t groups = padded / group;
  float *scales = reinterpret_cast<float *>(row + padded);
  int32_t *sums = reinterpret_cast<int32_t *>(row + padded + 4 * groups);
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t begin = g * group, end = smaller(begin + group, k);
    F32x16 largest = splat(0.0f);
    I32x16 strange = splatInt(0);
    for (int64_t i = begin; i < end; i += kLanes) {
      F32x16 x = magnitude(values(i, end - i));
      largest = larger(x, largest);
      strange |= !(x <= splat(3.40282347e38f));
    }
    const float amax = largestLane(largest);
    const bool isStrange = __builtin_reduce_or(strange) != 0;
    const float scale = isStrange ? __builtin_nanf("") : amax / 127.0f;
    const bool isZero = !(scale > 0.0f); // also where amax / 127 was flushed to zero
    const float divisor = isZero ? 1.0f : scale;
    I32x16 sum = splatInt(0);
    for (int64_t i = begin; i < begin + group; i += kLanes) {
      F32x16 x = i < end ? values(i, end - i) : splat(0.0f);
      F32x16 q = __builtin_elementwise_roundeven(x / divisor);
      q = q > splat(127.0f) ? splat(127.0f) : q;
      q = q < splat(-127.0f) ? splat(-127.0f) : q;
      q = isZero ? splat(0.0f) : q;
      I32x16 integers = __builtin_convertvector(q, I32x16);
      sum += integers;
      I8x16 bytes = __builtin_convertvector(integers, I8x16);
      if (begin + group - i >= kLanes)
        storeAs(row + i, bytes);
      else
        for (int64_t j = 0; j < begin + group - i; ++j)
          row[i + j] = static_cast<uint8_t>(bytes[j]);
    }
    storeAs(scales + g, scale);
    storeAs(sums + g, static_cast<int32_t>(__builtin_reduce_add(sum)));
  }
}

} // namespace llmc::kernel

#endif // LLMC_CODEGEN_CPU_KERNELS_QUANTIZE_H
