//===- HalfFloat.h - 16-bit floats without special instructions ---------------===//
//
// Conversions that vectorise on any x86-64 (the compiler itself is built for the oldest level) and
// don't depend on how the CPU treats denormals. bf16: its bits are the upper half of an f32.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_QUANTIZE_HALFFLOAT_H
#define LLMC_QUANTIZE_HALFFLOAT_H

#include <bit>
#include <cstdint>

namespace llmc {

/// The value of an IEEE binary16, exactly; NaN and infinities stay what they are.
inline float halfToFloat(uint16_t half) {
  const uint32_t magnitude = uint32_t(half & 0x7fff) << 13;
  const uint32_t sign = uint32_t(half & 0x8000) << 16;
  const uint32_t normal = magnitude + (112u << 23); // exponent bias 15 -> 127
  const uint32_t special = magnitude | 0x7f800000u; // exponent 31: infinity or NaN
  // A subnormal is m * 2^-24: written as 2^-14 + m * 2^-24 and minus 2^-14, no denormal appears.
  const float subnormal =
      std::bit_cast<float>(magnitude + (113u << 23)) - std::bit_cast<float>(113u << 23);
  uint32_t bits = magnitude >= (31u << 23) ? special : normal;
  bits = magnitude < (1u << 23) ? std::bit_cast<uint32_t>(subnormal) : bits;
  return std::bit_cast<float>(bits | sign);
}

/// The nearest binary16, ties to even; beyond 65504 infinity; NaN stays NaN.
inline uint16_t floatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return uint16_t(sign | 0x7e00);
  if (magnitude >= 0x477ff000) // 65520 and more round to infinity
    return uint16_t(sign | 0x7c00);
  if (magnitude < 0x38800000) { // below 2^-14: adding 0.5 puts the last kept bit at 2^-24
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return uint16_t(sign | (std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5f)));
  }
  const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return uint16_t(sign | ((rounded - (112u << 23)) >> 13));
}

/// \p value as an f16 holds it.
inline float roundToHalf(float value) { return halfToFloat(floatToHalf(value)); }

inline float brainToFloat(uint16_t brain) { return std::bit_cast<float>(uint32_t(brain) << 16); }

} // namespace llmc

#endif // LLMC_QUANTIZE_HALFFLOAT_H
