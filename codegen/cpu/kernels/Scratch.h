//===- Scratch.h - the memory a kernel needs a thread -------------------------===//
//
// Shared by the kernels, which lay it out, and code generation, which writes it into the plan.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CODEGEN_CPU_KERNELS_SCRATCH_H
#define LLMC_CODEGEN_CPU_KERNELS_SCRATCH_H

#include <stdint.h>

namespace llmc::kernel {

constexpr int64_t kKeyTile = 64; ///< keys of one step of attention's softmax

/// Attention's scratch in floats, one part after the other. Every part is a multiple of 16.
struct AttentionScratch {
  int64_t rows, valueStride;
  int64_t largest, rescale, sums, weights, outputs, keys, values;
  int64_t totalLargest, totalSums, totalOutputs; ///< of the splits so far, if there are splits
  int64_t scales, end; ///< scales: of int8 keys, then values, of a token of a tree

  // Inlined by order: whether it is must not hang on its length, kernels take its constants.
  __attribute__((always_inline)) constexpr AttentionScratch(int64_t queryTile, int64_t group,
                                                            int64_t keySize, int64_t valueSize,
                                                            bool splits)
      : rows(queryTile * group), valueStride((valueSize + 15) / 16 * 16) {
    const int64_t rows16 = (rows + 15) / 16 * 16;
    largest = 0;
    rescale = largest + rows16;
    sums = rescale + rows16;
    weights = sums + rows * 16;
    outputs = weights + rows * kKeyTile;
    keys = outputs + rows * valueStride;
    values = keys + kKeyTile * keySize;
    totalLargest = values + kKeyTile * valueStride;
    totalSums = totalLargest + (splits ? rows16 : 0);
    totalOutputs = totalSums + (splits ? rows * 16 : 0);
    scales = totalOutputs + (splits ? rows * valueStride : 0);
    end = scales + 2 * kKeyTile;
  }
};

/// rope_append, in floats: a normalised head, a rotated key, and a head as an int8 row.
constexpr int64_t ropeAppendScratch(int64_t headSize, int64_t valueSize) {
  const int64_t longest = headSize > valueSize ? headSize : valueSize;
  return 2 * ((headSize + 15) / 16 * 16) + (longest + 15) / 16 * 16;
}

/// latent_append: a rotated key, in floats.
constexpr int64_t latentAppendScratch(int64_t rotary) { return (rotary + 15) / 16 * 16; }

/// route: scores, choices and group scores, in floats.
constexpr int64_t routeScratch(int64_t experts, int64_t groups) {
  return 2 * ((experts + 15) / 16 * 16) + (groups + 15) / 16 * 16;
}

/// grouped_gemm: the most rows that go together at any level, in bytes.
constexpr int64_t groupedGemmScratch(int64_t rowBytes) { return 8 * rowBytes; }

} // namespace llmc::kernel

#endif // LLMC_CODEGEN_CPU_KERNELS_SCRATCH_H
