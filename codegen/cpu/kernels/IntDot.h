//===- IntDot.h - sixteen integer dot products along K -----------------------===//
//
// A unit is 64 bytes: lane r of a U32x16 holds four values of row r of the weights; the activation
// is four signed bytes in [-127, 127], the same for every lane. What is computed is exact, so the
// texts (AVX2, VNNI, VNNI emulated with plain vectors, which the unit tests run, and Arm's dot
// product) agree.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CODEGEN_CPU_KERNELS_INTDOT_H
#define LLMC_CODEGEN_CPU_KERNELS_INTDOT_H

#include "codegen/cpu/kernels/Vector.h"

#if defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>
#elif !defined(LLMC_KERNEL_EMULATE_VNNI)
#include <immintrin.h>
#endif

namespace llmc::kernel {

KERNEL_INLINE int32_t loadQuad(const int8_t *p) { return loadAs<int32_t>(p); }

#if defined(__AVX512VNNI__) || defined(LLMC_KERNEL_EMULATE_VNNI)

#if defined(LLMC_KERNEL_EMULATE_VNNI)
KERNEL_INLINE U32x16 lookUpBytes(const uint8_t (&table)[16], U32x16 indices) {
  U32x16 found = {};
  for (int r = 0; r < 16; ++r)
    for (int i = 0; i < 32; i += 8)
      found[r] |= uint32_t(table[indices[r] >> i & 15]) << i;
  return found;
}
KERNEL_INLINE I32x16 dpbusd(I32x16 sum, U32x16 w, int32_t a) {
  for (int i = 0; i < 4; ++i)
    sum += (I32x16)(w >> (8 * i) & 255u) * static_cast<int32_t>(static_cast<int8_t>(a >> (8 * i)));
  return sum;
}
#else
/// The bytes of \p table that the bytes of \p indices (0 to 15) name.
KERNEL_INLINE U32x16 lookUpBytes(const uint8_t (&table)[16], U32x16 indices) {
  return (U32x16)_mm512_shuffle_epi8(_mm512_broadcast_i32x4(loadAs<__m128i>(table)),
                                     (__m512i)indices);
}
KERNEL_INLINE I32x16 dpbusd(I32x16 sum, U32x16 w, int32_t a) {
  return (I32x16)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)w, _mm512_set1_epi32(a));
}
#endif

/// Sums of up to eight units of unsigned values up to 15.
struct NibbleSum {
  I32x16 sum;
};
KERNEL_INLINE NibbleSum noNibbles() { return {splatInt(0)}; }
/// Eight times a sum of activations less than none: nibbles then count as q - 8. At most 32
/// activations of [-127, 127] are summed up, and the NibbleSum is of the same.
KERNEL_INLINE NibbleSum lessEightTimes(int32_t sum) { return {splatInt(-8 * sum)}; }
KERNEL_INLINE void addUnit(NibbleSum &s, U32x16 w, int32_t a) { s.sum = dpbusd(s.sum, w, a); }
KERNEL_INLINE I32x16 total(const NibbleSum &s) { return s.sum; }
/// Has \p s computed before whatever is loaded next.
KERNEL_INLINE void settle([[maybe_unused]] NibbleSum &s) {
#if !defined(LLMC_KERNEL_EMULATE_VNNI)
  asm volatile("" : "+v"(s.sum)::"memory");
#endif
}

/// A unit of signed bytes, ready to be multiplied: here w + 128, which is unsigned.
struct ByteUnit {
  U32x16 w;
};
KERNEL_INLINE ByteUnit prepareBytes(U32x16 w) { return {w ^ 0x80808080u}; }
KERNEL_INLINE I32x16 addBytes(I32x16 sum, const ByteUnit &u, int32_t a) {
  return dpbusd(sum, u.w, a);
}
/// What a sum over a group whose activations add to \p sumOfActivations has too much.
KERNEL_INLINE int32_t byteExcess(int32_t sumOfActivations) { return 128 * sumOfActivations; }

#elif defined(__ARM_FEATURE_DOTPROD)

/// Four lanes of \p v, and four times four as one.
template <int Part> KERNEL_INLINE int32x4_t quarter(I32x16 v) {
  return (int32x4_t)__builtin_shufflevector(v, v, 4 * Part, 4 * Part + 1, 4 * Part + 2,
                                            4 * Part + 3);
}
KERNEL_INLINE I32x16 join(int32x4_t a, int32x4_t b, int32x4_t c, int32x4_t d) {
  const auto lo = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
  const auto hi = __builtin_shufflevector(c, d, 0, 1, 2, 3, 4, 5, 6, 7);
  return __builtin_shufflevector((I32x8)lo, (I32x8)hi, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13,
                                 14, 15);
}
KERNEL_INLINE U32x16 lookUpBytes(const uint8_t (&table)[16], U32x16 indices) {
  const int8x16_t bytes = loadAs<int8x16_t>(table);
  auto part = [&](auto i) KERNEL_LAMBDA {
    constexpr int p = decltype(i)::value;
    return vreinterpretq_s32_s8(
        vqtbl1q_s8(bytes, vreinterpretq_u8_s32(quarter<p>((I32x16)indices))));
  };
  return (U32x16)join(part(Index<0>{}), part(Index<1>{}), part(Index<2>{}), part(Index<3>{}));
}
KERNEL_INLINE I32x16 dot(I32x16 sum, U32x16 w, int32_t a) {
  const int8x16_t x = vreinterpretq_s8_s32(vdupq_n_s32(a));
  auto part = [&](auto i) KERNEL_LAMBDA {
    constexpr int p = decltype(i)::value;
    return vdotq_s32(quarter<p>(sum), vreinterpretq_s8_s32(quarter<p>((I32x16)w)), x);
  };
  return join(part(Index<0>{}), part(Index<1>{}), part(Index<2>{}), part(Index<3>{}));
}

