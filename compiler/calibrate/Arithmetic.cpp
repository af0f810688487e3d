#include "compiler/calibrate/Arithmetic.h"

#include "runtime/decode/Math.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace llmc::calibrate {
namespace {

// The C library's functions differ in their last bits from one version to the next, and what is
// measured here ends in the plan, whose bytes must not: exp is the runtime's, and the others are
// made of it.
float exp(float x) { return static_cast<float>(llmrt::fixedExp(x)); }
float tanh(float x) {
  const double t = llmrt::fixedExp(-2.0 * std::fabs(x));
  return std::copysign(static_cast<float>((1 - t) / (1 + t)), x);
}
/// x Phi(x): erfc(z) = t P(t) e^(-z^2), t = 1 / (1 + 0.3 z), as the kernels have it
/// (within 2.5e-8).
float gelu(float x) {
  const double a = std::fabs(x), t = 1 / (1 + 0.3 * M_SQRT1_2 * a);
  double p = -0.130069916809;
  for (double c : {0.487922048161, -0.516434119737, 0.551528766725, -0.0965347795369,
                   0.215368556972, 0.148328563199, 0.170701044727, 0.169189811422})
    p = p * t + c;
  const double tail = 0.5 * t * p * llmrt::fixedExp(-0.5 * a * a);
  return static_cast<float>(x * (x < 0 ? tail : 1 - tail));
}

using Lanes = float __attribute__((ext_vector_type(8)));

/// Dot products of 2 rows of x with 4 rows of w. The vectors live in this function alone, since
/// their calling convention depends on the CPU's level; the sums don't: lane i adds elements i, i +
/// 8, ...
__attribute__((always_inline)) inline void dots2x4(const float *const *x, const float *const *w,
                                                   uint64_t size, float (*sums)[4]) {
  Lanes acc[2][4] = {};
  uint64_t k = 0;
  for (; k + 8 <= size; k += 8) {
    Lanes a[2], b;
    for (int i = 0; i != 2; ++i)
      std::memcpy(&a[i], x[i] + k, sizeof(Lanes));
    for (int j = 0; j != 4; ++j) {
      std::memcpy(&b, w[j] + k, sizeof(Lanes));
      for (int i = 0; i != 2; ++i)
        acc[i][j] += a[i] * b;
    }
  }
  for (int i = 0; i != 2; ++i)
    for (int j = 0; j != 4; ++j) {
      const Lanes v = acc[i][j];
      float sum = ((v[0] + v[4]) + (v[1] + v[5])) + ((v[2] + v[6]) + (v[3] + v[7]));
      for (uint64_t rest = k; rest != size; ++rest)
        sum += x[i][rest] * w[j][rest];
      sums[i][j] = sum;
    }
}

} // namespace

#if defined(__x86_64__)
__attribute__((target_clones("avx2", "default")))
#endif
void multiply(const float *x, uint64_t rows, uint64_t size, const float *w, uint64_t count,
              float *y, uint64_t stride, uint64_t begin) {
  for (uint64_t n = 0; n < count; n += 4) {
    const float *wRows[4];
    for (uint64_t j = 0; j != 4; ++j) // the last rows again where there are fewer than 4
      wRows[j] = w + std::min(n + j, count - 1) * size;
    for (uint64_t m = 0; m < rows; m += 2) {
      const float *xRows[2] = {x + m * size, x + std::min(m + 1, rows - 1) * size};
      float sums[2][4];
      dots2x4(xRows, wRows, size, sums);
      for (uint64_t i = 0; i != 2 && m + i != rows; ++i)
        for (uint64_t j = 0; j != 4 && n + j != count; ++j)
          y[(m + i) * stride + begin + n + j] = sums[i][j];
    }
  }
}

void rmsNorm(const float *x, uint64_t parts, uint64_t size, const float *w, float eps, float offset,
             float *y) {
  for (uint64_t part = 0; part != parts; ++part, x += size, y += size) {
    double sum = 0;
    for (uint64_t i = 0; i != size; ++i)
      sum += double(x[i]) * x[i];
    const float factor = 1.0f / std::sqrt(float(sum / double(size)) + eps);
    for (uint64_t i = 0; i != size; ++i)
      y[i] = x[i] * factor * (w[i] + offset);
  }
}

