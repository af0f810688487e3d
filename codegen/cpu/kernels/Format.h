//===- Format.h - the packed weights and KV elements as the kernels see them -===//
//
// The values are those of plan.fbs (ElementType, Packing); compiler/quantize/Pack.h says where the
// bytes lie. All of these are constants after inlining.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CODEGEN_CPU_KERNELS_FORMAT_H
#define LLMC_CODEGEN_CPU_KERNELS_FORMAT_H

#include "codegen/cpu/kernels/Vector.h"

namespace llmc::kernel {

enum ElementType : int64_t {
  kF32 = 0,
  kF16 = 1,
  kBF16 = 2,
  kI8 = 3,
  kI4 = 4,
  kE2M1 = 8,
  kE8M0 = 9
};
/// Activations as plans number them: 0 none, 1 SiLU, 2 GELU (erf), 3 GELU (tanh), 4 ReLU, 5
/// sigmoid.
enum Activation : int64_t {
  kNone = 0,
  kSilu = 1,
  kGelu = 2,
  kGeluTanh = 3,
  kRelu = 4,
  kActivationSigmoid = 5
};
enum PackingType : int64_t { kRows = 0, kN16 = 1, kN16K4 = 2 };

KERNEL_INLINE int64_t elementBytes(int64_t element) {
  return element == kF32 ? 4 : element == kI8 || element == kE8M0 ? 1 : 2;
}
KERNEL_INLINE int64_t roundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
KERNEL_INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

struct Format {
  int64_t element, packing, group, scale, hasMin, min;

  /// N16K4: bytes of a group's values, and of the group with its scales and minimums.
  KERNEL_LAMBDA bool isFourBit() const { return element == kI4 || element == kE2M1; }
  /// N16K4: bytes of \p count values along K of 16 rows.
  KERNEL_LAMBDA int64_t bytesAlong(int64_t count) const { return (isFourBit() ? 8 : 16) * count; }
  KERNEL_LAMBDA int64_t valueBytes() const { return bytesAlong(group); }
  KERNEL_LAMBDA int64_t groupBytes() const {
    return valueBytes() + 16 * elementBytes(scale) + (hasMin ? 16 * elementBytes(min) : 0);
  }
  /// Bytes of a 16-row tile of K columns.
  KERNEL_LAMBDA int64_t tileBytes(int64_t k) const {
    if (packing == kN16K4)
      return (k + group - 1) / group * groupBytes();
    return 16 * elementBytes(element) * (element == kBF16 && packing == kN16 ? roundUp(k, 2) : k);
  }
};

KERNEL_INLINE F32x16 halfToFloat(const void *p) {
  return __builtin_convertvector(loadAs<Half16>(p), F32x16);
}
KERNEL_INLINE F32x16 brainToFloat(const void *p) {
  return asFloat(__builtin_convertvector(loadAs<U16x16>(p), U32x16) << 16);
}
/// Sixteen values of type \p element (f32, f16, bf16; i8 without its scale) in a row.
KERNEL_INLINE F32x16 loadElements(const uint8_t *p, int64_t element) {
  if (element == kF32)
    return loadAs<F32x16>(p);
  if (element == kI8)
    return __builtin_convertvector(loadAs<I8x16>(p), F32x16);
  return element == kF16 ? halfToFloat(p) : brainToFloat(p);
}
KERNEL_INLINE float loadElement(const uint8_t *p, int64_t element) {
  if (element == kF32)
    return loadAs<float>(p);
  if (element == kF16)
    return static_cast<float>(loadAs<_Float16>(p));
  if (element == kI8)
    return static_cast<float>(loadAs<int8_t>(p));
  return __builtin_bit_cast(float, static_cast<uint32_t>(loadAs<uint16_t>(p)) << 16);
}
KERNEL_INLINE F32x16 loadElementsPart(const uint8_t *p, int64_t element, int64_t count) {
  if (count >= kLanes)
    return loadElements(p, element);
  alignas(64) float lanes[kLanes] = {};
  for (int64_t i = 0; i < count; ++i)
    lanes[i] = loadElement(p + i * elementBytes(element), element);
  return load(lanes);
}

/// Rounds to nearest even; a NaN stays one.
KERNEL_INLINE uint16_t toBrain(float x) {
  uint32_t bits = __builtin_bit_cast(uint32_t, x);
  uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  return static_cast<uint16_t>(x != x ? bits >> 16 | 0x40u : rounded);
}
KERNEL_INLINE void storeElement(uint8_t *p, int64_t element, float x) {
  if (element == kF32)
    return storeAs(p, x);
  if (element == kF16)
    return storeAs(p, static_cast<_Float16>(x));
  storeAs(p, toBrain(x));
}
KERNEL_INLINE void storeElements(uint8_t *p, int64_t element, F32x16 v) {
  if (element == kF32)
    return storeAs(p, v);
  if (element == kF16)
    return storeAs(p, __builtin_convertvector(v, Half16));
  U32x16 bits = asBits(v);
  U32x16 rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  U32x16 chosen = v != v ? (bits >> 16 | 0x40u) : rounded;
  storeAs(p, __builtin_convertvector(chosen, U16x16));
}

/// What e8m0 stands for beside doubled e2m1: 2^(e - 128), a NaN for 255. Kernels take subnormal
/// numbers for zeros, which the two lowest are.
KERNEL_INLINE U32x16 halfPowerBits(U32x16 e) {
  const U32x16 bits = ((e > 1u ? e : (U32x16)(1u)) - 1u) << 23;
  return e == 255u ? (U32x16)(0x7fc00000u) : bits;
}
/// The 16 scales of a group whose values start at \p w.
KERNEL_INLINE F32x16 loadScales(const Format &f, const uint8_t *w) {
  const uint8_t *at = w + f.valueBytes();
  if (f.scale == kE8M0)
    return asFloat(halfPowerBits(__builtin_convertvector(loadAs<U8x16>(at), U32x16)));
  return loadElements(at, f.scale);
}
KERNEL_INLINE float loadScaleOf(const Format &f, const uint8_t *w, int64_t row) {
  const uint8_t *at = w + f.valueBytes() + row * elementBytes(f.scale);
  if (f.scale != kE8M0)
    return loadElement(at, f.scale);
  const uint32_t e = *at;
  return __builtin_bit_cast(float, e == 255 ? 0x7fc00000u : ((e > 1 ? e : 1u) - 1) << 23);
}

/// The 16 scales and offsets of a group whose values start at \p w: a weight is
/// fma(q, scale, offset), with i4 as unsigned nibbles. fma(q, s, -8 s) = s (q - 8) in one rounding.
struct GroupScale {
  F32x16 scale, offset;
};
KERNEL_INLINE GroupScale loadScale(const Format &f, const uint8_t *w) {
  GroupScale s;
  s.scale = loadScales(f, w);
  s.offset = splat(0.0f);
  if (f.hasMin)
    s.offset = loadElements(w + f.valueBytes() + 16 * elementBytes(f.scale), f.min);
  else if (f.element == kI4)
    s.offset = -8.0f * s.scale;
  return s;
}

} // namespace llmc::kernel

#endif // LLMC_CODEGEN_CPU_KERNELS_FORMAT_H