/// Sums of up to eight units of values up to 15.
struct NibbleSum {
  I32x16 sum;
};
KERNEL_INLINE NibbleSum noNibbles() { return {splatInt(0)}; }
KERNEL_INLINE NibbleSum lessEightTimes(int32_t sum) { return {splatInt(-8 * sum)}; }
KERNEL_INLINE void addUnit(NibbleSum &s, U32x16 w, int32_t a) { s.sum = dot(s.sum, w, a); }
KERNEL_INLINE I32x16 total(const NibbleSum &s) { return s.sum; }
KERNEL_INLINE void settle(NibbleSum &) { asm volatile("" ::: "memory"); }

/// A unit of signed bytes, which are multiplied as they are.
struct ByteUnit {
  U32x16 w;
};
KERNEL_INLINE ByteUnit prepareBytes(U32x16 w) { return {w}; }
KERNEL_INLINE I32x16 addBytes(I32x16 sum, const ByteUnit &u, int32_t a) { return dot(sum, u.w, a); }
KERNEL_INLINE int32_t byteExcess(int32_t) { return 0; }

#else

KERNEL_INLINE __m256i lowHalf(U32x16 v) { return (__m256i)v.lo; }
KERNEL_INLINE __m256i highHalf(U32x16 v) { return (__m256i)v.hi; }
KERNEL_INLINE I32x16 join(__m256i lo, __m256i hi) {
  return __builtin_shufflevector((I32x8)lo, (I32x8)hi, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13,
                                 14, 15);
}
KERNEL_INLINE U32x16 lookUpBytes(const uint8_t (&table)[16], U32x16 indices) {
  const __m256i bytes = _mm256_broadcastsi128_si256(loadAs<__m128i>(table));
  return (U32x16)join(_mm256_shuffle_epi8(bytes, lowHalf(indices)),
                      _mm256_shuffle_epi8(bytes, highHalf(indices)));
}

/// Sums of up to eight units of unsigned values up to 15, in 16 bits: 8 * 2 * 15 * 127 = 30480; or
/// of four up to 30.
struct NibbleSum {
  __m256i lo, hi;
};
KERNEL_INLINE NibbleSum noNibbles() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
// In the lower of a lane's two halves. Every x adds (q - 8) x to that half, or -8 x where q x goes
// to the other, or -8 x while q x is still to come: never beyond 32 * 8 * 127 = 32512.
KERNEL_INLINE NibbleSum lessEightTimes(int32_t sum) {
  __m256i start = _mm256_mullo_epi16(_mm256_set1_epi32(sum), _mm256_set1_epi32(0xfff8));
  return {start, start};
}
KERNEL_INLINE void addUnit(NibbleSum &s, U32x16 w, int32_t a) {
  __m256i x = _mm256_set1_epi32(a);
  s.lo = _mm256_add_epi16(s.lo, _mm256_maddubs_epi16(lowHalf(w), x));
  s.hi = _mm256_add_epi16(s.hi, _mm256_maddubs_epi16(highHalf(w), x));
}
KERNEL_INLINE I32x16 total(const NibbleSum &s) {
  __m256i one = _mm256_set1_epi16(1);
  return join(_mm256_madd_epi16(s.lo, one), _mm256_madd_epi16(s.hi, one));
}

KERNEL_INLINE void settle(NibbleSum &s) { asm volatile("" : "+x"(s.lo), "+x"(s.hi)::"memory"); }

/// A unit of signed bytes, ready to be multiplied: |w| as unsigned bytes; the sign goes to the
/// activation. 2 * 128 * 127 = 32512 fits 16 bits, so the saturation of vpmaddubsw never acts.
struct ByteUnit {
  U32x16 w;
  __m256i lo, hi;
};
KERNEL_INLINE ByteUnit prepareBytes(U32x16 w) {
  return {w, _mm256_abs_epi8(lowHalf(w)), _mm256_abs_epi8(highHalf(w))};
}
KERNEL_INLINE I32x16 addBytes(I32x16 sum, const ByteUnit &u, int32_t a) {
  __m256i x = _mm256_set1_epi32(a), one = _mm256_set1_epi16(1);
  __m256i lo = _mm256_maddubs_epi16(u.lo, _mm256_sign_epi8(x, lowHalf(u.w)));
  __m256i hi = _mm256_maddubs_epi16(u.hi, _mm256_sign_epi8(x, highHalf(u.w)));
  return sum + join(_mm256_madd_epi16(lo, one), _mm256_madd_epi16(hi, one));
}
KERNEL_INLINE int32_t byteExcess(int32_t) { return 0; }

#endif

} // namespace llmc::kernel

#endif // LLMC_CODEGEN_CPU_KERNELS_INTDOT_H
