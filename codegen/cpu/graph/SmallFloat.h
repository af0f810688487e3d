//===- SmallFloat.h - floats of 16, 8 and 4 bits -------------------------------===//
//
// Layouts: bfloat16 and IEEE half; OCP OFP8 (E4M3FN, E5M2) and MX (E2M1, E8M0); the FNUZ variants
// of Graphcore and AMD, which have one zero, one NaN (0x80) and no infinity.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CODEGEN_CPU_GRAPH_SMALLFLOAT_H
#define LLMC_CODEGEN_CPU_GRAPH_SMALLFLOAT_H

#include "codegen/cpu/graph/Graph.h"

namespace llmc::graphcode {

enum Rounding : int64_t { RoundUp = 0, RoundDown = 1, RoundNearest = 2 }; ///< of E8M0

struct SmallLayout {
  int exponentBits, mantissaBits, bias;
  bool isIeee;         ///< has infinities
  bool isUnsignedZero; ///< FNUZ
  bool hasNaN;
  int largest; ///< code of the largest finite number
};
GRAPH_INLINE SmallLayout smallLayout(int64_t type) {
  switch (type) {
  case LLMRT_TYPE_F8E4M3FN:
    return {4, 3, 7, false, false, true, 0x7E};
  case LLMRT_TYPE_F8E4M3FNUZ:
    return {4, 3, 8, false, true, true, 0x7F};
  case LLMRT_TYPE_F8E5M2:
    return {5, 2, 15, true, false, true, 0x7B};
  case LLMRT_TYPE_F8E5M2FNUZ:
    return {5, 2, 16, false, true, true, 0x7F};
  default:
    return {2, 1, 1, false, false, false, 0x7}; // E2M1
  }
}

GRAPH_INLINE float powerOfTwo(int exponent) { // normal ones
  return __builtin_bit_cast(float, uint32_t(exponent + 127) << 23);
}

GRAPH_INLINE float decodeByte(int64_t type, uint8_t code) {
  if (type == LLMRT_TYPE_F8E8M0)
    return code == 0xFF ? __builtin_nanf("")
           : code == 0  ? __builtin_bit_cast(float, uint32_t(0x400000)) // 2^-127
                        : powerOfTwo(int(code) - 127);
  SmallLayout l = smallLayout(type);
  int width = l.exponentBits + l.mantissaBits;
  uint32_t sign = (code >> width) & 1, body = code & ((1u << width) - 1);
  uint32_t exponent = body >> l.mantissaBits, mantissa = body & ((1u << l.mantissaBits) - 1);
  if (l.isUnsignedZero && code == 0x80)
    return __builtin_nanf("");
  if (l.isIeee && exponent == (1u << l.exponentBits) - 1)
    return mantissa ? __builtin_nanf("") : sign ? -__builtin_inff() : __builtin_inff();
  if (!l.isIeee && !l.isUnsignedZero && l.hasNaN && body == (1u << width) - 1)
    return __builtin_nanf("");
  float value = exponent == 0 ? float(mantissa) * powerOfTwo(1 - l.bias - l.mantissaBits)
                              : float(mantissa + (1u << l.mantissaBits)) *
                                    powerOfTwo(int(exponent) - l.bias - l.mantissaBits);
  return sign ? -value : value;
}

/// Nearest, ties to even. Beyond the range: the largest number where \p saturate, else infinity or
/// NaN; E2M1 always saturates.
GRAPH_INLINE uint8_t encodeByte(int64_t type, float x, bool saturate, int64_t rounding) {
  uint32_t bits = __builtin_bit_cast(uint32_t, x);
  if (type == LLMRT_TYPE_F8E8M0) {
    uint32_t exponent = (bits >> 23) & 0xFF, rest = bits & 0x7FFFFF;
    if (exponent == 0xFF)
      return rest || !saturate ? 0xFF : 0xFE;
    bool up = rest != 0 && (rounding == RoundUp || (rounding == RoundNearest && rest >= 0x400000));
    if (exponent == 0) // below 2^-126: 2^-127 is half of it
      up = rounding == RoundUp ? rest > 0x400000 : rounding == RoundNearest && rest >= 0x600000;
    exponent += up;
    return exponent >= 0xFF ? (saturate ? 0xFE : 0xFF) : uint8_t(exponent);
  }
  SmallLayout l = smallLayout(type);
  int width = l.exponentBits + l.mantissaBits;
  uint32_t sign = bits >> 31 << width;
  uint32_t magnitude = bits & 0x7FFFFFFF;
  bool isNaN = magnitude > 0x7F800000;
  if (isNaN && l.hasNaN)
    return l.isUnsignedZero ? 0x80 : uint8_t(sign | ((1u << width) - 1));
  // E2M1 has no NaN: -0, as the onnx package (ml_dtypes) has it.
  if (isNaN)
    return uint8_t(1u << width);
  // In units of the last place at this exponent, rounded by the float's own addition.
  int exponent = int(magnitude >> 23) - 127;
  int lowest = 1 - l.bias;
  uint32_t code;
  if (magnitude >= 0x7F800000) {
    code = 1u << 30;
  } else {
    int unit = max(exponent, lowest) - l.mantissaBits;
    double scaled = double(__builtin_bit_cast(float, magnitude)) /
                    __builtin_bit_cast(double, uint64_t(unit + 1023) << 52);
    uint32_t whole = uint32_t(scaled); // below 2^(mantissaBits + 1)
    double rest = scaled - whole;
    whole += rest > 0.5 || (rest == 0.5 && (whole & 1));
    // A carry into the next exponent is the right code as it is.
    int biased = max(exponent, lowest) + l.bias;
    code = exponent < lowest
               ? whole
               : (uint32_t(biased) << l.mantissaBits) + whole - (1u << l.mantissaBits);
  }
  if (code > uint32_t(l.largest)) {
    if (saturate || !l.hasNaN)
      code = uint32_t(l.largest);
    else if (l.isUnsignedZero)
      return 0x80;
    else
      code = l.isIeee ? uint32_t(l.largest) + 1 : (1u << width) - 1;
  }
  if (l.isUnsignedZero && code == 0)
    return 0;
  return uint8_t(sign | code);
}

GRAPH_INLINE float decodeHalf(uint16_t bits) { return float(__builtin_bit_cast(_Float16, bits)); }
GRAPH_INLINE uint16_t encodeHalf(float x) { return __builtin_bit_cast(uint16_t, _Float16(x)); }
GRAPH_INLINE float decodeBfloat(uint16_t bits) {
  return __builtin_bit_cast(float, uint32_t(bits) << 16);
}
GRAPH_INLINE uint16_t encodeBfloat(float x) {
  uint32_t bits = __builtin_bit_cast(uint32_t, x);
  if ((bits & 0x7FFFFFFF) > 0x7F800000)
    return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/// Element \p i of a tensor of a small float \p type.
GRAPH_INLINE float loadSmall(int64_t type, const void *x, int64_t i) {
  if (type == LLMRT_TYPE_F16)
    return decodeHalf(static_cast<const uint16_t *>(x)[i]);
  if (type == LLMRT_TYPE_BF16)
    return decodeBfloat(static_cast<const uint16_t *>(x)[i]);
  return decodeByte(type, static_cast<const uint8_t *>(x)[i]);
}
GRAPH_INLINE void storeSmall(int64_t type, void *y, int64_t i, float value, bool saturate,
                             int64_t rounding) {
  if (type == LLMRT_TYPE_F16)
    static_cast<uint16_t *>(y)[i] = encodeHalf(value);
  else if (type == LLMRT_TYPE_BF16)
    static_cast<uint16_t *>(y)[i] = encodeBfloat(value);
  else
    static_cast<uint8_t *>(y)[i] = encodeByte(type, value, saturate, rounding);
}

} // namespace llmc::graphcode

#endif // LLMC_CODEGEN_CPU_GRAPH_SMALLFLOAT_H
