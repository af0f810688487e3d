//===- Arithmetic.h - the float arithmetic of a calibration run -----------------===//
//
// Plain f32 versions of what a decoder computes, for the one short run that measures which inputs
// are large. Each sum has one fixed order, so that a plan's bytes don't depend on the machine.
// All matrices are row-major.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CALIBRATE_ARITHMETIC_H
#define LLMC_CALIBRATE_ARITHMETIC_H

#include <cstdint>

namespace llmc::calibrate {

/// y[m, begin + i] = dot(x[m], w[i]) for \p count rows of w: x is [rows, size], w is [count, size],
/// y has
/// \p stride values a row.
void multiply(const float *x, uint64_t rows, uint64_t size, const float *w, uint64_t count,
              float *y, uint64_t stride, uint64_t begin);

/// y = x / sqrt(mean(x^2) + eps) * (w + offset) in parts of \p size values.
void rmsNorm(const float *x, uint64_t parts, uint64_t size, const float *w, float eps, float offset,
             float *y);
/// y = (x - mean) / sqrt(variance + eps) * w + b; b may be null.
void layerNorm(const float *x, uint64_t rows, uint64_t size, const float *w, const float *b,
               float eps, float *y);

struct AttentionShape {
  uint64_t tokens, heads, kvHeads, keySize, valueSize;
  uint64_t window;               ///< keys that a query sees; 0: all before it
  float scale, softcap;          ///< softcap 0: none
  const float *slopes = nullptr; ///< of ALiBi, [heads]; null: none
  const float *sinks = nullptr;  ///< [heads]: scores without a value; null: none
};
/// Causal attention of one sequence from its start: q [tokens, heads * keySize], k and v likewise
/// with kvHeads, y [tokens, heads * valueSize].
void attention(const AttentionShape &shape, const float *q, const float *k, const float *v,
               float *y);

/// Rotates pairs of each head by angles [tokens, 2, half] (cosines, sines); the other values stay.
void rotate(const float *x, uint64_t tokens, uint64_t heads, uint64_t headSize, const float *angles,
            uint64_t half, bool interleaved, float *y);

enum class Activation { None, Silu, Gelu, GeluTanh, Relu, Sigmoid };
/// e^x with the same bits on every machine.
float exponential(float x);
float activate(Activation kind, float x);
/// cap * tanh(x / cap)
float softcap(float x, float cap);

} // namespace llmc::calibrate

#endif // LLMC_CALIBRATE_ARITHMETIC_H
