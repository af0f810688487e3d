//===- WeightSource.h - one tensor of a model's files -------------------------===//
//
// Says where a matrix lies and how its values are encoded, and reads rows of it: as f32, or as the
// integers that it already holds. Nothing is copied or converted before a row is asked for; all
// reads are of any alignment (safetensors gives none) and safe to do from many threads.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_IMPORT_COMMON_WEIGHTSOURCE_H
#define LLMC_IMPORT_COMMON_WEIGHTSOURCE_H

#include "compiler/import/common/WeightEncoding.h"
#include "compiler/quantize/QuantizedRows.h"
#include "runtime/support/Status.h"

#include <optional>
#include <span>
#include <string>

namespace llmc {

/// A matrix [rows, columns] in a file; a vector [N] has N rows and one column. The bytes must
/// outlive the source (they are of a MappedFile, as a rule).
struct WeightSource {
  std::string name; ///< as the model calls it, for messages
  WeightEncoding encoding = WeightEncoding::F32;
  uint64_t rows = 0, columns = 0; ///< of the matrix as the file stores it, row-major
  /// The matrix that is read is the transpose of what is stored. Not for GGUF's block forms.
  bool transposed = false;

  std::span<const uint8_t> data = {};

  // NBits, BlockInt4 and BlockInt8 only: value = scale * (code - zero point).
  /// Scales, row-major in the order of the blocks: NBits [rows][blocks of a row], the others
  /// [rows][blocks] or, with blocksDown, [blocks][columns].
  std::span<const uint8_t> scales = {};
  /// Zero points, or empty: 0 for signed codes, otherwise half the range (NBits) or 0. Of the
  /// codes' type, packed like them (NBits: each row on its own bytes); NBits also as values of the
  /// scales' type, which is known by their size.
  std::span<const uint8_t> zeroPoints = {};
  WeightEncoding scaleEncoding = WeightEncoding::F32; ///< F32, F16 or BF16
  uint64_t block = 0;       ///< values that share a scale; the last block of a row may be short
  bool blocksDown = false;  ///< blocks run down the stored columns (ONNX: axis 0), else along rows
  uint32_t bits = 4;        ///< NBits: 4 or 8
  bool signedCodes = false; ///< BlockInt4, BlockInt8: int4 and int8, else uint4 and uint8

  // CheckpointForm's encodings only; zeroPoints are the levels of nf4.
  std::span<const uint8_t> groupIndex = {};   ///< gptq: the group of each column
  std::span<const uint8_t> nestedScales = {}; ///< nf4: scales of the scales
  std::span<const uint8_t> nestedLevels = {}; ///< nf4: levels of the scales
  float scaleOffset = 0;                      ///< nf4: added to each nested scale

  uint64_t logicalRows() const { return transposed ? columns : rows; }
  uint64_t logicalColumns() const { return transposed ? rows : columns; }

  /// Checks that every range has exactly the size that the shape needs, with checked arithmetic,
  /// and that the description makes sense. To be called once, before anything is read.
  llmrt::Status check() const;

  /// Writes rows [begin, end) of the (transposed) matrix as f32, exactly as the encoding defines
  /// them (f64 is rounded to nearest). A value that isn't finite is an error with its place.
  llmrt::Status readRows(uint64_t begin, uint64_t end, float *values) const;

  /// The grouped integer format in which the matrix can be read without rounding anything but what
  /// exactMinimums speaks of; none for float encodings, blocks across rows, or block sizes that the
  /// packing doesn't have.
  std::optional<WeightFormat> quantizedFormat() const;
  /// False where a minimum -scale * zero point may be off by half an f32 ulp: NBits and BlockInt
  /// with f32 scales and zero points that aren't the middle. The integers and scales are exact
  /// always.
  bool exactMinimums() const;

  /// Reads rows [begin, end) as integers of \p format, which is that of quantizedFormat() (asked
  /// for once a tensor: it may look at every zero point). A scale or minimum that isn't finite is
  /// an error with its place.
  llmrt::Status readQuantizedRows(uint64_t begin, uint64_t end, const WeightFormat &format,
                                  QuantizedRows &result) const;
};

/// Fails when one of \p values, row-major from row \p firstRow on, is NaN or infinite. \p what
/// names the whole in the message.
llmrt::Status checkFinite(std::span<const float> values, const std::string &what, uint64_t firstRow,
                          uint64_t columns);

} // namespace llmc

#endif // LLMC_IMPORT_COMMON_WEIGHTSOURCE_H
