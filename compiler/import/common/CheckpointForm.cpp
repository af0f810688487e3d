#include "compiler/import/common/CheckpointForm.h"

#include "compiler/import/common/GgufExtraBlocks.h"
#include "compiler/quantize/HalfFloat.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

using namespace llmrt;

namespace llmc {
namespace {

template <typename T> T load(std::span<const uint8_t> bytes, uint64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

uint64_t ceilDivide(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

float floatAt(std::span<const uint8_t> bytes, WeightEncoding encoding, uint64_t index) {
  if (encoding == WeightEncoding::F32)
    return load<float>(bytes, index);
  const auto bits = load<uint16_t>(bytes, index);
  return encoding == WeightEncoding::F16 ? halfToFloat(bits) : brainToFloat(bits);
}

bool isInteger(WeightEncoding e) {
  return e == WeightEncoding::Gptq || e == WeightEncoding::GptqV2 || e == WeightEncoding::Awq ||
         e == WeightEncoding::PackedInt;
}

/// Where awq puts column i of eight: the place among the nibbles.
constexpr int kAwqPlace[8] = {0, 4, 1, 5, 2, 6, 3, 7};

/// bitsandbytes' 1 / 127.
constexpr float kRowInt8Unit = 7.874015718698502e-3f;

/// Values of a scale of one value, a row, or a block of a row each.
uint64_t scaleValues(const WeightSource &s) {
  return s.scales.size() / (s.scaleEncoding == WeightEncoding::F32 ? 4 : 2);
}

} // namespace

float fp8ToFloat(uint8_t bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  if (exponent == 15 && mantissa == 7)
    return std::numeric_limits<float>::quiet_NaN();
  const float magnitude =
      exponent ? std::ldexp(float(8 + mantissa), exponent - 10) : std::ldexp(float(mantissa), -9);
  return bits & 0x80 ? -magnitude : magnitude;
}

Status CheckpointForm::check(const WeightSource &s) {
  const std::string form = encodingName(s.encoding);
  const std::string shape = "[" + std::to_string(s.rows) + ", " + std::to_string(s.columns) + "]";
  const auto fail = [&](const std::string &why) {
    return invalidFile("tensor '" + s.name + "' (" + form + ", " + shape + "): " + why);
  };
  // Each is at most 2^40, so products of two with 16 bytes an element fit 64 bits... checked.
  if (s.rows == 0 || s.columns == 0 || s.rows > (uint64_t(1) << 40) / s.columns)
    return fail("the shape is empty or too large");
  if (s.transposed)
    return fail("can't be read as its transpose");
  if (s.block == 0)
    return fail("has a group size of 0");
  const auto need = [&](const char *what, std::span<const uint8_t> has, uint64_t bytes) {
    return has.size() == bytes ? Status::ok()
                               : fail(std::string(what) + " have " + std::to_string(has.size()) +
                                      " bytes; " + std::to_string(bytes) + " are needed");
  };
  const uint64_t scaleBytes = s.scaleEncoding == WeightEncoding::F32 ? 4 : 2;
  if (s.scaleEncoding > WeightEncoding::BF16)
    return fail(std::string("has scales of ") + encodingName(s.scaleEncoding) +
                "; f32, f16 and bf16 are supported");
  const uint64_t values = s.rows * s.columns, groups = ceilDivide(s.columns, s.block);
  if (isInteger(s.encoding)) {
    if (s.bits != 4 && s.bits != 8)
      return fail("has codes of " + std::to_string(s.bits) + " bits; 4 and 8 are supported");
    const uint64_t perWord = 32 / s.bits;
    const bool alongColumns = s.encoding == WeightEncoding::PackedInt;
    if (s.encoding == WeightEncoding::Awq && s.bits != 4)
      return fail("has codes of 8 bits; awq has 4");
    if (!alongColumns && (s.rows % perWord != 0 || s.columns % perWord != 0))
      return fail("both sizes must be multiples of " + std::to_string(perWord));
    LLMRT_RETURN_IF_ERROR(
        need("its codes", s.data,
             4 * (alongColumns ? s.rows * ceilDivide(s.columns, perWord) : values / perWord)));
    LLMRT_RETURN_IF_ERROR(need("its scales", s.scales, s.rows * groups * scaleBytes));
    if (!s.zeroPoints.empty() || !alongColumns)
      LLMRT_RETURN_IF_ERROR(
          need("its zero points", s.zeroPoints, 4 * ceilDivide(s.rows, perWord) * groups));
    if (s.groupIndex.empty())
      return Status::ok();
    LLMRT_RETURN_IF_ERROR(need("its group indices", s.groupIndex, 4 * s.columns));
    for (uint64_t k = 0; k != s.columns; ++k)
      if (const auto group = load<int32_t>(s.groupIndex, k);
          group < 0 || static_cast<uint64_t>(group) >= groups)
        return fail("the group of column " + std::to_string(k) + " is " + std::to_string(group) +
                    "; there are " + std::to_string(groups));
    return Status::ok();
  }
  switch (s.encoding) {
  case WeightEncoding::RowInt8:
    LLMRT_RETURN_IF_ERROR(need("its codes", s.data, values));
    return need("its scales", s.scales, 4 * s.rows);
  case WeightEncoding::SplitMXFP4:
    if (s.block != 32 || s.columns % 32 != 0)
      return fail("must have rows of whole blocks of 32");
    LLMRT_RETURN_IF_ERROR(need("its codes", s.data, values / 2));
    return need("its exponents", s.scales, values / 32);
  case WeightEncoding::NF4: {
    const uint64_t blocks = ceilDivide(values, s.block);
    LLMRT_RETURN_IF_ERROR(need("its codes", s.data, ceilDivide(values, 2)));
    LLMRT_RETURN_IF_ERROR(need("its levels", s.zeroPoints, 64));
    if (s.nestedScales.empty())
      return need("its scales", s.scales, 4 * blocks);
    LLMRT_RETURN_IF_ERROR(need("its scales", s.scales, blocks));
    LLMRT_RETURN_IF_ERROR(
        need("the scales of its scales", s.nestedScales, 4 * ceilDivide(blocks, 256)));
    return need("the levels of its scales", s.nestedLevels, 1024);
  }
  default: // FP8
    LLMRT_RETURN_IF_ERROR(need("its codes", s.data, values));
    if (const uint64_t count = scaleValues(s);
        s.scales.size() % scaleBytes ||
        (count != 1 && count != (s.block == 1 ? s.rows : ceilDivide(s.rows, s.block) * groups)))
      return fail("has " + std::to_string(count) + " scales; one, or one " +
                  (s.block == 1
                       ? "a row"
                       : "for each " + std::to_string(s.block) + " x " + std::to_string(s.block)) +
                  " is needed");
    return Status::ok();
  }
}

CheckpointForm::CheckpointForm(const WeightSource &source)
    : source_(source), perWord_(32 / source.bits),
      groups_(ceilDivide(source.columns, source.block)) {}

int CheckpointForm::code(uint64_t row, uint64_t column) const {
  const WeightSource &s = source_;
  const auto mask = static_cast<int>((1u << s.bits) - 1);
  uint64_t word, place;
  switch (s.encoding) {
  case WeightEncoding::Awq:
    word = column * (s.rows / 8) + row / 8;
    place = kAwqPlace[row % 8];
    break;
  case WeightEncoding::PackedInt:
    word = row * ceilDivide(s.columns, perWord_) + column / perWord_;
    place = column % perWord_;
    break;
  default:
    word = column / perWord_ * s.rows + row;
    place = column % perWord_;
  }
  return static_cast<int>(load<uint32_t>(s.data, word) >> place * s.bits) & mask;
}

int CheckpointForm::zeroPoint(uint64_t row, uint64_t group) const {
  const WeightSource &s = source_;
  const auto mask = static_cast<int>((1u << s.bits) - 1);
  if (s.zeroPoints.empty())
    return (mask + 1) / 2;
  const uint64_t words = s.rows / perWord_;
  const auto at = [&](uint64_t word, uint64_t place) {
    return static_cast<int>(load<uint32_t>(s.zeroPoints, word) >> place * s.bits) & mask;
  };
  switch (s.encoding) {
  case WeightEncoding::Awq:
    return at(group * words + row / 8, kAwqPlace[row % 8]);
  case WeightEncoding::PackedInt:
    return at(row / perWord_ * groups_ + group, row % perWord_);
  case WeightEncoding::Gptq: // stored one too small: 0 became the largest code
    return (at(group * words + row / perWord_, row % perWord_) + 1) & mask;
  default:
    return at(group * words + row / perWord_, row % perWord_);
  }
}

float CheckpointForm::scale(uint64_t row, uint64_t group) const {
  const bool byRow = source_.encoding == WeightEncoding::PackedInt;
  return floatAt(source_.scales, source_.scaleEncoding,
                 byRow ? row * groups_ + group : group * source_.rows + row);
}

/// nf4: the scale of a block of the row-major order.
float CheckpointForm::nestedScale(uint64_t block) const {
  const WeightSource &s = source_;
  if (s.nestedScales.empty())
    return load<float>(s.scales, block);
  const float level = load<float>(s.nestedLevels, s.scales[block]);
  return level * load<float>(s.nestedScales, block / 256) + s.scaleOffset;
}

void CheckpointForm::readFp8Row(uint64_t row, float *values) const {
  static const auto table = [] {
    std::array<float, 256> result;
    for (int i = 0; i != 256; ++i)
      result[i] = fp8ToFloat(static_cast<uint8_t>(i));
    return result;
  }();
  const WeightSource &s = source_;
  const uint64_t count = scaleValues(s);
  for (uint64_t c = 0; c != s.columns; ++c) {
    const uint64_t index = count == 1     ? 0
                           : s.block == 1 ? row
                                          : row / s.block * groups_ + c / s.block;
    values[c] = table[s.data[row * s.columns + c]] * floatAt(s.scales, s.scaleEncoding, index);
  }
}

void CheckpointForm::readRows(uint64_t begin, uint64_t end, float *values) const {
  const WeightSource &s = source_;
  for (uint64_t r = begin; r != end; ++r, values += s.columns) {
    if (s.encoding == WeightEncoding::FP8) {
      readFp8Row(r, values);
      continue;
    }
    for (uint64_t c = 0; c != s.columns; ++c) {
      const uint64_t at = r * s.columns + c;
      if (s.encoding == WeightEncoding::SplitMXFP4) {
        values[c] = static_cast<float>(doubledE2m1(s.data[at / 2] >> 4 * (at % 2) & 15)) *
                    halfPowerOfTwo(s.scales[at / 32]);
      } else if (s.encoding == WeightEncoding::RowInt8) {
        values[c] = static_cast<float>(static_cast<int8_t>(s.data[at])) * load<float>(s.scales, r) *
                    kRowInt8Unit;
      } else if (s.encoding == WeightEncoding::NF4) {
        const int nibble = s.data[at / 2] >> (at % 2 ? 0 : 4) & 15;
        values[c] = load<float>(s.zeroPoints, nibble) * nestedScale(at / s.block);
      } else {
        const uint64_t group = s.groupIndex.empty() ? c / s.block : load<uint32_t>(s.groupIndex, c);
        values[c] = scale(r, group) * static_cast<float>(code(r, c) - zeroPoint(r, group));
      }
    }
  }
}

std::optional<WeightFormat> CheckpointForm::quantizedFormat() const {
  if (source_.encoding == WeightEncoding::SplitMXFP4)
    return groupedFormat(Element::E2M1, 32, Element::E8M0, false);
  if (!isInteger(source_.encoding) || !source_.groupIndex.empty() || source_.block % 16 != 0 ||
      source_.block > 4096) // what kernels have
    return std::nullopt;
  // The middle of the range is i4's zero without a minimum, and i8's after the shift by 128.
  const bool hasMin = !source_.zeroPoints.empty();
  const WeightFormat format = groupedFormat(
      source_.bits == 4 ? Element::I4 : Element::I8, static_cast<uint32_t>(source_.block),
      source_.scaleEncoding == WeightEncoding::F16 && !hasMin ? Element::F16 : Element::F32,
      hasMin);
  return isValidFormat(format) ? std::optional(format) : std::nullopt;
}

void CheckpointForm::readQuantizedRow(uint64_t row, uint8_t *codes, float *scales,
                                      float *mins) const {
  if (source_.encoding == WeightEncoding::SplitMXFP4) {
    const uint64_t first = row * source_.columns;
    for (uint64_t c = 0; c != source_.columns; c += 2) {
      const uint8_t pair = source_.data[(first + c) / 2];
      codes[c] = static_cast<uint8_t>(doubledE2m1(pair & 15));
      codes[c + 1] = static_cast<uint8_t>(doubledE2m1(pair >> 4));
    }
    for (uint64_t g = 0; g != groups_; ++g)
      scales[g] = halfPowerOfTwo(source_.scales[first / 32 + g]);
    return;
  }
  // i8 is signed: what its codes are moved by goes into the minimum.
  const int shift = source_.bits == 8 ? -128 : 0;
  for (uint64_t c = 0; c != source_.columns; ++c)
    codes[c] = static_cast<uint8_t>(code(row, c) + shift);
  for (uint64_t g = 0; g != groups_; ++g) {
    scales[g] = scale(row, g);
    if (!source_.zeroPoints.empty()) // an f16 or bf16 scale times 9 bits is exact
      mins[g] = -(scales[g] * static_cast<float>(zeroPoint(row, g) + shift));
  }
}

} // namespace llmc
