//===- GgufIqBlocks.h - GGUF's codebook forms of 1 to 3 bits -------------------===//
//
//   iq1_s    i8, groups of 32     iq2_xxs  i8, 32     iq3_xxs  i8, 32
//   iq1_m    i8, 16               iq2_xs   i8, 16     iq3_s    i8, 32
//                                 iq2_s    i8, 16
//
// all with f32 scales and exact: an f16 times an integer of at most 5 bits (and a power of two).
// The codes are levels of the codebooks with their signs; in the iq1 forms eight times the level,
// plus or minus one, which is the form's offset of an eighth.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_IMPORT_COMMON_GGUFIQBLOCKS_H
#define LLMC_IMPORT_COMMON_GGUFIQBLOCKS_H

#include "compiler/import/common/WeightEncoding.h"
#include "compiler/quantize/QuantizedRows.h"

namespace llmc {

/// For IQ1_S to IQ3_S, as ggufBlockFormat and splitGgufBlock, which call them.
WeightFormat iqGgufFormat(WeightEncoding encoding);
void splitIqGgufBlock(WeightEncoding encoding, const uint8_t *block, uint8_t *codes, float *scales);

} // namespace llmc

#endif // LLMC_IMPORT_COMMON_GGUFIQBLOCKS_H