void layerNorm(const float *x, uint64_t rows, uint64_t size, const float *w, const float *b,
               float eps, float *y) {
  for (uint64_t row = 0; row != rows; ++row, x += size, y += size) {
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i != size; ++i)
      sum += x[i];
    const double mean = sum / double(size);
    for (uint64_t i = 0; i != size; ++i)
      squares += (x[i] - mean) * (x[i] - mean);
    const float factor = 1.0f / std::sqrt(float(squares / double(size)) + eps);
    for (uint64_t i = 0; i != size; ++i)
      y[i] = (x[i] - float(mean)) * factor * w[i] + (b ? b[i] : 0.0f);
  }
}

void attention(const AttentionShape &s, const float *q, const float *k, const float *v, float *y) {
  const uint64_t group = s.heads / s.kvHeads;
  std::vector<float> scores(s.tokens);
  for (uint64_t t = 0; t != s.tokens; ++t)
    for (uint64_t h = 0; h != s.heads; ++h) {
      const uint64_t kv = h / group;
      const uint64_t first = s.window && t + 1 > s.window ? t + 1 - s.window : 0;
      const float *query = q + (t * s.heads + h) * s.keySize;
      float largest = s.sinks ? s.sinks[h] : -INFINITY;
      for (uint64_t j = first; j <= t; ++j) {
        const float *key = k + (j * s.kvHeads + kv) * s.keySize;
        float sum = 0;
        for (uint64_t i = 0; i != s.keySize; ++i)
          sum += query[i] * key[i];
        sum *= s.scale;
        if (s.softcap > 0)
          sum = softcap(sum, s.softcap);
        if (s.slopes) // zero or negative: a key at the query's position or before it
          sum -= s.slopes[h] * static_cast<float>(t - j);
        scores[j] = sum;
        largest = std::max(largest, sum);
      }
      float total = s.sinks ? exp(s.sinks[h] - largest) : 0;
      for (uint64_t j = first; j <= t; ++j)
        total += scores[j] = exp(scores[j] - largest);
      float *out = y + (t * s.heads + h) * s.valueSize;
      std::fill_n(out, s.valueSize, 0.0f);
      for (uint64_t j = first; j <= t; ++j) {
        const float part = scores[j] / total;
        const float *value = v + (j * s.kvHeads + kv) * s.valueSize;
        for (uint64_t i = 0; i != s.valueSize; ++i)
          out[i] += part * value[i];
      }
    }
}

void rotate(const float *x, uint64_t tokens, uint64_t heads, uint64_t headSize, const float *angles,
            uint64_t half, bool interleaved, float *y) {
  std::copy_n(x, tokens * heads * headSize, y);
  for (uint64_t t = 0; t != tokens; ++t)
    for (uint64_t h = 0; h != heads; ++h) {
      const uint64_t at = (t * heads + h) * headSize;
      for (uint64_t i = 0; i != half; ++i) {
        const uint64_t a = at + (interleaved ? 2 * i : i), b = interleaved ? a + 1 : a + half;
        const float c = angles[2 * t * half + i], s = angles[(2 * t + 1) * half + i];
        y[a] = x[a] * c - x[b] * s;
        y[b] = x[b] * c + x[a] * s;
      }
    }
}

float activate(Activation kind, float x) {
  switch (kind) {
  case Activation::None:
    return x;
  case Activation::Silu:
    return x / (1 + exp(-x));
  case Activation::Gelu:
    return gelu(x);
  case Activation::GeluTanh:
    return 0.5f * x * (1 + tanh(0.79788456f * (x + 0.044715f * x * x * x)));
  case Activation::Relu:
    return std::max(x, 0.0f);
  case Activation::Sigmoid:
    return 1 / (1 + exp(-x));
  }
  return x;
}

float exponential(float x) { return exp(x); }

float softcap(float x, float cap) { return cap * tanh(x / cap); }

} // namespace llmc::calibrate
