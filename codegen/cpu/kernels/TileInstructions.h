//===- TileInstructions.h - the AMX instructions that GemmTiles.h is written over --===//
//
// Intel SDM volume 1, chapter 18. The unit tests of machines without AMX define LLMC_KERNEL_TILES
// and emulate them (test/unit/codegen/EmulatedTiles.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CODEGEN_CPU_KERNELS_TILEINSTRUCTIONS_H
#define LLMC_CODEGEN_CPU_KERNELS_TILEINSTRUCTIONS_H

#include "codegen/cpu/kernels/Vector.h"

namespace llmc::kernel {

/// What LDTILECFG reads: a tile register holds rows of columnBytes bytes.
struct alignas(64) TileConfiguration {
  uint8_t palette, startRow, reserved[14];
  uint16_t columnBytes[16];
  uint8_t rows[16];
};

#if defined(__AMX_INT8__) && !defined(LLMC_KERNEL_TILES)
#define LLMC_KERNEL_TILES 1

// Assembly, since the compiler's intrinsics don't say which tile registers they read and write.
KERNEL_INLINE void configureTiles(const TileConfiguration &shapes) {
  asm volatile("ldtilecfg %0" : : "m"(shapes) : "memory");
}
KERNEL_INLINE void releaseTiles() { asm volatile("tilerelease"); }
template <int R> KERNEL_INLINE void zeroTile() { asm volatile("tilezero %%tmm%c0" : : "i"(R)); }
template <int R> KERNEL_INLINE void loadTile(const void *p, int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(p), "r"(stride), "i"(R) : "memory");
}
template <int R> KERNEL_INLINE void storeTile(void *p, int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(p), "r"(stride), "i"(R) : "memory");
}
/// C[m][n] += the products of A's row m with column n of B: four signed bytes of each a step.
template <int C, int A, int B> KERNEL_INLINE void multiplyTiles() {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(C), "i"(A), "i"(B));
}
#endif

} // namespace llmc::kernel

#endif // LLMC_CODEGEN_CPU_KERNELS_TILEINSTRUCTIONS_H
