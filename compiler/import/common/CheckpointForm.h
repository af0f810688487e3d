//===- CheckpointForm.h - matrices of pre-quantized checkpoints ---------------===//
//
// The layouts that quantization tools write into safetensors, each as their readers define it. W is
// [rows N, columns K]; a word is a little-endian int32 of 32 / bits codes, the first in its lowest
// bits:
//
//   gptq        codes: words [K / 8, N] down the columns; zero points: words [K / group, N / 8]
//               along the rows, one too small (modulo the range) in gptq, as they are in gptq_v2;
//               scales [K / group, N]; optionally the group of each column, int32[K] (act-order)
//   awq         codes: words [K, N / 8], columns 0 2 4 6 1 3 5 7 of eight from the lowest bits;
//               zero points likewise [K / group, N / 8]; scales [K / group, N]
//   packed_int  compressed-tensors' pack-quantized: codes plus half the range, words [N, K / 8];
//               scales [N, K / group]; optionally zero points plus half the range, words
//               [N / 8, K / group] down the rows
//   nf4         bitsandbytes: two codes a byte, the first in the high bits, row-major; levels
//               f32[16]; a scale for each block of the row-major order, f32, or nested: a byte, its
//               levels f32[256], a scale f32 for each 256 of them, and an offset for all
//   row_int8    bitsandbytes: int8 [N, K], scales f32[N], of which 127 is 1
//   split_mxfp4 GPT-OSS: e2m1 (OCP Microscaling), two codes a byte, the first in the low bits,
//               [N, K / 2]; exponents e8m0 [N, K / 32]
//   fp8         e4m3 (OCP) [N, K]; scales: one, [N] (block 1), or [N / block, K / block]
//
// (8 is 32 / bits.)
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_IMPORT_COMMON_CHECKPOINTFORM_H
#define LLMC_IMPORT_COMMON_CHECKPOINTFORM_H

#include "compiler/import/common/WeightSource.h"

namespace llmc {

/// A view of a WeightSource with one of these encodings.
class CheckpointForm {
public:
  /// Sizes, bits and group indices. To be called once, before anything is read.
  static llmrt::Status check(const WeightSource &source);

  /// \p source has passed check().
  explicit CheckpointForm(const WeightSource &source);

  /// Rows [begin, end) as f32; products are rounded once, in f32.
  void readRows(uint64_t begin, uint64_t end, float *values) const;

  /// The grouped format that holds the matrix exactly: gptq without act-order, awq,
  /// packed_int, split_mxfp4.
  std::optional<WeightFormat> quantizedFormat() const;
  /// Row \p row in that format.
  void readQuantizedRow(uint64_t row, uint8_t *codes, float *scales, float *mins) const;

private:
  int code(uint64_t row, uint64_t column) const;
  int zeroPoint(uint64_t row, uint64_t group) const;
  float scale(uint64_t row, uint64_t group) const;
  float nestedScale(uint64_t block) const;
  void readFp8Row(uint64_t row, float *values) const;

  const WeightSource &source_;
  uint64_t perWord_ = 8, groups_ = 1;
};

/// The value of an OCP e4m3 byte; NaN for 0x7f and 0xff.
float fp8ToFloat(uint8_t bits);

} // namespace llmc

#endif // LLMC_IMPORT_COMMON_CHECKPOINTFORM_H
