#include "compiler/quantize/Pack.h"

#include "compiler/quantize/HalfFloat.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

using namespace llmc;

namespace {

constexpr int8_t kDoubledE2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// The code of each doubled value, by its byte; 0 for what is none.
constexpr std::array<uint8_t, 256> kE2m1Codes = [] {
  std::array<uint8_t, 256> codes{};
  for (uint8_t code = 15; code != 0; --code)
    if (kDoubledE2m1[code] != 0)
      codes[static_cast<uint8_t>(kDoubledE2m1[code])] = code;
  return codes;
}();

uint16_t toBrain(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (value != value) // keep a NaN a NaN: rounding could carry into infinity
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// The inverse of halfPowerOfTwo.
uint8_t powerOfTwoCode(float half) {
  if (half != half)
    return 255;
  const uint32_t bits = std::bit_cast<uint32_t>(half);
  return static_cast<uint8_t>(bits >> 23 ? (bits >> 23) + 1 : bits >> 22);
}

void storeScalar(Element element, uint8_t *at, float value) {
  if (element == Element::F32) {
    std::memcpy(at, &value, 4);
    return;
  }
  if (element == Element::E8M0) {
    *at = powerOfTwoCode(value);
    return;
  }
  uint16_t bits = element == Element::F16 ? floatToHalf(value) : toBrain(value);
  std::memcpy(at, &bits, 2);
}

float loadScalar(Element element, const uint8_t *at) {
  if (element == Element::F32) {
    float value;
    std::memcpy(&value, at, 4);
    return value;
  }
  if (element == Element::E8M0)
    return halfPowerOfTwo(*at);
  uint16_t bits;
  std::memcpy(&bits, at, 2);
  return element == Element::F16 ? halfToFloat(bits) : brainToFloat(bits);
}

bool isFloat(Element e) { return e == Element::F32 || e == Element::F16 || e == Element::BF16; }
bool isScale(Element e) { return e == Element::F32 || e == Element::F16; }
bool isFourBit(Element e) { return e == Element::I4 || e == Element::E2M1; }

std::optional<uint64_t> multiply(uint64_t a, uint64_t b) {
  uint64_t product;
  if (__builtin_mul_overflow(a, b, &product))
    return std::nullopt;
  return product;
}

/// Where things lie in a tile of N16K4. Sizes in bytes.
struct GroupLayout {
  uint64_t values; ///< of one group
  uint64_t scales, mins;
  explicit GroupLayout(const WeightFormat &f)
      : values(uint64_t(f.group) * 16 * elementBits(f.element) / 8),
        scales(16 * elementBits(f.scale) / 8), mins(f.hasMin ? 16 * elementBits(f.min) / 8 : 0) {}
  uint64_t bytes() const { return values + scales + mins; }
};

/// The byte of row \p row, element \p k of the group, and the shift of its bits in that byte.
struct Place {
  uint64_t byte;
  unsigned shift;
};
Place place(Element element, uint64_t k, unsigned row) {
  uint64_t quad = k / 4, i = k % 4;
  if (isFourBit(element))
    return {quad / 2 * 64 + 4 * row + i, quad % 2 ? 4u : 0u};
  return {quad * 64 + 4 * row + i, 0};
}

/// Of eight bytes with doubled values of e2m1, their codes.
uint64_t e2m1Codes(uint64_t doubled) {
  uint64_t codes = 0;
  for (int i = 0; i < 64; i += 8)
    codes |= uint64_t(kE2m1Codes[doubled >> i & 255]) << i;
  return codes;
}

/// The offset of element (k, row) in a tile of N16.
uint64_t placeN16(Element element, uint64_t k, unsigned row) {
  if (element == Element::BF16)
    return (k / 2 * 32 + row * 2 + k % 2) * 2;
  return (k * 16 + row) * elementBits(element) / 8;
}

} // namespace

int8_t llmc::doubledE2m1(int code) { return kDoubledE2m1[code]; }

float llmc::halfPowerOfTwo(uint8_t exponent) {
  if (exponent == 255)
    return std::numeric_limits<float>::quiet_NaN();
  // 2^(e - 128) as an f32: subnormal for the two lowest exponents.
  if (exponent < 2)
    return std::bit_cast<float>(uint32_t(0x200000) << exponent);
  return std::bit_cast<float>(uint32_t(exponent - 1) << 23);
}

uint64_t llmc::elementBits(Element element) {
  switch (element) {
  case Element::F32:
  case Element::I32:
    return 32;
  case Element::F16:
  case Element::BF16:
    return 16;
  case Element::I8:
  case Element::U8:
  case Element::E8M0:
    return 8;
  case Element::I4:
  case Element::E2M1:
    return 4;
  case Element::I64:
    return 64;
  }
  __builtin_unreachable();
}

bool llmc::isValidFormat(const WeightFormat &f) {
  switch (f.packing) {
  case Packing::Rows:
  case Packing::N16:
    return isFloat(f.element);
  case Packing::N16K4:
    if (f.element == Element::E2M1)
      return f.group > 0 && f.group % 8 == 0 && f.scale == Element::E8M0 && !f.hasMin;
    return (f.element == Element::I4 || f.element == Element::I8) && f.group > 0 &&
           f.group % (f.element == Element::I4 ? 8 : 4) == 0 && isScale(f.scale) &&
           (!f.hasMin || isScale(f.min));
  }
  return false;
}

std::optional<uint64_t> llmc::packedTileBytes(const WeightFormat &f, uint64_t columns) {
  if (!isValidFormat(f) || columns > UINT64_MAX - 1)
    return std::nullopt;
  switch (f.packing) {
  case Packing::Rows:
    return multiply(columns, kTileRows * elementBits(f.element) / 8);
  case Packing::N16:
    return multiply(f.element == Element::BF16 ? columns + columns % 2 : columns,
                    kTileRows * elementBits(f.element) / 8);
  case Packing::N16K4:
    return multiply(columns / f.group + (columns % f.group != 0), GroupLayout(f).bytes());
  }
  return std::nullopt;
}

std::optional<uint64_t> llmc::packedBytes(const WeightFormat &f, uint64_t rows, uint64_t columns) {
  std::optional<uint64_t> tile = packedTileBytes(f, columns);
  if (!tile)
    return std::nullopt;
  if (f.packing == Packing::Rows)
    return multiply(rows, *tile / kTileRows);
  return multiply(rows / kTileRows + (rows % kTileRows != 0), *tile);
}

void llmc::packTile(const WeightFormat &f, uint64_t columns, std::span<const float *const> rows,
                    uint8_t *tile) {
  assert(f.packing == Packing::N16 && isValidFormat(f) && rows.size() <= kTileRows);
  std::memset(tile, 0, *packedTileBytes(f, columns));
  for (unsigned r = 0; r < rows.size(); ++r)
    for (uint64_t k = 0; k < columns; ++k)
      storeScalar(f.element, tile + placeN16(f.element, k, r), rows[r][k]);
}

void llmc::packTile(const WeightFormat &f, uint64_t columns, std::span<const QuantizedRow> rows,
                    uint8_t *tile) {
  assert(f.packing == Packing::N16K4 && isValidFormat(f) && rows.size() <= kTileRows);
  std::memset(tile, 0, *packedTileBytes(f, columns));
  GroupLayout layout(f);
  const bool four = isFourBit(f.element), isE2m1 = f.element == Element::E2M1;
  // A nibble of zero stands for -8 in i4: rows and columns of padding hold 8.
  const uint64_t zeros = f.element == Element::I4 && !f.hasMin ? 0x0808080808080808 : 0;
  // Two quads make 8 bytes of a row; an i8 group may end after one.
  constexpr uint64_t pair = 8;
  const uint64_t groups = (columns + f.group - 1) / f.group;
  for (uint64_t g = 0; g < groups; ++g) {
    uint8_t *at = tile + g * layout.bytes();
    const uint64_t count = std::min<uint64_t>(f.group, columns - g * f.group);
    for (unsigned r = 0; r < kTileRows; ++r) {
      const bool isRow = r < rows.size();
      const uint8_t *codes = isRow ? rows[r].q + g * f.group : nullptr;
      for (uint64_t k = 0; k < f.group; k += pair) {
        uint64_t both = zeros;
        if (isRow && k + pair <= count)
          std::memcpy(&both, codes + k, sizeof(both));
        else if (isRow && k < count)
          std::memcpy(&both, codes + k, count - k);
        if (isE2m1)
          both = e2m1Codes(both);
        const uint32_t even = static_cast<uint32_t>(both), odd = static_cast<uint32_t>(both >> 32);
        uint8_t *to = at + k / (four ? pair : pair / 2) * 64 + 4 * r;
        if (four) {
          const uint32_t nibbles = (even & 0x0f0f0f0f) | (odd & 0x0f0f0f0f) << 4;
          std::memcpy(to, &nibbles, sizeof(nibbles));
          continue;
        }
        std::memcpy(to, &even, sizeof(even));
        if (k + pair / 2 < f.group)
          std::memcpy(to + 64, &odd, sizeof(odd));
      }
      if (!isRow)
        continue;
      storeScalar(f.scale, at + layout.values + r * elementBits(f.scale) / 8, rows[r].scales[g]);
      if (f.hasMin)
        storeScalar(f.min, at + layout.values + layout.scales + r * elementBits(f.min) / 8,
                    rows[r].mins[g]);
    }
  }
}

void llmc::unpackQuantizedRow(const WeightFormat &f, uint64_t columns, const uint8_t *tile,
                              unsigned row, uint8_t *q, float *scales, float *mins) {
  assert(f.packing == Packing::N16K4 && isValidFormat(f) && row < kTileRows);
  GroupLayout layout(f);
  for (uint64_t k = 0; k < columns; ++k) {
    const uint8_t *at = tile + k / f.group * layout.bytes();
    Place p = place(f.element, k % f.group, row);
    const int nibble = at[p.byte] >> p.shift & 15;
    q[k] = f.element == Element::I4     ? static_cast<uint8_t>(nibble)
           : f.element == Element::E2M1 ? static_cast<uint8_t>(kDoubledE2m1[nibble])
                                        : at[p.byte];
    if (k % f.group != 0)
      continue;
    scales[k / f.group] = loadScalar(f.scale, at + layout.values + row * elementBits(f.scale) / 8);
    if (f.hasMin && mins)
      mins[k / f.group] =
          loadScalar(f.min, at + layout.values + layout.scales + row * elementBits(f.min) / 8);
  }
}

void llmc::unpackRow(const WeightFormat &f, uint64_t columns, const uint8_t *tile, unsigned row,
                     float *values) {
  assert(isValidFormat(f) && row < kTileRows);
  if (f.packing == Packing::Rows) {
    for (uint64_t k = 0; k < columns; ++k)
      values[k] = loadScalar(f.element, tile + (row * columns + k) * elementBits(f.element) / 8);
    return;
  }
  if (f.packing == Packing::N16) {
    for (uint64_t k = 0; k < columns; ++k)
      values[k] = loadScalar(f.element, tile + placeN16(f.element, k, row));
    return;
  }
  GroupLayout layout(f);
  for (uint64_t k = 0; k < columns; ++k) {
    const uint8_t *at = tile + k / f.group * layout.bytes();
    Place p = place(f.element, k % f.group, row);
    float scale = loadScalar(f.scale, at + layout.values + row * elementBits(f.scale) / 8);
    bool isI4 = f.element == Element::I4;
    const int nibble = at[p.byte] >> p.shift & 15;
    float q = isI4                         ? float(nibble)
              : f.element == Element::E2M1 ? float(kDoubledE2m1[nibble])
                                           : float(int8_t(at[p.byte]));
    // One rounding either way: scale * (q - 8) as a fused multiply-add is what the kernels do.
    float offset = isI4 ? -8 * scale : 0;
    if (f.hasMin)
      offset = loadScalar(f.min, at + layout.values + layout.scales + row * elementBits(f.min) / 8);
    values[k] = std::fma(q, scale, offset);
  }
}
