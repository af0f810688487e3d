#include "compiler/import/common/WeightSource.h"

#include "compiler/import/common/BlockInteger.h"
#include "compiler/import/common/CheckpointForm.h"
#include "compiler/quantize/HalfFloat.h"

#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>

using namespace llmrt;

namespace llmc {
namespace {

bool hasSeparateScales(WeightEncoding e) { return !isFloatEncoding(e) && !isGgufBlock(e); }

template <typename T> T load(const uint8_t *bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

/// \p count values of a float encoding, \p stride bytes apart.
void convertFloats(WeightEncoding encoding, const uint8_t *from, uint64_t stride, uint64_t count,
                   float *to) {
  switch (encoding) {
  case WeightEncoding::F32:
    if (stride == 4) {
      std::memcpy(to, from, 4 * count);
      return;
    }
    for (uint64_t i = 0; i != count; ++i)
      to[i] = load<float>(from + i * stride);
    return;
  case WeightEncoding::F16:
    for (uint64_t i = 0; i != count; ++i)
      to[i] = halfToFloat(load<uint16_t>(from + i * stride));
    return;
  case WeightEncoding::BF16:
    for (uint64_t i = 0; i != count; ++i)
      to[i] = brainToFloat(load<uint16_t>(from + i * stride));
    return;
  default:
    for (uint64_t i = 0; i != count; ++i)
      to[i] = static_cast<float>(load<double>(from + i * stride));
  }
}

void readFloatRows(const WeightSource &source, uint64_t begin, uint64_t end, float *values) {
  const uint64_t size = encodingBlock(source.encoding).bytes;
  if (!source.transposed) {
    convertFloats(source.encoding, source.data.data() + begin * source.columns * size, size,
                  (end - begin) * source.columns, values);
    return;
  }
  // A run of end - begin neighbours from every stored row, so that a tile of 16 rows reads whole
  // cache lines.
  const uint64_t count = end - begin;
  float run[64];
  for (uint64_t from = 0; from < count; from += 64) {
    const uint64_t length = std::min<uint64_t>(64, count - from);
    for (uint64_t k = 0; k != source.rows; ++k) {
      convertFloats(source.encoding,
                    source.data.data() + (k * source.columns + begin + from) * size, size, length,
                    run);
      for (uint64_t i = 0; i != length; ++i)
        values[(from + i) * source.rows + k] = run[i];
    }
  }
}

void readGgufRows(const WeightSource &source, uint64_t begin, uint64_t end, float *values) {
  const EncodingBlock block = encodingBlock(source.encoding);
  const WeightFormat format = ggufBlockFormat(source.encoding);
  const uint8_t *from = source.data.data() + begin * (source.columns / block.values) * block.bytes;
  uint8_t codes[256];
  float scales[16], mins[16] = {};
  for (uint64_t b = (end - begin) * (source.columns / block.values); b != 0; --b) {
    splitGgufBlock(source.encoding, from, codes, scales, mins);
    for (uint32_t i = 0; i != block.values; ++i) {
      const uint32_t group = i / format.group;
      values[i] = decodeValue(format, codes[i], scales[group], mins[group]);
    }
    from += block.bytes;
    values += block.values;
  }
}

void readBlockIntegerRows(const WeightSource &source, uint64_t begin, uint64_t end, float *values) {
  const BlockInteger blocks(source);
  const uint64_t columns = source.logicalColumns();
  for (uint64_t r = begin; r != end; ++r)
    for (uint64_t c = 0; c != columns; ++c) {
      const uint64_t row = source.transposed ? c : r, column = source.transposed ? r : c;
      const uint64_t block = blocks.blockOf(row, column);
      *values++ = blocks.scale(block) *
                  (static_cast<float>(blocks.code(row, column)) - blocks.zeroPoint(block));
    }
}

std::string quoted(const std::string &name) { return "tensor '" + name + "'"; }

Status rowsOutside(const WeightSource &source, uint64_t begin, uint64_t end) {
  return internalError(quoted(source.name) + ": rows [" + std::to_string(begin) + ", " +
                       std::to_string(end) + ") of " + std::to_string(source.logicalRows()));
}

} // namespace

Status checkFinite(std::span<const float> values, const std::string &what, uint64_t firstRow,
                   uint64_t columns) {
  // An exponent of all ones; the sum over the row vectorises, the search is for the message only.
  const auto isSpecial = [](float value) {
    return (std::bit_cast<uint32_t>(value) & 0x7f800000u) == 0x7f800000u;
  };
  uint32_t special = 0;
  for (float value : values)
    special |= isSpecial(value);
  if (!special)
    return Status::ok();
  size_t i = 0;
  while (!isSpecial(values[i]))
    ++i;
  return invalidFile(what + ": the value at row " + std::to_string(firstRow + i / columns) +
                     ", column " + std::to_string(i % columns) + " is " +
                     (std::isnan(values[i]) ? "NaN" : "infinite") +
                     "; weights must be finite numbers");
}

Status WeightSource::check() const {
  const auto fail = [&](const std::string &why) { return invalidFile(quoted(name) + ": " + why); };
  if (isCheckpointForm(encoding))
    return CheckpointForm::check(*this);
  const std::string shape = "[" + std::to_string(rows) + ", " + std::to_string(columns) + "]";
  const std::string form = encodingName(encoding);
  if (rows != 0 && columns > UINT64_MAX / rows)
    return fail("the shape " + shape + " doesn't fit 64 bits");
  if (!hasSeparateScales(encoding)) {
    const EncodingBlock unit = encodingBlock(encoding);
    if (columns % unit.values != 0)
      return fail("rows of " + std::to_string(columns) + " values don't fill whole blocks of " +
                  std::to_string(unit.values) + ", as " + form + " needs");
    if (transposed && isGgufBlock(encoding))
      return fail("the blocks of " + form + " can't be read across rows");
    const unsigned __int128 need =
        static_cast<unsigned __int128>(rows) * (columns / unit.values) * unit.bytes;
    if (need != data.size())
      return fail("has " + std::to_string(data.size()) + " bytes; the shape " + shape + " in " +
                  form + " needs " +
                  (need >> 64 ? std::string("more than 2^64")
                              : std::to_string(static_cast<uint64_t>(need))));
    return Status::ok();
  }
  if (block == 0)
    return fail("has a block size of 0");
  if (encoding == WeightEncoding::NBits &&
      ((bits != 4 && bits != 8) || blocksDown || signedCodes || block * bits % 8 != 0))
    return fail("has " + std::to_string(bits) + " bits in blocks of " + std::to_string(block) +
                "; 4 and 8 bits in blocks of whole bytes are supported");
  if (scaleEncoding > WeightEncoding::BF16)
    return fail(std::string("has scales of ") + encodingName(scaleEncoding) +
                "; f32, f16 and bf16 are supported");
  uint64_t needData, needScales, needZeros, needFloatZeros;
  if (!BlockInteger::sizes(*this, needData, needScales, needZeros, needFloatZeros))
    return fail("the shape " + shape + " doesn't fit 64 bits");
  const auto mismatch = [&](const char *what, uint64_t has, uint64_t need) {
    return fail(std::string(what) + " have " + std::to_string(has) + " bytes; the shape " + shape +
                " with blocks of " + std::to_string(block) + " needs " + std::to_string(need));
  };
  if (data.size() != needData)
    return mismatch("its codes", data.size(), needData);
  if (scales.size() != needScales)
    return mismatch("its scales", scales.size(), needScales);
  if (!zeroPoints.empty() && zeroPoints.size() != needZeros &&
      !(encoding == WeightEncoding::NBits && zeroPoints.size() == needFloatZeros))
    return mismatch("its zero points", zeroPoints.size(), needZeros);
  return Status::ok();
}

Status WeightSource::readRows(uint64_t begin, uint64_t end, float *values) const {
  if (begin > end || end > logicalRows())
    return rowsOutside(*this, begin, end);
  if (isFloatEncoding(encoding))
    readFloatRows(*this, begin, end, values);
  else if (isGgufBlock(encoding))
    readGgufRows(*this, begin, end, values);
  else if (isCheckpointForm(encoding))
    CheckpointForm(*this).readRows(begin, end, values);
  else
    readBlockIntegerRows(*this, begin, end, values);
  return checkFinite({values, (end - begin) * logicalColumns()}, quoted(name), begin,
                     logicalColumns());
}

std::optional<WeightFormat> WeightSource::quantizedFormat() const {
  if (isFloatEncoding(encoding))
    return std::nullopt;
  if (isGgufBlock(encoding))
    return ggufBlockFormat(encoding);
  if (isCheckpointForm(encoding))
    return CheckpointForm(*this).quantizedFormat();
  if (blocksDown != transposed) // the blocks run across the rows that are read
    return std::nullopt;
  const BlockInteger blocks(*this);
  const uint64_t limit = uint64_t(1) << 20;
  if (block > limit)
    return std::nullopt;
  // i4 without a minimum is scale * (q - 8): the middle of the unsigned range, 0 of the signed one.
  const int middle = signedCodes ? 0 : 1 << (blocks.bits() - 1);
  const bool hasMin = !blocks.allZeroPointsAre(middle);
  const WeightFormat format = groupedFormat(
      blocks.bits() == 4 ? Element::I4 : Element::I8, static_cast<uint32_t>(block),
      scaleEncoding == WeightEncoding::F16 && !hasMin ? Element::F16 : Element::F32, hasMin);
  if (!isValidFormat(format))
    return std::nullopt;
  return format;
}

bool WeightSource::exactMinimums() const {
  const std::optional<WeightFormat> format = quantizedFormat();
  if (isCheckpointForm(encoding))
    return !format || !format->hasMin || scaleEncoding != WeightEncoding::F32;
  // An f16 or bf16 scale times an integer of 9 bits fits 24 bits.
  return !format || !format->hasMin || !hasSeparateScales(encoding) ||
         (scaleEncoding != WeightEncoding::F32 && !BlockInteger(*this).floatZeroPoints());
}

Status WeightSource::readQuantizedRows(uint64_t begin, uint64_t end, const WeightFormat &format,
                                       QuantizedRows &result) const {
  if (begin > end || end > logicalRows())
    return rowsOutside(*this, begin, end);
  assert(!isFloatEncoding(encoding) && "not integers");
  result.resize(format, end - begin, logicalColumns());
  uint8_t *codes = result.codes.data();
  float *scalesOut = result.scales.data(), *minsOut = result.mins.data();
  if (isGgufBlock(encoding)) {
    const EncodingBlock unit = encodingBlock(encoding);
    const uint32_t groups = unit.values / format.group;
    const uint64_t perRow = columns / unit.values;
    const uint8_t *from = data.data() + begin * perRow * unit.bytes;
    float unused[16];
    for (uint64_t b = (end - begin) * perRow; b != 0; --b) {
      splitGgufBlock(encoding, from, codes, scalesOut, format.hasMin ? minsOut : unused);
      from += unit.bytes;
      codes += unit.values;
      scalesOut += groups;
      minsOut += format.hasMin ? groups : 0;
    }
  } else if (isCheckpointForm(encoding)) {
    const CheckpointForm form(*this);
    const uint64_t groups = result.groups();
    for (uint64_t r = begin; r != end; ++r, codes += columns, scalesOut += groups) {
      form.readQuantizedRow(r, codes, scalesOut, minsOut);
      minsOut += format.hasMin ? groups : 0;
    }
  } else {
    const BlockInteger blocks(*this);
    // Codes of the format: i4 0 .. 15, i8 -128 .. 127; what was shifted goes into the minimum.
    const int shift = blocks.bits() == 4 ? (signedCodes ? 8 : 0) : (signedCodes ? 0 : -128);
    const uint64_t logical = logicalColumns();
    for (uint64_t r = begin; r != end; ++r)
      for (uint64_t c = 0; c != logical; ++c) {
        const uint64_t row = transposed ? c : r, column = transposed ? r : c;
        *codes++ = static_cast<uint8_t>(blocks.code(row, column) + shift);
        if (c % block != 0)
          continue;
        const uint64_t index = blocks.blockOf(row, column);
        const float scale = blocks.scale(index);
        *scalesOut++ = scale;
        if (format.hasMin)
          *minsOut++ = -(scale * (blocks.zeroPoint(index) + static_cast<float>(shift)));
      }
  }
  const uint64_t groups = result.groups();
  LLMRT_RETURN_IF_ERROR(
      checkFinite(result.scales, "scales of the groups of " + quoted(name), begin, groups));
  return checkFinite(result.mins, "minimums of the groups of " + quoted(name), begin, groups);
}

} // namespace llmc
