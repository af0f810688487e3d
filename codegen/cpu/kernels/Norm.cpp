//===- Norm.cpp - RMS and layer normalisation, quantization of rows ------------===//
#include "codegen/cpu/kernels/Kernel.h"
#include "codegen/cpu/kernels/Quantize.h"

using namespace llmc::kernel;

/// Sums over a row of \p d values: 16 lanes, ascending, then sumLanes; lanes beyond d add 0.
template <typename Term> KERNEL_INLINE float sumRow(const float *x, int64_t d, Term term) {
  F32x16 sum = splat(0.0f);
  int64_t i = 0;
  for (; i + kLanes <= d; i += kLanes)
    sum = term(load(x + i), sum);
  if (i < d) {
    F32x16 added = term(loadPart(x + i, d - i), sum);
    sum = laneIndex() < splatInt(static_cast<int32_t>(d - i)) ? added : sum;
  }
  return sumLanes(sum);
}

LLMC_KERNEL(norm, int64_t d, int64_t rows, int64_t norm, float eps, int64_t plusOne, int64_t bias,
            int64_t out, int64_t group) {
  const float *x = binding<float>(bindings, 0);
  const float *w = binding<float>(bindings, 1);
  const float *b = bias ? binding<float>(bindings, 2) : nullptr;
  uint8_t *y = binding<uint8_t>(bindings, bias ? 3 : 2);
  for (int64_t row = taskBegin; row < taskEnd; ++row) {
    const float *xr = x + row * d;
    float mean = 0.0f;
    if (norm == 1)
      mean = sumRow(xr, d, [](F32x16 v, F32x16 s) KERNEL_LAMBDA { return s + v; }) /
             static_cast<float>(d);
    float square = sumRow(xr, d, [&](F32x16 v, F32x16 s) KERNEL_LAMBDA {
      F32x16 centred = norm == 1 ? v - mean : v;
      return fma(centred, centred, s);
    });
    const float factor = 1.0f / __builtin_elementwise_sqrt(square / static_cast<float>(d) + eps);
    auto value = [&](int64_t i, int64_t count) KERNEL_LAMBDA {
      F32x16 v = loadPart(xr + i, count), weight = loadPart(w + i, count);
      if (plusOne)
        weight = weight + 1.0f;
      F32x16 r = (norm == 1 ? v - mean : v) * factor * weight;
      if (bias)
        r = r + loadPart(b + i, count);
      if (count < kLanes)
        r = laneIndex() < splatInt(static_cast<int32_t>(count)) ? r : splat(0.0f);
      return r;
    };
    if (out == 1) {
      quantizeRow(y + row * LLMRT_Q8_ROW_BYTES(roundUp(d, group), group), d, group, value);
    } else {
      float *yr = reinterpret_cast<float *>(y) + row * d;
      for (int64_t i = 0; i < d; i += kLanes)
        storePart(yr + i, value(i, d - i), d - i);
    }
  }
}

/// A task is a row of k values; a token (or logit row) has `slots` of them.
LLMC_KERNEL(quantize, int64_t k, int64_t group, int64_t rows, int64_t slots) {
  const float *x = binding<float>(bindings, 0);
  uint8_t *y = binding<uint8_t>(bindings, 1);
  for (int64_t row = taskBegin; row < taskEnd; ++row)
    quantizeRow(y + row * LLMRT_Q8_ROW_BYTES(roundUp(k, group), group), k, group,
                [&](int64_t i, int64_t count)
                    KERNEL_LAMBDA { return loadPart(x + row * k + i, count); });
}
