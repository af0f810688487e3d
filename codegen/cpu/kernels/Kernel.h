//===- Kernel.h - how an entry point is written ------------------------------===//
//
// A kernel kind `foo` is the function llmc_kernel_foo: LlmrtKernel's parameters, then the constants
// that it is specialised for. Code generation reads names and types of the constants from the text
// llmc_parameters_foo in the bitcode (parameter taskTiles is the plan's constant task_tiles;
// int64_t or float), so a kernel is the only place that lists them. A constant that a plan's kernel
// doesn't give is 0.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CODEGEN_CPU_KERNELS_KERNEL_H
#define LLMC_CODEGEN_CPU_KERNELS_KERNEL_H

#include "codegen/cpu/kernels/Format.h"
#include "codegen/cpu/kernels/Math.h"
#include "runtime/device/cpu/KernelAbi.h"

#define LLMC_KERNEL(kind, ...)                                                                     \
  extern "C" const char llmc_parameters_##kind[] = #__VA_ARGS__;                                   \
  extern "C" __attribute__((always_inline)) void llmc_kernel_##kind(                               \
      const LlmrtStep *step, void *const *bindings, const int64_t *scalars, int64_t taskBegin,     \
      int64_t taskEnd, void *scratch, __VA_ARGS__)

namespace llmc::kernel {

template <typename T> KERNEL_INLINE T *binding(void *const *bindings, int index) {
  return static_cast<T *>(bindings[index]);
}

constexpr int64_t kRunTokens = LLMRT_KV_RUN;

/// Bytes of a run of 16 keys or values of \p size elements. Int8 ones are followed by the 16
/// tokens' scales, f32.
KERNEL_INLINE int64_t kvRunBytes(int64_t size, int64_t element) {
  return kRunTokens * (size * elementBytes(element) + (element == kI8 ? 4 : 0));
}

/// The KV memory of one head of one layer in one block.
struct KvBlock {
  uint8_t *keys;   ///< [blockTokens/16] runs of [keySize][16]
  uint8_t *values; ///< [blockTokens/16] runs of [16][valueSize]
};
KERNEL_INLINE KvBlock kvBlock(const LlmrtStep *step, int64_t block, int64_t prefixBytes,
                              int64_t head, int64_t keySize, int64_t valueSize, int64_t element) {
  const int64_t tokens = step->blockTokens, runs = tokens / kRunTokens;
  const int64_t keyBytes = runs * kvRunBytes(keySize, element);
  uint8_t *layer = step->kv + block * step->blockBytes + tokens * prefixBytes;
  uint8_t *keys = layer + head * (keyBytes + runs * kvRunBytes(valueSize, element));
  return {keys, keys + keyBytes};
}

} // namespace llmc::kernel

#endif // LLMC_CODEGEN_CPU_KERNELS_KERNEL_H
