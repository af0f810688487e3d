//===- BlockInteger.h - ONNX's integers with separate scales ------------------===//
//
// com.microsoft.MatMulNBits and blocked DequantizeLinear keep codes, scales and zero points in
// tensors of their own. This finds them by row and column of the stored matrix.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_IMPORT_COMMON_BLOCKINTEGER_H
#define LLMC_IMPORT_COMMON_BLOCKINTEGER_H

#include "compiler/import/common/WeightSource.h"

namespace llmc {

/// A view of a checked WeightSource with one of the encodings that have separate scales.
class BlockInteger {
public:
  explicit BlockInteger(const WeightSource &source);

  /// The code at (row, column) of the stored matrix, with its sign.
  int code(uint64_t row, uint64_t column) const;
  uint64_t blockOf(uint64_t row, uint64_t column) const {
    return source_.blocksDown ? row / source_.block * source_.columns + column
                              : row * blocksPerRow_ + column / source_.block;
  }
  float scale(uint64_t block) const;
  /// The zero point of a block; an integer unless floatZeroPoints().
  float zeroPoint(uint64_t block) const;
  bool floatZeroPoints() const { return floatZeroPoints_; }
  /// The zero point that all blocks share when the tensor has none: the code of the value 0.
  int defaultZeroPoint() const;
  /// True when every block's zero point is \p value.
  bool allZeroPointsAre(int value) const;
  uint64_t blockCount() const;
  uint32_t bits() const { return bits_; }

  /// Bytes that the data, the scales and integer or float zero points must have; false when one
  /// doesn't fit 64 bits.
  static bool sizes(const WeightSource &source, uint64_t &data, uint64_t &scales,
                    uint64_t &packedZeros, uint64_t &floatZeros);

private:
  const WeightSource &source_;
  uint32_t bits_;
  uint64_t blocksPerRow_;
  uint64_t rowStride_;     ///< codes from one stored row to the next, padding included
  uint64_t zeroRowStride_; ///< NBits: zero points from one row to the next, padding included
  bool floatZeroPoints_;
};

} // namespace llmc

#endif // LLMC_IMPORT_COMMON_BLOCKINTEGER_H
