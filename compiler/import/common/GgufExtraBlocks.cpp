// GGUF's block forms beyond the common ones; layouts as in ggml's block structures.
#include "compiler/import/common/GgufExtraBlocks.h"

#include "compiler/quantize/HalfFloat.h"

#include <bit>
#include <cstring>
#include <limits>

namespace llmc {
namespace {

float halfAt(const uint8_t *bytes) {
  uint16_t bits;
  std::memcpy(&bits, bytes, sizeof(bits));
  return halfToFloat(bits);
}

/// The levels of iq4_nl and iq4_xs.
constexpr int8_t kIq4Levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                   1,    13,   25,  38,  53,  69,  89,  113};
/// q2_k: 16 pairs of 4-bit scale and minimum, 64 bytes of 2-bit codes, f16 scale, f16 minimum. Of
/// each 128 values, value 32 j + i has bits 2 j of byte i.
void splitQ2K(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
  const float scale = halfAt(block + 80), min = halfAt(block + 82);
  for (int g = 0; g != 16; ++g) {
    scales[g] = scale * float(block[g] & 15);
    mins[g] = -(min * float(block[g] >> 4));
  }
  for (int i = 0; i != 256; ++i)
    codes[i] = block[16 + 32 * (i / 128) + i % 32] >> 2 * (i % 128 / 32) & 3;
}

/// q3_k: 32 bytes of third bits, 64 bytes of low bits as in q2_k, 12 bytes of 6-bit scales, f16.
/// Scale g has its low 4 bits in byte g % 8 (upper half from g = 8 on), its upper 2 bits in byte
/// 8 + g % 4 at 2 (g / 4), and is 32 too large. A third bit that is 0 lowers the value by 4.
void splitQ3K(const uint8_t *block, uint8_t *codes, float *scales) {
  const uint8_t *packed = block + 96;
  const float scale = halfAt(block + 108);
  for (int g = 0; g != 16; ++g) {
    const int low = packed[g % 8] >> 4 * (g / 8) & 15, high = packed[8 + g % 4] >> 2 * (g / 4) & 3;
    scales[g] = scale * float((low | high << 4) - 32);
  }
  for (int i = 0; i != 256; ++i) {
    const int low = block[32 + 32 * (i / 128) + i % 32] >> 2 * (i % 128 / 32) & 3;
    const int third = block[i % 32] >> i / 32 & 1;
    codes[i] = uint8_t(low + 4 * third - 4 + 8); // i4 without a minimum is q - 8
  }
}

/// q8_k: f32 scale, 256 int8 (and sums that only products use).
void splitQ8K(const uint8_t *block, uint8_t *codes, float *scales) {
  std::memcpy(scales, block, 4);
  std::memcpy(codes, block + 4, 256);
}

void splitIq4Levels(const uint8_t *packed, uint8_t *codes) {
  for (int i = 0; i != 16; ++i) {
    codes[i] = uint8_t(kIq4Levels[packed[i] & 15]);
    codes[16 + i] = uint8_t(kIq4Levels[packed[i] >> 4]);
  }
}

/// iq4_xs: f16, 16 bits with the upper 2 bits of eight 6-bit scales, 4 bytes with their lower 4,
/// 128 bytes; scales are 32 too large.
void splitIq4Xs(const uint8_t *block, uint8_t *codes, float *scales) {
  const float scale = halfAt(block);
  const uint32_t high = block[2] | uint32_t(block[3]) << 8;
  for (int g = 0; g != 8; ++g) {
    const int low = block[4 + g / 2] >> 4 * (g % 2) & 15;
    scales[g] = scale * float(int(low | (high >> 2 * g & 3) << 4) - 32);
    splitIq4Levels(block + 8 + 16 * g, codes + 32 * g);
  }
}

/// tq1_0: 48 bytes of five digits to the base 3, 4 bytes of four, f16. A byte holds digits as a
/// fraction of 256: digit n is the whole part of 3 (byte 3^n mod 256) / 256.
void splitTq1(const uint8_t *block, uint8_t *codes, float *scales) {
  static constexpr int kPowers[5] = {1, 3, 9, 27, 81};
  scales[0] = halfAt(block + 52);
  auto digit = [](uint8_t byte, int n) {
    return uint8_t((uint8_t(byte * kPowers[n]) * 3 >> 8) - 1 + 8);
  };
  uint8_t *to = codes;
  for (int n = 0; n != 5; ++n)
    for (int i = 0; i != 32; ++i)
      *to++ = digit(block[i], n);
  for (int n = 0; n != 5; ++n)
    for (int i = 0; i != 16; ++i)
      *to++ = digit(block[32 + i], n);
  for (int n = 0; n != 4; ++n)
    for (int i = 0; i != 4; ++i)
      *to++ = digit(block[48 + i], n);
}

/// tq2_0: 64 bytes of 2-bit codes, f16; order as in q2_k, values one lower.
void splitTq2(const uint8_t *block, uint8_t *codes, float *scales) {
  scales[0] = halfAt(block + 64);
  for (int i = 0; i != 256; ++i)
    codes[i] = uint8_t((block[32 * (i / 128) + i % 32] >> 2 * (i % 128 / 32) & 3) - 1 + 8);
}

/// mxfp4: an exponent (2^(e - 127)), 16 bytes. The codes are doubled values, so the scale is half.
void splitMxfp4(const uint8_t *block, uint8_t *codes, float *scales) {
  scales[0] = halfPowerOfTwo(block[0]);
  for (int i = 0; i != 16; ++i) {
    codes[i] = uint8_t(doubledE2m1(block[1 + i] & 15));
    codes[16 + i] = uint8_t(doubledE2m1(block[1 + i] >> 4));
  }
}

} // namespace

WeightFormat extraGgufFormat(WeightEncoding encoding) {
  switch (encoding) {
  case WeightEncoding::Q2_K:
    return groupedFormat(Element::I4, 16, Element::F32, true);
  case WeightEncoding::Q3_K:
    return groupedFormat(Element::I4, 16, Element::F32, false);
  case WeightEncoding::Q8_K:
    return groupedFormat(Element::I8, 256, Element::F32, false);
  case WeightEncoding::IQ4_NL:
    return groupedFormat(Element::I8, 32, Element::F16, false);
  case WeightEncoding::TQ1_0:
  case WeightEncoding::TQ2_0:
    return groupedFormat(Element::I4, 256, Element::F16, false);
  case WeightEncoding::MXFP4:
    return groupedFormat(Element::E2M1, 32, Element::E8M0, false);
  default: // iq4_xs
    return groupedFormat(Element::I8, 32, Element::F32, false);
  }
}

void splitExtraGgufBlock(WeightEncoding encoding, const uint8_t *block, uint8_t *codes,
                         float *scales, float *mins) {
  switch (encoding) {
  case WeightEncoding::Q2_K:
    return splitQ2K(block, codes, scales, mins);
  case WeightEncoding::Q3_K:
    return splitQ3K(block, codes, scales);
  case WeightEncoding::Q8_K:
    return splitQ8K(block, codes, scales);
  case WeightEncoding::IQ4_NL: // f16, 16 bytes
    scales[0] = halfAt(block);
    return splitIq4Levels(block + 2, codes);
  case WeightEncoding::IQ4_XS:
    return splitIq4Xs(block, codes, scales);
  case WeightEncoding::TQ1_0:
    return splitTq1(block, codes, scales);
  case WeightEncoding::TQ2_0:
    return splitTq2(block, codes, scales);
  default:
    return splitMxfp4(block, codes, scales);
  }
}

} // namespace llmc
