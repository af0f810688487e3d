//===- Rope.cpp - rotary positions, and writing keys and values ---------------===//
#include "codegen/cpu/kernels/Kernel.h"
#include "codegen/cpu/kernels/Quantize.h"
#include "codegen/cpu/kernels/Rotate.h"

using namespace llmc::kernel;

LLMC_KERNEL(rope_angles, int64_t half, float scale) {
  const float *frequency = binding<float>(bindings, 0);
  float *y = binding<float>(bindings, 1);
  for (int64_t t = taskBegin; t < taskEnd; ++t) {
    const float position = static_cast<float>(step->positions[t]);
    float *cosines = y + t * 2 * half, *sines = cosines + half;
    for (int64_t i = 0; i < half; i += kLanes) {
      F32x16 s, c;
      sinCos(loadPart(frequency + i, half - i) * position, s, c);
      storePart(cosines + i, c * scale, half - i);
      storePart(sines + i, s * scale, half - i);
    }
  }
}

/// Tables as ONNX files carry them; a position beyond the table takes its last row (the engine
/// refuses such positions: max_context is at most `positions`).
LLMC_KERNEL(rope_gather, int64_t half, int64_t positions) {
  const float *cosines = binding<float>(bindings, 0);
  const float *sines = binding<float>(bindings, 1);
  float *y = binding<float>(bindings, 2);
  for (int64_t t = taskBegin; t < taskEnd; ++t) {
    const int64_t p = smaller(step->positions[t], positions - 1);
    for (int64_t i = 0; i < half; i += kLanes) {
      storePart(y + t * 2 * half + i, loadPart(cosines + p * half + i, half - i), half - i);
      storePart(y + t * 2 * half + half + i, loadPart(sines + p * half + i, half - i), half - i);
    }
  }
}

LLMC_KERNEL(rope_select, int64_t half) {
  for (int64_t t = taskBegin; t < taskEnd; ++t) {
    const float *x = binding<float>(bindings, step->longContext[t] ? 1 : 0) + t * 2 * half;
    float *y = binding<float>(bindings, 2) + t * 2 * half;
    for (int64_t i = 0; i < 2 * half; i += kLanes)
      storePart(y + i, loadPart(x + i, 2 * half - i), 2 * half - i);
  }
}

/// RMS norm of one head, from \p x into \p y.
KERNEL_INLINE void normHead(const float *x, const float *w, float *y, int64_t d, float eps,
                            int64_t plusOne) {
  F32x16 sum = splat(0.0f);
  for (int64_t i = 0; i < d; i += kLanes) {
    F32x16 v = loadPart(x + i, d - i);
    sum = fma(v, v, sum);
  }
  const float factor =
      1.0f / __builtin_elementwise_sqrt(sumLanes(sum) / static_cast<float>(d) + eps);
  for (int64_t i = 0; i < d; i += kLanes) {
    F32x16 weight = loadPart(w + i, d - i);
    if (plusOne)
      weight = weight + 1.0f;
    storePart(y + i, loadPart(x + i, d - i) * factor * weight, d - i);
  }
}

/// What a token's heads go through before they are used: norm (where there is one) and rotation.
struct HeadTransform {
  int64_t size, half, interleaved, hasNorm, plusOne;
  float eps;
  float *normed; ///< scratch of one head

  KERNEL_LAMBDA void apply(const float *x, const float *w, const float *angles, float *y) const {
    if (hasNorm) {
      normHead(x, w, normed, size, eps, plusOne);
      x = normed;
    }
    rotate(x, y, angles, size, half, interleaved);
  }
};

/// One head's key or value of a token as int8 with one scale (the rule of Quantize.h), in
/// \p quantized: [size, padded to 8], then the scale.
KERNEL_INLINE float quantizeHead(const float *x, int64_t size, uint8_t *quantized) {
  const int64_t padded = roundUp(size, 8);
  quantizeRow(quantized, size, padded,
              [&](int64_t i, int64_t n) KERNEL_LAMBDA { return loadPart(x + i, n); });
  return loadAs<float>(quantized + padded);
}

