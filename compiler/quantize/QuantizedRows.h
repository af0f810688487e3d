//===- QuantizedRows.h - rows of a matrix as grouped integers -----------------===//
//
// What the quantizers produce, what exactly mapped checkpoints are read as, and what the packer
// takes. A group is `format.group` consecutive weights of one row, along K.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_QUANTIZE_QUANTIZEDROWS_H
#define LLMC_QUANTIZE_QUANTIZEDROWS_H

#include "compiler/quantize/Pack.h"

#include <vector>

namespace llmc {

struct QuantizedRows {
  WeightFormat format; ///< of packing N16K4
  uint64_t rows = 0;
  uint64_t columns = 0;
  std::vector<uint8_t> codes; ///< [rows][columns]; i4: 0 .. 15, i8, e2m1: two's complement
  std::vector<float> scales;  ///< [rows][groups], each a value of format.scale
  std::vector<float> mins;    ///< [rows][groups], each a value of format.min; empty without

  uint64_t groups() const { return columns / format.group + (columns % format.group != 0); }

  /// Makes room; the contents are unspecified. Memory is kept between calls.
  void resize(const WeightFormat &newFormat, uint64_t rowCount, uint64_t columnCount) {
    format = newFormat;
    rows = rowCount;
    columns = columnCount;
    codes.resize(rows * columns);
    scales.resize(rows * groups());
    mins.resize(format.hasMin ? rows * groups() : 0);
  }

  /// Row \p i as packTile takes it.
  QuantizedRow row(uint64_t i) const {
    return {codes.data() + i * columns, scales.data() + i * groups(),
            format.hasMin ? mins.data() + i * groups() : nullptr};
  }
};

/// i4 or i8 codes in groups of \p group with scales (and minimums) of type \p scale.
inline WeightFormat groupedFormat(Element element, uint32_t group, Element scale, bool hasMin) {
  return {element, Packing::N16K4, group, scale, hasMin, hasMin ? scale : Element::F32};
}

/// Whether \p format holds the codes and scales of \p source as they are: an i8 with f32 scales has
/// room for e2m1's.
inline bool holdsCodesOf(const WeightFormat &format, const WeightFormat &source) {
  return format == source ||
         (source.element == Element::E2M1 &&
          format == groupedFormat(Element::I8, source.group, Element::F32, false));
}

/// The value that a code stands for.
inline float decodeValue(const WeightFormat &format, uint8_t code, float scale, float min) {
  if (format.element == Element::I4)
    return format.hasMin ? scale * static_cast<float>(code) + min
                         : scale * static_cast<float>(static_cast<int>(code) - 8);
  const float q = static_cast<float>(static_cast<int8_t>(code));
  return format.hasMin ? scale * q + min : scale * q;
}

} // namespace llmc

#endif // LLMC_QUANTIZE_QUANTIZEDROWS_H
