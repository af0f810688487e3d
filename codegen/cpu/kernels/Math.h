//===- Math.h - the one polynomial of every transcendental function ----------===//
//
// No function here uses a branch or a library: the same bits at every level, and no undefined
// symbol in a plan's code. Polynomials are Chebyshev fits of our own; their errors are stated.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CODEGEN_CPU_KERNELS_MATH_H
#define LLMC_CODEGEN_CPU_KERNELS_MATH_H

#include "codegen/cpu/kernels/Format.h"

namespace llmc::kernel {

/// e^x within 2 ulp; exactly 1 at 0; 0 below -87.33 (where results would be denormal), infinity
/// above 88.72; NaN for NaN. \p NonPositive promises x <= 0 or NaN: the same bits with less work.
template <bool NonPositive = false> KERNEL_INLINE F32x16 exp(F32x16 x) {
  // Adding 1.5 * 2^23 rounds to an integer in the low bits, without a conversion that would be
  // undefined for NaN.
  const float magic = 12582912.0f;
  F32x16 shifted = fma(x, splat(1.44269504f), splat(magic));
  F32x16 n = shifted - magic;
  U32x16 exponent = asBits(shifted) - 0x4b400000u;
  if constexpr (!NonPositive) {
    // Above 127 the factor 2^n would not be a float: the polynomial takes up to ln 2 more instead.
    auto tooLarge = n > splat(127.0f);
    n = tooLarge ? splat(127.0f) : n;
    exponent = tooLarge ? (U32x16)(127) : exponent;
  }
  F32x16 r = fma(n, splat(-0.693359375f), x);
  r = fma(n, splat(2.12194440e-4f), r);
  // e^r = 1 + r + r^2 q(r), |r| <= ln(2)/2: q within 6.5e-8.
  F32x16 q = fma(splat(1.39261835877e-3f), r, splat(8.36317905272e-3f));
  q = fma(q, r, splat(4.16665546172e-2f));
  q = fma(q, r, splat(1.66665769897e-1f));
  q = fma(q, r, splat(0.5f));
  F32x16 y = fma(q, r * r, r) + 1.0f;
  y = y * asFloat((exponent + 127u) << 23);
  y = x < splat(-87.33654f) ? splat(0.0f) : y;
  if constexpr (!NonPositive)
    y = x > splat(88.72283f) ? splat(__builtin_inff()) : y;
  return y;
}

/// tanh x within 2 ulp.
KERNEL_INLINE F32x16 tanh(F32x16 x) {
  F32x16 a = magnitude(x);
  // |x| < 0.625: x + x^3 p(x^2), p within 4.4e-8.
  F32x16 u = x * x;
  F32x16 p = fma(splat(-6.09671416591e-3f), u, splat(2.09972189991e-2f));
  p = fma(p, u, splat(-5.38509095785e-2f));
  p = fma(p, u, splat(1.3332769737e-1f));
  p = fma(p, u, splat(-3.33333289441e-1f));
  F32x16 small = fma(p * u, x, x);
  F32x16 t = exp<true>(-2.0f * a);
  F32x16 large = 1.0f - (2.0f * t) / (1.0f + t);
  U32x16 sign = asBits(x) & 0x80000000u;
  return a < splat(0.625f) ? small : asFloat(asBits(large) | sign);
}

/// x / (1 + e^-x)
KERNEL_INLINE F32x16 silu(F32x16 x) { return x / (1.0f + exp(-x)); }

/// x Phi(x), the exact GELU: with z = |x|/sqrt 2, half of erfc(z) = t P(t) e^(-z^2) / 2,
/// t = 1 / (1 + 0.3 z), P within 2.5e-8; negative x keep their relative precision.
KERNEL_INLINE F32x16 gelu(F32x16 x) {
  F32x16 a = magnitude(x);
  F32x16 t = 1.0f / fma(a, splat(0.3f * 0.70710678f), splat(1.0f));
  F32x16 p = fma(splat(-0.130069916809f), t, splat(0.487922048161f));
  p = fma(p, t, splat(-0.516434119737f));
  p = fma(p, t, splat(0.551528766725f));
  p = fma(p, t, splat(-0.0965347795369f));
  p = fma(p, t, splat(0.215368556972f));
  p = fma(p, t, splat(0.148328563199f));
  p = fma(p, t, splat(0.170701044727f));
  p = fma(p, t, splat(0.169189811422f));
  F32x16 tail = 0.5f * (t * p) * exp<true>(-0.5f * (x * x));
  F32x16 y = x * tail;
  return x < splat(0.0f) ? y : x - y;
}

/// The tanh form: x (1 + tanh z) / 2 with z = sqrt(2/pi) (x + 0.044715 x^3), which is
/// x / (1 + e^(-2 z)): negative x keep their relative precision.
KERNEL_INLINE F32x16 geluTanh(F32x16 x) {
  F32x16 z = 0.79788456f * fma(0.044715f * x, x * x, x);
  return x / (1.0f + exp(-2.0f * z));
}

/// \p activation is a constant after inlining: one of Activation.
KERNEL_INLINE F32x16 activate(F32x16 x, int64_t activation) {
  if (activation == kSilu)
    return silu(x);
  if (activation == kGelu)
    return gelu(x);
  if (activation == kGeluTanh)
    return geluTanh(x);
  if (activation == kRelu)
    return x < splat(0.0f) ? splat(0.0f) : x;
  if (activation == kActivationSigmoid)
    return 1.0f / (1.0f + exp(-x));
  return x;
}

KERNEL_INLINE F64x16 fma(F64x16 a, F64x16 b, F64x16 c) {
  return __builtin_elementwise_fma(a, b, c);
}

/// sin and cos of f32 angles up to 2^20 in magnitude, within 0.501 ulp of f32: Cody-Waite
/// reduction by multiples of pi/2 in double (n needs 20 bits; pi/2 is held in 106), Taylor series
/// on [-pi/4, pi/4] (first term left out: 4e-15 and 2e-14).
KERNEL_INLINE void sinCos(F32x16 angle, F32x16 &sine, F32x16 &cosine) {
  F64x16 x = __builtin_convertvector(angle, F64x16);
  const double magic = 6755399441055744.0; // 1.5 * 2^52
  F64x16 shifted = fma(x, (F64x16)(0.63661977236758134308), (F64x16)(magic));
  F64x16 n = shifted - magic;
  F64x16 r = fma(n, (F64x16)(-1.57079632679489655800), x);
  r = fma(n, (F64x16)(-6.12323399573676603587e-17), r);
  F64x16 u = r * r;
  F64x16 s = (F64x16)(1.0 / 6227020800);
  s = fma(s, u, (F64x16)(-1.0 / 39916800));
  s = fma(s, u, (F64x16)(1.0 / 362880));
  s = fma(s, u, (F64x16)(-1.0 / 5040));
  s = fma(s, u, (F64x16)(1.0 / 120));
  s = fma(s, u, (F64x16)(-1.0 / 6));
  s = fma(s * u, r, r);
  F64x16 c = (F64x16)(-1.0 / 87178291200);
  c = fma(c, u, (F64x16)(1.0 / 479001600));
  c = fma(c, u, (F64x16)(-1.0 / 3628800));
  c = fma(c, u, (F64x16)(1.0 / 40320));
  c = fma(c, u, (F64x16)(-1.0 / 720));
  c = fma(c, u, (F64x16)(1.0 / 24));
  c = fma(c, u, (F64x16)(-0.5));
  c = fma(c, u, (F64x16)(1.0));
  I64x16 quadrant = (I64x16)shifted; // the low bits hold n
  auto odd = (quadrant & 1) != 0;
  F64x16 sinValue = odd ? c : s, cosValue = odd ? s : c;
  sinValue = (quadrant & 2) != 0 ? -sinValue : sinValue;
  cosValue = ((quadrant + 1) & 2) != 0 ? -cosValue : cosValue;
  sine = __builtin_convertvector(sinValue, F32x16);
  cosine = __builtin_convertvector(cosValue, F32x16);
}

} // namespace llmc::kernel

#endif // LLMC_CODEGEN_CPU_KERNELS_MATH_H
