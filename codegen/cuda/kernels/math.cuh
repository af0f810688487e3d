//===- math.cuh - transcendental functions, as on the CPU ---------------------===//
//
// The polynomials of codegen/cpu/kernels/Math.h, operation for operation (-fmad=false), so that
// both targets agree to the bit. Only softmax uses the hardware's 2^x.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CUDA_MATH_CUH
#define LLMC_CUDA_MATH_CUH

#include "device.cuh"

/// The values of the plan's `activation`.
enum Activation { kNone = 0, kSilu = 1, kGelu = 2, kGeluTanh = 3, kRelu = 4, kSigmoid = 5 };

/// e^x within 2 ulp; 0 below -87.33, infinity above 88.72; NaN for NaN.
LLMC_FN float expAccurate(float x) {
  const float magic = 12582912.0f; // 1.5 * 2^23: rounds to an integer in the low bits
  const float shifted = fmaf(x, 1.44269504f, magic);
  float n = shifted - magic;
  unsigned exponent = __float_as_uint(shifted) - 0x4b400000u;
  if (n > 127.0f) {
    n = 127.0f;
    exponent = 127u;
  }
  float r = fmaf(n, -0.693359375f, x);
  r = fmaf(n, 2.12194440e-4f, r);
  float q = fmaf(1.39261835877e-3f, r, 8.36317905272e-3f);
  q = fmaf(q, r, 4.16665546172e-2f);
  q = fmaf(q, r, 1.66665769897e-1f);
  q = fmaf(q, r, 0.5f);
  float y = fmaf(q, r * r, r) + 1.0f;
  y = y * __uint_as_float((exponent + 127u) << 23);
  y = x < -87.33654f ? 0.0f : y;
  return x > 88.72283f ? __uint_as_float(0x7f800000u) : y;
}

LLMC_FN float silu(float x) { return x / (1.0f + expAccurate(-x)); }
LLMC_FN float sigmoid(float x) { return 1.0f / (1.0f + expAccurate(-x)); }

/// x Phi(x): the exact GELU.
LLMC_FN float gelu(float x) {
  const float a = fabsf(x);
  const float t = 1.0f / fmaf(a, 0.3f * 0.70710678f, 1.0f);
  float p = fmaf(-0.130069916809f, t, 0.487922048161f);
  p = fmaf(p, t, -0.516434119737f);
  p = fmaf(p, t, 0.551528766725f);
  p = fmaf(p, t, -0.0965347795369f);
  p = fmaf(p, t, 0.215368556972f);
  p = fmaf(p, t, 0.148328563199f);
  p = fmaf(p, t, 0.170701044727f);
  p = fmaf(p, t, 0.169189811422f);
  const float tail = 0.5f * (t * p) * expAccurate(-0.5f * (x * x));
  const float y = x * tail;
  return x < 0.0f ? y : x - y;
}

/// x (1 + tanh z) / 2, z = sqrt(2/pi) (x + 0.044715 x^3).
LLMC_FN float geluTanh(float x) {
  const float z = 0.79788456f * fmaf(0.044715f * x, x * x, x);
  return x / (1.0f + expAccurate(-2.0f * z));
}

/// tanh x within 2 ulp.
LLMC_FN float tanhAccurate(float x) {
  const float a = fabsf(x);
  const float u = x * x;
  float p = fmaf(-6.09671416591e-3f, u, 2.09972189991e-2f);
  p = fmaf(p, u, -5.38509095785e-2f);
  p = fmaf(p, u, 1.3332769737e-1f);
  p = fmaf(p, u, -3.33333289441e-1f);
  const float small = fmaf(p * u, x, x);
  const float t = expAccurate(-2.0f * a);
  const float large = 1.0f - (2.0f * t) / (1.0f + t);
  return a < 0.625f ? small
                    : __uint_as_float(__float_as_uint(large) | (__float_as_uint(x) & 0x80000000u));
}

template <int Kind> LLMC_FN float activate(float x) {
  if constexpr (Kind == kSilu)
    return silu(x);
  else if constexpr (Kind == kGelu)
    return gelu(x);
  else if constexpr (Kind == kGeluTanh)
    return geluTanh(x);
  else if constexpr (Kind == kRelu)
    return x < 0.0f ? 0.0f : x;
  else if constexpr (Kind == kSigmoid)
    return sigmoid(x);
  else
    return x;
}

struct SinCos {
  float sine, cosine;
};

/// Angles up to 2^20 in magnitude: reduction by multiples of pi/2 in double, Taylor series. No
/// table and no local memory, unlike the library's.
LLMC_FN SinCos sinCos(float angle) {
  const double x = static_cast<double>(angle);
  const double magic = 6755399441055744.0; // 1.5 * 2^52
  const double n = fma(x, 0.63661977236758134308, magic) - magic;
  double r = fma(n, -1.57079632679489655800, x);
  r = fma(n, -6.12323399573676603587e-17, r);
  const double u = r * r;
  double s = 1.0 / 6227020800;
  s = fma(s, u, -1.0 / 39916800);
  s = fma(s, u, 1.0 / 362880);
  s = fma(s, u, -1.0 / 5040);
  s = fma(s, u, 1.0 / 120);
  s = fma(s, u, -1.0 / 6);
  s = fma(s * u, r, r);
  double c = -1.0 / 87178291200;
  c = fma(c, u, 1.0 / 479001600);
  c = fma(c, u, -1.0 / 3628800);
  c = fma(c, u, 1.0 / 40320);
  c = fma(c, u, -1.0 / 720);
  c = fma(c, u, 1.0 / 24);
  c = fma(c, u, -0.5);
  c = fma(c, u, 1.0);
  const int quadrant = static_cast<int>(n);
  const double sine = quadrant & 1 ? c : s, cosine = quadrant & 1 ? s : c;
  return {static_cast<float>(quadrant & 2 ? -sine : sine),
          static_cast<float>((quadrant + 1) & 2 ? -cosine : cosine)};
}

#endif // LLMC_CUDA_MATH_CUH
