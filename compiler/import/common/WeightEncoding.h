//===- WeightEncoding.h - how files store the values of a tensor --------------===//
//
// The element and block encodings of safetensors, GGUF and ONNX. GGUF's blocks: 32 (legacy forms)
// or 256 (K forms) consecutive values of a row; the layouts are those that the GGUF specification
// of the ggml project describes.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_IMPORT_COMMON_WEIGHTENCODING_H
#define LLMC_IMPORT_COMMON_WEIGHTENCODING_H

#include "compiler/quantize/Pack.h"

#include <cstdint>
#include <optional>

namespace llmc {

/// The numbers are those of `llm::Encoding` in the llm dialect.
enum class WeightEncoding : uint8_t {
  F32 = 0,
  F16 = 1,
  BF16 = 2,
  Q4_0 = 3,
  Q4_1 = 4,
  Q5_0 = 5,
  Q5_1 = 6,
  Q8_0 = 7,
  Q4_K = 8,
  Q5_K = 9,
  Q6_K = 10,
  NBits = 11,     ///< com.microsoft.MatMulNBits, 4 or 8 bits
  BlockInt4 = 12, ///< ONNX int4 or uint4 with scales by block (DequantizeLinear)
  F64 = 13,
  BlockInt8 = 14, ///< ONNX int8 or uint8 likewise
  Q2_K = 15,
  Q3_K = 16,
  Q8_K = 17,
  IQ4_NL = 18,
  IQ4_XS = 19,
  TQ1_0 = 20,
  TQ2_0 = 21,
  MXFP4 = 22,
  // Forms of pre-quantized checkpoints, see CheckpointForm.h.
  Gptq = 23,
  GptqV2 = 24,
  Awq = 25,
  PackedInt = 26,
  NF4 = 27,
  RowInt8 = 28,
  FP8 = 29,
  SplitMXFP4 = 30, ///< codes and exponents as two tensors
  // GGUF again, see GgufIqBlocks.h.
  IQ1_S = 31,
  IQ1_M = 32,
  IQ2_XXS = 33,
  IQ2_XS = 34,
  IQ2_S = 35,
  IQ3_XXS = 36,
  IQ3_S = 37
};

/// "q4_k" and so on.
const char *encodingName(WeightEncoding encoding);

/// Values and bytes of the unit that can't be split: {1, 4} for f32, {256, 144} for q4_k; {0, 0}
/// for the encodings with separate scales.
struct EncodingBlock {
  uint32_t values, bytes;
};
EncodingBlock encodingBlock(WeightEncoding encoding);

inline bool isFloatEncoding(WeightEncoding e) {
  return e <= WeightEncoding::BF16 || e == WeightEncoding::F64;
}
/// One of GGUF's block forms.
inline bool isGgufBlock(WeightEncoding e) {
  return (e >= WeightEncoding::Q4_0 && e <= WeightEncoding::Q6_K) ||
         (e >= WeightEncoding::Q2_K && e <= WeightEncoding::MXFP4) || e >= WeightEncoding::IQ1_S;
}
/// One of CheckpointForm's.
inline bool isCheckpointForm(WeightEncoding e) {
  return e >= WeightEncoding::Gptq && e <= WeightEncoding::SplitMXFP4;
}

/// The grouped format into which a GGUF block form maps without any rounding:
///
///   q4_0  i4, groups of 32, f16 scale                q8_0  i8, 32, f16 scale
///   q4_1  i4, 32, f16 scale and minimum              q5_0  i8, 32, f16 scale (codes -16 .. 15)
///   q5_1  i8, 32, f16 scale and minimum              q4_k  i4, 32, f32 scale and minimum
///   q5_k  i8, 32, f32 scale and minimum              q6_k  i8, 16, f32 scale (codes -32 .. 31)
///   the rest: see GgufExtraBlocks.h and GgufIqBlocks.h
///
/// The f32 scales are products of an f16 (11 bits) and an integer of 6 bits, in q6_k of 8 bits:
/// exact. scale * q has at most 23 bits, so that value too is exact before the minimum is added.
WeightFormat ggufBlockFormat(WeightEncoding encoding);

/// Takes apart the block at \p block (any alignment): codes as ggufBlockFormat has them, and a
/// scale (and minimum, where there is one) for each group.
void splitGgufBlock(WeightEncoding encoding, const uint8_t *block, uint8_t *codes, float *scales,
                    float *mins);

} // namespace llmc

#endif // LLMC_IMPORT_COMMON_WEIGHTENCODING_H
