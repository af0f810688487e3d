//===- Embed.cpp - rows of a table ---------------------------------------------===//
#include "codegen/cpu/kernels/FourBit.h"
#include "codegen/cpu/kernels/Kernel.h"

using namespace llmc::kernel;

/// One row of a weight in any packing, times \p scale. Strided reads: a token's row is small.
KERNEL_INLINE void readRow(const Format &f, const uint8_t *w, int64_t row, int64_t d, float scale,
                           float *y) {
  if (f.packing == kRows) {
    const uint8_t *at = w + row * d * elementBytes(f.element);
    for (int64_t i = 0; i < d; i += kLanes)
      storePart(y + i, loadElementsPart(at + i * elementBytes(f.element), f.element, d - i) * scale,
                d - i);
    return;
  }
  const uint8_t *tile = w + row / 16 * f.tileBytes(d);
  const int64_t r = row % 16;
  if (f.packing == kN16) {
    for (int64_t i = 0; i < d; ++i) {
      int64_t at = f.element == kBF16 ? i / 2 * 32 + r * 2 + i % 2 : i * 16 + r;
      y[i] = loadElement(tile + at * elementBytes(f.element), f.element) * scale;
    }
    return;
  }
  for (int64_t begin = 0; begin < d; begin += f.group, tile += f.groupBytes()) {
    const uint8_t *scales = tile + f.valueBytes();
    const float s = loadScaleOf(f, tile, r);
    float offset = f.element == kI4 ? -8.0f * s : 0.0f;
    if (f.hasMin)
      offset = loadElement(scales + 16 * elementBytes(f.scale) + r * elementBytes(f.min), f.min);
    const int64_t count = smaller(f.group, d - begin);
    for (int64_t i = 0; i < count; ++i) {
      int32_t q;
      const int nibble = tile[i / 8 * 64 + 4 * r + i % 4] >> (i / 4 % 2 * 4) & 15;
      if (f.element == kI4)
        q = nibble;
      else if (f.element == kE2M1)
        q = kShiftedE2m1[nibble] - 12;
      else
        q = static_cast<int8_t>(tile[i / 4 * 64 + 4 * r + i % 4]);
      y[begin + i] = fma(static_cast<float>(q), s, offset) * scale;
    }
  }
}

/// The row of each token's id, or, with a table of \p positions rows, of its position (one beyond
/// the table takes the last row: the engine refuses such positions, since max_context is at most
/// that).
LLMC_KERNEL(embed, int64_t d, int64_t wElement, int64_t wPacking, int64_t wGroup, int64_t wScale,
            int64_t wHasMin, int64_t wMin, float scale, int64_t positions) {
  const Format f = {wElement, wPacking, wGroup, wScale, wHasMin, wMin};
  const uint8_t *w = binding<uint8_t>(bindings, 0);
  float *y = binding<float>(bindings, 1);
  for (int64_t t = taskBegin; t < taskEnd; ++t) {
    const int64_t row =
        positions ? smaller(step->positions[t], positions - 1) : int64_t(step->tokens[t]);
    readRow(f, w, row, d, scale, y + t * d);
  }
}

LLMC_KERNEL(gather_rows, int64_t d) {
  const float *x = binding<float>(bindings, 0);
  float *y = binding<float>(bindings, 1);
  for (int64_t r = taskBegin; r < taskEnd; ++r) {
    const float *from = x + step->logitRows[r] * d;
    for (int64_t i = 0; i < d; i += kLanes)
      storePart(y + r * d + i, loadPart(from + i, d - i), d - i);
  }
}