/// Writes one token's \p key into its place \p at of a run.
KERNEL_INLINE void storeKey(uint8_t *run, int64_t at, const float *key, int64_t size,
                            int64_t element, uint8_t *quantized) {
  const int64_t bytes = elementBytes(element);
  if (element == kI8) {
    storeAs(run + kRunTokens * size + 4 * at, quantizeHead(key, size, quantized));
    for (int64_t i = 0; i < size; ++i)
      run[i * kRunTokens + at] = quantized[i];
    return;
  }
  for (int64_t i = 0; i < size; ++i)
    storeElement(run + (i * kRunTokens + at) * bytes, element, key[i]);
}
KERNEL_INLINE void storeValue(uint8_t *run, int64_t at, const float *value, int64_t size,
                              int64_t element, uint8_t *quantized) {
  const int64_t bytes = elementBytes(element);
  uint8_t *values = run + at * size * bytes;
  if (element == kI8) {
    storeAs(run + kRunTokens * size + 4 * at, quantizeHead(value, size, quantized));
    for (int64_t i = 0; i < size; ++i)
      values[i] = quantized[i];
    return;
  }
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes)
    storeElements(values + i * bytes, element, load(value + i));
  for (; i < size; ++i)
    storeElement(values + i * bytes, element, value[i]);
}

LLMC_KERNEL(rope_append, int64_t heads, int64_t kvHeads, int64_t headSize, int64_t valueSize,
            int64_t rotary, int64_t interleaved, int64_t kvElement, int64_t split, int64_t qNorm,
            float eps, int64_t plusOne) {
  const int64_t half = rotary / 2;
  const int64_t qWidth = heads * headSize, kWidth = kvHeads * headSize,
                vWidth = kvHeads * valueSize;
  const float *q = binding<float>(bindings, 0), *k = q + qWidth, *v = k + kWidth;
  int64_t qStride = qWidth + kWidth + vWidth, kStride = qStride, vStride = qStride;
  int next = 1;
  if (split) {
    k = binding<float>(bindings, 1), v = binding<float>(bindings, 2);
    qStride = qWidth, kStride = kWidth, vStride = vWidth;
    next = 3;
  }
  const float *angles = half ? binding<float>(bindings, next++) : nullptr;
  const float *qWeight = qNorm ? binding<float>(bindings, next) : nullptr;
  const float *kWeight = qNorm ? binding<float>(bindings, next + 1) : nullptr;
  float *out = binding<float>(bindings, next + (qNorm ? 2 : 0));
  float *normed = static_cast<float *>(scratch), *key = normed + roundUp(headSize, kLanes);
  uint8_t *quantized = reinterpret_cast<uint8_t *>(key + roundUp(headSize, kLanes));
  const HeadTransform transform = {headSize, half, interleaved, qNorm, plusOne, eps, normed};
  for (int64_t t = taskBegin; t < taskEnd; ++t) {
    const float *angle = angles + t * 2 * half;
    for (int64_t h = 0; h < heads; ++h)
      transform.apply(q + t * qStride + h * headSize, qWeight, angle,
                      out + (t * heads + h) * headSize);
    const int64_t slot = step->slots[t];
    const int64_t block = slot / step->blockTokens, offset = slot % step->blockTokens;
    for (int64_t g = 0; g < kvHeads; ++g) {
      KvBlock kv = kvBlock(step, block, scalars[0], g, headSize, valueSize, kvElement);
      transform.apply(k + t * kStride + g * headSize, kWeight, angle, key);
      storeKey(kv.keys + offset / kRunTokens * kvRunBytes(headSize, kvElement), offset % kRunTokens,
               key, headSize, kvElement, quantized);
      storeValue(kv.values + offset / kRunTokens * kvRunBytes(valueSize, kvElement),
                 offset % kRunTokens, v + t * vStride + g * valueSize, valueSize, kvElement,
                 quantized);
    }
  }
}
