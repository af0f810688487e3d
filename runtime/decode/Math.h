//===- Math.h - exp and log with the same bits everywhere -------------------===//
//
// Sampling compares numbers that come out of exp and log, so the C library's versions, whose last
// bits differ from one to the next, would make a seed mean another text on another machine. These
// use only additions, multiplications and divisions in a fixed order (-ffp-contract=off).
// Errors stay below 2 units in the last place, measured against long double in the tests.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_DECODE_MATH_H
#define LLMRT_DECODE_MATH_H

#include <bit>
#include <cstdint>
#include <limits>

namespace llmrt {

inline constexpr double ln2 = 0x1.62e42fefa39efp-1;

/// e^x; 0 below about -708 (a denormal result is taken as 0), infinity above about 709.78.
inline double fixedExp(double x) {
  // x = k ln2 + r with |r| <= ln2 / 2; ln2 in two parts, the first with trailing zeros, so that
  // k * high is exact.
  constexpr double log2e = 0x1.71547652b82fep+0;
  constexpr double high = 0x1.62e42fee00000p-1, low = 0x1.a39ef35793c76p-33;
  constexpr double magic = 0x1.8p52; // adding it leaves the rounded integer in the low bits
  double clamped = x < -708.0 ? -708.0 : (x > 710.0 ? 710.0 : x);
  double shifted = clamped * log2e + magic;
  double k = shifted - magic;
  double r = (clamped - k * high) - k * low;
  // Taylor series; the first term left out is r^14/14! < 5e-18.
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = (p * r) * r + r;
  p = p + 1.0;
  // The low bits of `shifted` hold k: moved to the exponent's place they multiply by 2^k. Only
  // shifts and additions, so that a loop over this becomes vector code.
  double result =
      std::bit_cast<double>(std::bit_cast<uint64_t>(p) + (std::bit_cast<uint64_t>(shifted) << 52));
  result = x < -708.0 ? 0.0 : result;
  return x > 0x1.62e42fefa39efp+9 ? std::numeric_limits<double>::infinity() : result;
}

/// Natural logarithm of a positive, finite, normal \p x.
inline double fixedLog(double x) {
  uint64_t bits = std::bit_cast<uint64_t>(x);
  int64_t exponent = static_cast<int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000fffffffffffffULL) | 0x3ff0000000000000ULL);
  if (m > 0x1.6a09e667f3bcdp+0) { // above sqrt(2): halve, so that m is about 1
    m *= 0.5;
    exponent += 1;
  }
  // log m = 2 artanh(s), s = (m - 1) / (m + 1), |s| < 0.1716; the first term left out is
  // s^23/23 < 2e-19.
  double f = m - 1.0;
  double s = f / (m + 1.0);
  double z = s * s;
  double p = 1.0 / 21.0;
  p = p * z + 1.0 / 19.0;
  p = p * z + 1.0 / 17.0;
  p = p * z + 1.0 / 15.0;
  p = p * z + 1.0 / 13.0;
  p = p * z + 1.0 / 11.0;
  p = p * z + 1.0 / 9.0;
  p = p * z + 1.0 / 7.0;
  p = p * z + 1.0 / 5.0;
  p = p * z + 1.0 / 3.0;
  double logM = 2.0 * s + 2.0 * s * (z * p);
  constexpr double high = 0x1.62e42fee00000p-1, low = 0x1.a39ef35793c76p-33;
  double e = static_cast<double>(exponent);
  return e * high + (logM + e * low);
}

/// e^x of \p x <= 0 in single precision, within 4 units in the last place where it is above 1e-3;
/// 0 below -87.3. For comparing tokens by the thousand (ProbabilityMass.h); codegen/cuda/kernels/
/// sampling.cuh has the same operations.
inline float fixedExpf(float x) {
  constexpr float magic = 12582912.0f; // 1.5 * 2^23
  float shifted = x * 1.44269504f + magic;
  float n = shifted - magic;
  uint32_t exponent = std::bit_cast<uint32_t>(shifted) - 0x4b400000u;
  // ln2 in two parts; n times the first is exact.
  float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float q = 1.39261835877e-3f * r + 8.36317905272e-3f;
  q = q * r + 4.16665546172e-2f;
  q = q * r + 1.66665769897e-1f;
  q = q * r + 0.5f;
  float y = (q * (r * r) + r) + 1.0f;
  y = y * std::bit_cast<float>((exponent + 127u) << 23);
  return x < -87.3f ? 0.0f : y;
}

} // namespace llmrt

#endif // LLMRT_DECODE_MATH_H
