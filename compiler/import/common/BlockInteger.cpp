#include "compiler/import/common/BlockInteger.h"

#include "compiler/quantize/HalfFloat.h"

#include <cstring>

namespace llmc {
namespace {

uint32_t codeBits(const WeightSource &source) {
  switch (source.encoding) {
  case WeightEncoding::BlockInt4:
    return 4;
  case WeightEncoding::BlockInt8:
    return 8;
  default:
    return source.bits;
  }
}

uint64_t ceilDivide(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

float floatAt(std::span<const uint8_t> bytes, WeightEncoding encoding, uint64_t index) {
  if (encoding == WeightEncoding::F32) {
    float value;
    std::memcpy(&value, bytes.data() + 4 * index, sizeof(value));
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, bytes.data() + 2 * index, sizeof(bits));
  return encoding == WeightEncoding::F16 ? halfToFloat(bits) : brainToFloat(bits);
}

int codeAt(std::span<const uint8_t> bytes, uint32_t bits, bool isSigned, uint64_t index) {
  if (bits == 8)
    return isSigned ? static_cast<int8_t>(bytes[index]) : bytes[index];
  const int nibble = bytes[index / 2] >> 4 * (index % 2) & 15;
  return isSigned && nibble >= 8 ? nibble - 16 : nibble;
}

} // namespace

BlockInteger::BlockInteger(const WeightSource &source) : source_(source), bits_(codeBits(source)) {
  blocksPerRow_ = ceilDivide(source.columns, source.block);
  const bool padded = source.encoding == WeightEncoding::NBits;
  rowStride_ = padded ? blocksPerRow_ * source.block : source.columns;
  zeroRowStride_ = padded ? ceilDivide(blocksPerRow_ * bits_, 8) * 8 / bits_ : blocksPerRow_;
  uint64_t data, scales, packedZeros, floatZeros;
  floatZeroPoints_ = padded && !source.zeroPoints.empty() &&
                     sizes(source, data, scales, packedZeros, floatZeros) &&
                     source.zeroPoints.size() == floatZeros;
}

int BlockInteger::code(uint64_t row, uint64_t column) const {
  return codeAt(source_.data, bits_, source_.signedCodes, row * rowStride_ + column);
}

float BlockInteger::scale(uint64_t block) const {
  return floatAt(source_.scales, source_.scaleEncoding, block);
}

int BlockInteger::defaultZeroPoint() const {
  return source_.encoding == WeightEncoding::NBits ? 1 << (bits_ - 1) : 0;
}

float BlockInteger::zeroPoint(uint64_t block) const {
  if (source_.zeroPoints.empty())
    return static_cast<float>(defaultZeroPoint());
  if (floatZeroPoints_)
    return floatAt(source_.zeroPoints, source_.scaleEncoding, block);
  const uint64_t index = source_.encoding == WeightEncoding::NBits
                             ? block / blocksPerRow_ * zeroRowStride_ + block % blocksPerRow_
                             : block;
  return static_cast<float>(codeAt(source_.zeroPoints, bits_, source_.signedCodes, index));
}

uint64_t BlockInteger::blockCount() const {
  return source_.blocksDown ? ceilDivide(source_.rows, source_.block) * source_.columns
                            : source_.rows * blocksPerRow_;
}

bool BlockInteger::allZeroPointsAre(int value) const {
  if (source_.zeroPoints.empty())
    return value == defaultZeroPoint();
  for (uint64_t block = 0, end = blockCount(); block != end; ++block)
    if (zeroPoint(block) != static_cast<float>(value))
      return false;
  return true;
}

bool BlockInteger::sizes(const WeightSource &source, uint64_t &data, uint64_t &scales,
                         uint64_t &packedZeros, uint64_t &floatZeros) {
  using Wide = unsigned __int128; // products of three 64-bit numbers that are checked one by one
  const uint32_t bits = codeBits(source);
  const uint64_t across = source.blocksDown ? source.rows : source.columns;
  const uint64_t along = source.blocksDown ? source.columns : source.rows;
  const uint64_t blocks = ceilDivide(across, source.block);
  const Wide count = Wide(blocks) * along;
  if (count >> 60 != 0)
    return false;
  Wide codes = Wide(source.rows) * source.columns, zeros = count;
  if (source.encoding == WeightEncoding::NBits) {
    codes = count * source.block;
    zeros = Wide(ceilDivide(blocks * bits, 8)) * 8 / bits * along;
  }
  if (codes >> 60 != 0 || zeros >> 60 != 0)
    return false;
  const uint64_t scaleBytes = source.scaleEncoding == WeightEncoding::F32 ? 4 : 2;
  data = ceilDivide(static_cast<uint64_t>(codes) * bits, 8);
  packedZeros = ceilDivide(static_cast<uint64_t>(zeros) * bits, 8);
  scales = floatZeros = static_cast<uint64_t>(count) * scaleBytes;
  return true;
}

} // namespace llmc
