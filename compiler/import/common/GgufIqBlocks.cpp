// Layouts as in ggml's block structures; all of 256 values.
#include "compiler/import/common/GgufIqBlocks.h"

#include "compiler/quantize/HalfFloat.h"

#include <bit>
#include <cstring>

namespace llmc {
namespace {

#define LLMC_GGUF_GRID(name, entries, ...) constexpr uint16_t name[entries] = {__VA_ARGS__};
#include "compiler/import/common/GgufGrids.inc"

constexpr uint8_t kIq2Levels[4] = {8, 25, 43, 0}; // no word has the last

template <typename T> T load(const uint8_t *bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

/// Signs of eight values, of which seven bits are stored: the eighth makes their number even.
uint8_t evenSigns(uint32_t seven) {
  seven &= 127;
  return static_cast<uint8_t>(seven | (std::popcount(seven) & 1) << 7);
}

/// Eight codes of an iq2 entry; bit i of \p signs is set where value i is negative.
void iq2Codes(uint16_t entry, uint8_t signs, uint8_t *codes) {
  for (int i = 0; i != 8; ++i) {
    const int level = kIq2Levels[entry >> 2 * i & 3];
    codes[i] = static_cast<uint8_t>(signs >> i & 1 ? -level : level);
  }
}

/// Four codes of an iq3 entry.
void iq3Codes(uint16_t entry, int scale, int offset, uint8_t signs, uint8_t *codes) {
  for (int i = 0; i != 4; ++i) {
    const int index = entry >> 3 * i & 7;
    // 62 ends the levels of iq3_xxs, where 60 would be due.
    const int level = scale == 8 && index == 7 ? 62 : scale * index + offset;
    codes[i] = static_cast<uint8_t>(signs >> i & 1 ? -level : level);
  }
}

void iq1Codes(uint16_t entry, bool isLower, uint8_t *codes) {
  for (int i = 0; i != 8; ++i)
    codes[i] = static_cast<uint8_t>(8 * ((entry >> 2 * i & 3) - 1) + (isLower ? -1 : 1));
}

/// iq2_xxs: f16, then for each 32 values four bytes of entries and a word of four times seven signs
/// and, in its upper 4 bits, the scale.
void splitIq2Xxs(const uint8_t *block, uint8_t *codes, float *scales) {
  const float d = halfToFloat(load<uint16_t>(block));
  for (int g = 0; g != 8; ++g) {
    const uint8_t *entries = block + 2 + 8 * g;
    const auto word = load<uint32_t>(entries + 4);
    scales[g] = d * (0.5f + static_cast<float>(word >> 28)) * 0.25f;
    for (int j = 0; j != 4; ++j)
      iq2Codes(kIq2Xxs[entries[j]], evenSigns(word >> 7 * j), codes + 32 * g + 8 * j);
  }
}

/// Of iq2_xs, iq2_s: sixteen 4-bit scales, the even ones in the lower halves.
void iq2Scales(float d, const uint8_t *packed, float *scales) {
  for (int g = 0; g != 16; ++g)
    scales[g] = d * (0.5f + static_cast<float>(packed[g / 2] >> 4 * (g % 2) & 15)) * 0.25f;
}

/// iq2_xs: f16, 32 words of 9 bits of entry and seven signs, 8 bytes of scales.
void splitIq2Xs(const uint8_t *block, uint8_t *codes, float *scales) {
  iq2Scales(halfToFloat(load<uint16_t>(block)), block + 66, scales);
  for (int j = 0; j != 32; ++j) {
    const auto word = load<uint16_t>(block + 2 + 2 * j);
    iq2Codes(kIq2Xs[word & 511], evenSigns(word >> 9), codes + 8 * j);
  }
}

/// iq2_s: f16, 32 bytes of the entries' lower 8 bits, 32 bytes of signs, 8 bytes of their upper 2
/// bits, 8 bytes of scales.
void splitIq2S(const uint8_t *block, uint8_t *codes, float *scales) {
  iq2Scales(halfToFloat(load<uint16_t>(block)), block + 74, scales);
  for (int j = 0; j != 32; ++j) {
    const int high = block[66 + j / 4] >> 2 * (j % 4) & 3;
    iq2Codes(kIq2S[block[2 + j] | high << 8], block[34 + j], codes + 8 * j);
  }
}

/// iq3_xxs: f16, 64 bytes of entries, eight words as in iq2_xxs.
void splitIq3Xxs(const uint8_t *block, uint8_t *codes, float *scales) {
  const float d = halfToFloat(load<uint16_t>(block));
  for (int g = 0; g != 8; ++g) {
    const auto word = load<uint32_t>(block + 66 + 4 * g);
    scales[g] = d * (0.5f + static_cast<float>(word >> 28)) * 0.5f;
    for (int j = 0; j != 8; ++j) {
      const uint8_t signs = evenSigns(word >> 7 * (j / 2));
      iq3Codes(kIq3Xxs[block[2 + 8 * g + j]], 8, 4, static_cast<uint8_t>(signs >> 4 * (j % 2)),
               codes + 32 * g + 4 * j);
    }
  }
}

/// iq3_s: f16, 64 bytes of the entries' lower 8 bits, 8 bytes of their ninth, 32 bytes of signs,
/// eight 4-bit scales.
void splitIq3S(const uint8_t *block, uint8_t *codes, float *scales) {
  const float d = halfToFloat(load<uint16_t>(block));
  for (int g = 0; g != 8; ++g)
    scales[g] = d * static_cast<float>(1 + 2 * (block[106 + g / 2] >> 4 * (g % 2) & 15));
  for (int j = 0; j != 64; ++j) {
    const int high = block[66 + j / 8] >> j % 8 & 1;
    iq3Codes(kIq3S[block[2 + j] | high << 8], 2, 1,
             static_cast<uint8_t>(block[74 + j / 2] >> 4 * (j % 2)), codes + 4 * j);
  }
}

/// iq1_s: f16, 32 bytes of the entries' lower 8 bits, eight words for 32 values each: four times
/// the upper 3 bits, a 3-bit scale, whether values are an eighth lower (else higher).
void splitIq1S(const uint8_t *block, uint8_t *codes, float *scales) {
  const float d = halfToFloat(load<uint16_t>(block));
  for (int g = 0; g != 8; ++g) {
    const auto word = load<uint16_t>(block + 34 + 2 * g);
    scales[g] = d * static_cast<float>(2 * (word >> 12 & 7) + 1) * 0.125f;
    for (int j = 0; j != 4; ++j)
      iq1Codes(kIq1[block[2 + 4 * g + j] | (word >> 3 * j & 7) << 8], word >> 15,
               codes + 32 * g + 8 * j);
  }
}

/// iq1_m: 32 bytes of the entries' lower 8 bits, 16 bytes of two times their upper 3 bits and
/// whether values are an eighth lower, four words of four 3-bit scales and a quarter of the f16.
void splitIq1M(const uint8_t *block, uint8_t *codes, float *scales) {
  uint16_t half = 0;
  for (int i = 0; i != 4; ++i)
    half = static_cast<uint16_t>(half | (load<uint16_t>(block + 48 + 2 * i) >> 12) << 4 * i);
  const float d = halfToFloat(half);
  for (int g = 0; g != 16; ++g) {
    const int scale = load<uint16_t>(block + 48 + 2 * (g / 4)) >> 3 * (g % 4) & 7;
    scales[g] = d * static_cast<float>(2 * scale + 1) * 0.125f;
  }
  for (int j = 0; j != 32; ++j) {
    const int high = block[32 + j / 2] >> 4 * (j % 2);
    iq1Codes(kIq1[block[j] | (high & 7) << 8], high & 8, codes + 8 * j);
  }
}

} // namespace

WeightFormat iqGgufFormat(WeightEncoding encoding) {
  const bool isFine = encoding == WeightEncoding::IQ1_M || encoding == WeightEncoding::IQ2_XS ||
                      encoding == WeightEncoding::IQ2_S;
  return groupedFormat(Element::I8, isFine ? 16 : 32, Element::F32, false);
}

void splitIqGgufBlock(WeightEncoding encoding, const uint8_t *block, uint8_t *codes,
                      float *scales) {
  switch (encoding) {
  case WeightEncoding::IQ1_S:
    return splitIq1S(block, codes, scales);
  case WeightEncoding::IQ1_M:
    return splitIq1M(block, codes, scales);
  case WeightEncoding::IQ2_XXS:
    return splitIq2Xxs(block, codes, scales);
  case WeightEncoding::IQ2_XS:
    return splitIq2Xs(block, codes, scales);
  case WeightEncoding::IQ2_S:
    return splitIq2S(block, codes, scales);
  case WeightEncoding::IQ3_XXS:
    return splitIq3Xxs(block, codes, scales);
  default:
    return splitIq3S(block, codes, scales);
  }
}

} // namespace llmc
