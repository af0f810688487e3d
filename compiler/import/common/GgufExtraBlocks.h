//===- GgufExtraBlocks.h - GGUF's less common block forms ----------------------===//
//
//   q2_k    i4, groups of 16, f32 scale and minimum    q3_k    i4, 16, f32 scale
//   q8_k    i8, 256, f32 scale                         iq4_nl  i8, 32, f16 scale (16 levels)
//   iq4_xs  i8, 32, f32 scale (16 levels)              mxfp4   e2m1, 32, e8m0 (a power of two)
//   tq1_0, tq2_0  i4, 256, f16 scale (-1, 0, 1)
//
// All are exact: the scales are products of an f16 and an integer of at most 6 bits.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_IMPORT_COMMON_GGUFEXTRABLOCKS_H
#define LLMC_IMPORT_COMMON_GGUFEXTRABLOCKS_H

#include "compiler/import/common/WeightEncoding.h"
#include "compiler/quantize/QuantizedRows.h"

namespace llmc {

/// For Q2_K to MXFP4, as ggufBlockFormat and splitGgufBlock, which call them.
WeightFormat extraGgufFormat(WeightEncoding encoding);
void splitExtraGgufBlock(WeightEncoding encoding, const uint8_t *block, uint8_t *codes,
                         float *scales, float *mins);

} // namespace llmc

#endif // LLMC_IMPORT_COMMON_GGUFEXTRABLOCKS_H
