#include "compiler/import/common/WeightEncoding.h"

#include "compiler/import/common/GgufExtraBlocks.h"
#include "compiler/import/common/GgufIqBlocks.h"
#include "compiler/quantize/HalfFloat.h"
#include "compiler/quantize/QuantizedRows.h"

#include <cassert>
#include <cstring>

namespace llmc {
namespace {

float halfAt(const uint8_t *bytes) {
  uint16_t bits;
  std::memcpy(&bits, bytes, sizeof(bits));
  return halfToFloat(bits);
}

uint32_t wordAt(const uint8_t *bytes) {
  uint32_t word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

/// 32 values of 4 bits: byte i has value i in its low nibble, value 16 + i in the high one.
void splitNibbles(const uint8_t *packed, uint8_t *codes) {
  for (int i = 0; i != 16; ++i) {
    codes[i] = packed[i] & 15;
    codes[16 + i] = packed[i] >> 4;
  }
}

/// The fifth bits of 32 values, moved down by \p offset to signed codes.
void addFifthBits(uint32_t high, int offset, uint8_t *codes) {
  for (int i = 0; i != 32; ++i)
    codes[i] = uint8_t(int(codes[i] | (high >> i & 1) << 4) - offset);
}

/// q4_k and q5_k: eight pairs of 6-bit scale and minimum in 12 bytes. The first four pairs lie in
/// the low 6 bits of bytes 0-3 and 4-7; the last four have their low 4 bits in bytes 8-11 and their
/// upper 2 bits on top of the first four.
void splitKScales(const uint8_t *block, float *scales, float *mins) {
  const float scale = halfAt(block), min = halfAt(block + 2);
  const uint8_t *packed = block + 4;
  for (int i = 0; i != 4; ++i) {
    scales[i] = scale * float(packed[i] & 63);
    mins[i] = -(min * float(packed[i + 4] & 63));
    scales[i + 4] = scale * float((packed[i + 8] & 15) | (packed[i] >> 6) << 4);
    mins[i + 4] = -(min * float((packed[i + 8] >> 4) | (packed[i + 4] >> 6) << 4));
  }
}

/// q4_k and q5_k: 32 bytes for each pair of groups, the even group in the low nibbles.
void splitKNibbles(const uint8_t *packed, uint8_t *codes) {
  for (int pair = 0; pair != 4; ++pair)
    for (int i = 0; i != 32; ++i) {
      codes[64 * pair + i] = packed[32 * pair + i] & 15;
      codes[64 * pair + 32 + i] = packed[32 * pair + i] >> 4;
    }
}

/// q6_k: lower 4 bits [128], upper 2 bits [64], 16 int8 scales, f16. Each half of 128 values takes
/// 64 and 32 bytes; value 32 j + i has its nibble in byte 32 (j % 2) + i, its bits in byte i.
void splitQ6K(const uint8_t *block, uint8_t *codes, float *scales) {
  for (int half = 0; half != 2; ++half) {
    const uint8_t *low = block + 64 * half, *high = block + 128 + 32 * half;
    for (int j = 0; j != 4; ++j)
      for (int i = 0; i != 32; ++i) {
        const int nibble = low[32 * (j % 2) + i] >> 4 * (j / 2) & 15;
        codes[128 * half + 32 * j + i] = uint8_t((nibble | (high[i] >> 2 * j & 3) << 4) - 32);
      }
  }
  const float scale = halfAt(block + 208);
  for (int i = 0; i != 16; ++i)
    scales[i] = scale * float(static_cast<int8_t>(block[192 + i]));
}

} // namespace

const char *encodingName(WeightEncoding encoding) {
  switch (encoding) {
  case WeightEncoding::F32:
    return "f32";
  case WeightEncoding::F16:
    return "f16";
  case WeightEncoding::BF16:
    return "bf16";
  case WeightEncoding::F64:
    return "f64";
  case WeightEncoding::Q4_0:
    return "q4_0";
  case WeightEncoding::Q4_1:
    return "q4_1";
  case WeightEncoding::Q5_0:
    return "q5_0";
  case WeightEncoding::Q5_1:
    return "q5_1";
  case WeightEncoding::Q8_0:
    return "q8_0";
  case WeightEncoding::Q4_K:
    return "q4_k";
  case WeightEncoding::Q5_K:
    return "q5_k";
  case WeightEncoding::Q6_K:
    return "q6_k";
  case WeightEncoding::NBits:
    return "nbits";
  case WeightEncoding::BlockInt4:
    return "block_int4";
  case WeightEncoding::BlockInt8:
    return "block_int8";
  case WeightEncoding::Q2_K:
    return "q2_k";
  case WeightEncoding::Q3_K:
    return "q3_k";
  case WeightEncoding::Q8_K:
    return "q8_k";
  case WeightEncoding::IQ4_NL:
    return "iq4_nl";
  case WeightEncoding::IQ4_XS:
    return "iq4_xs";
  case WeightEncoding::TQ1_0:
    return "tq1_0";
  case WeightEncoding::TQ2_0:
    return "tq2_0";
  case WeightEncoding::MXFP4:
    return "mxfp4";
  case WeightEncoding::Gptq:
    return "gptq";
  case WeightEncoding::GptqV2:
    return "gptq_v2";
  case WeightEncoding::Awq:
    return "awq";
  case WeightEncoding::PackedInt:
    return "packed_int";
  case WeightEncoding::NF4:
    return "nf4";
  case WeightEncoding::RowInt8:
    return "row_int8";
  case WeightEncoding::FP8:
    return "fp8";
  case WeightEncoding::SplitMXFP4:
    return "split_mxfp4";
  case WeightEncoding::IQ1_S:
    return "iq1_s";
  case WeightEncoding::IQ1_M:
    return "iq1_m";
  case WeightEncoding::IQ2_XXS:
    return "iq2_xxs";
  case WeightEncoding::IQ2_XS:
    return "iq2_xs";
  case WeightEncoding::IQ2_S:
    return "iq2_s";
  case WeightEncoding::IQ3_XXS:
    return "iq3_xxs";
  case WeightEncoding::IQ3_S:
    return "iq3_s";
  }
  return "unknown";
}

EncodingBlock encodingBlock(WeightEncoding encoding) {
  switch (encoding) {
  case WeightEncoding::F32:
    return {1, 4};
  case WeightEncoding::F16:
  case WeightEncoding::BF16:
    return {1, 2};
  case WeightEncoding::F64:
    return {1, 8};
  case WeightEncoding::Q4_0:
    return {32, 18};
  case WeightEncoding::Q4_1:
    return {32, 20};
  case WeightEncoding::Q5_0:
    return {32, 22};
  case WeightEncoding::Q5_1:
    return {32, 24};
  case WeightEncoding::Q8_0:
    return {32, 34};
  case WeightEncoding::Q4_K:
    return {256, 144};
  case WeightEncoding::Q5_K:
    return {256, 176};
  case WeightEncoding::Q6_K:
    return {256, 210};
  case WeightEncoding::NBits:
  case WeightEncoding::BlockInt4:
  case WeightEncoding::BlockInt8:
  case WeightEncoding::Gptq:
  case WeightEncoding::GptqV2:
  case WeightEncoding::Awq:
  case WeightEncoding::PackedInt:
  case WeightEncoding::NF4:
  case WeightEncoding::RowInt8:
  case WeightEncoding::FP8:
  case WeightEncoding::SplitMXFP4:
    return {0, 0};
  case WeightEncoding::Q2_K:
    return {256, 84};
  case WeightEncoding::Q3_K:
    return {256, 110};
  case WeightEncoding::Q8_K:
    return {256, 292};
  case WeightEncoding::IQ4_NL:
    return {32, 18};
  case WeightEncoding::IQ4_XS:
    return {256, 136};
  case WeightEncoding::TQ1_0:
    return {256, 54};
  case WeightEncoding::TQ2_0:
    return {256, 66};
  case WeightEncoding::MXFP4:
    return {32, 17};
  case WeightEncoding::IQ1_S:
    return {256, 50};
  case WeightEncoding::IQ1_M:
    return {256, 56};
  case WeightEncoding::IQ2_XXS:
    return {256, 66};
  case WeightEncoding::IQ2_XS:
    return {256, 74};
  case WeightEncoding::IQ2_S:
    return {256, 82};
  case WeightEncoding::IQ3_XXS:
    return {256, 98};
  case WeightEncoding::IQ3_S:
    return {256, 110};
  }
  return {0, 0};
}

WeightFormat ggufBlockFormat(WeightEncoding encoding) {
  switch (encoding) {
  case WeightEncoding::Q4_0:
    return groupedFormat(Element::I4, 32, Element::F16, false);
  case WeightEncoding::Q4_1:
    return groupedFormat(Element::I4, 32, Element::F16, true);
  case WeightEncoding::Q4_K:
    return groupedFormat(Element::I4, 32, Element::F32, true);
  case WeightEncoding::Q5_1:
    return groupedFormat(Element::I8, 32, Element::F16, true);
  case WeightEncoding::Q5_K:
    return groupedFormat(Element::I8, 32, Element::F32, true);
  case WeightEncoding::Q6_K:
    return groupedFormat(Element::I8, 16, Element::F32, false);
  default:
    assert(isGgufBlock(encoding));
    if (encoding >= WeightEncoding::IQ1_S)
      return iqGgufFormat(encoding);
    if (encoding >= WeightEncoding::Q2_K)
      return extraGgufFormat(encoding);
    return groupedFormat(Element::I8, 32, Element::F16, false); // q5_0, q8_0
  }
}

void splitGgufBlock(WeightEncoding encoding, const uint8_t *block, uint8_t *codes, float *scales,
                    float *mins) {
  switch (encoding) {
  case WeightEncoding::Q4_0: // f16, 16 bytes
    scales[0] = halfAt(block);
    splitNibbles(block + 2, codes);
    return;
  case WeightEncoding::Q4_1: // f16 scale, f16 minimum, 16 bytes
    scales[0] = halfAt(block);
    mins[0] = halfAt(block + 2);
    splitNibbles(block + 4, codes);
    return;
  case WeightEncoding::Q5_0: // f16, fifth bits, 16 bytes
    scales[0] = halfAt(block);
    splitNibbles(block + 6, codes);
    addFifthBits(wordAt(block + 2), 16, codes);
    return;
  case WeightEncoding::Q5_1: // f16 scale, f16 minimum, fifth bits, 16 bytes
    scales[0] = halfAt(block);
    mins[0] = halfAt(block + 2);
    splitNibbles(block + 8, codes);
    addFifthBits(wordAt(block + 4), 0, codes);
    return;
  case WeightEncoding::Q8_0: // f16, 32 int8
    scales[0] = halfAt(block);
    std::memcpy(codes, block + 2, 32);
    return;
  case WeightEncoding::Q4_K: // two f16, 12 bytes of scales, 128 bytes
    splitKScales(block, scales, mins);
    splitKNibbles(block + 16, codes);
    return;
  case WeightEncoding::Q5_K: // two f16, 12 bytes of scales, 32 bytes of fifth bits, 128 bytes
    splitKScales(block, scales, mins);
    splitKNibbles(block + 48, codes);
    for (int group = 0; group != 8; ++group) // bit g of byte i is of value i of group g
      for (int i = 0; i != 32; ++i)
        codes[32 * group + i] |= uint8_t((block[16 + i] >> group & 1) << 4);
    return;
  case WeightEncoding::Q6_K:
    splitQ6K(block, codes, scales);
    return;
  default:
    assert(isGgufBlock(encoding));
    if (encoding >= WeightEncoding::IQ1_S)
      splitIqGgufBlock(encoding, block, codes, scales);
    else
      splitExtraGgufBlock(encoding, block, codes, scales, mins);
  }
}

} // namespace llmc
