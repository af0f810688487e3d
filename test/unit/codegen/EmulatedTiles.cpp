//===- EmulatedTiles.cpp - the gemm text of x86-64-v4-amx, its tiles emulated ----===//
//
// The instructions as the Intel SDM describes them, over plain memory. What they forbid (a register
// without a shape, products of shapes that don't fit) stops the test.
//
//===----------------------------------------------------------------------===//
#define LLMC_KERNEL_TILES 1
#define llmc_kernel_gemm llmc_emulated_tiles_gemm
#define llmc_parameters_gemm llmc_emulated_tiles_parameters
#include "codegen/cpu/kernels/TileInstructions.h"

#include "test/unit/codegen/EmulatedGemm.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace llmc::kernel {
namespace {

struct Tile {
  uint8_t bytes[16][64];
};
TileConfiguration configuration;
Tile tiles[8];

int rowsOf(int r) {
  if (configuration.palette != 1 || !configuration.rows[r] || !configuration.columnBytes[r]) {
    std::fprintf(stderr, "tmm%d has no shape\n", r);
    std::abort();
  }
  return configuration.rows[r];
}

void configureTiles(const TileConfiguration &shapes) {
  configuration = shapes;
  std::memset(tiles, 0, sizeof tiles);
}
void releaseTiles() { configuration = {}; }

template <int R> void zeroTile() {
  rowsOf(R);
  tiles[R] = {};
}
template <int R> void loadTile(const void *p, int64_t stride) {
  tiles[R] = {};
  for (int i = 0; i < rowsOf(R); ++i)
    std::memcpy(tiles[R].bytes[i], static_cast<const uint8_t *>(p) + i * stride,
                configuration.columnBytes[R]);
}
template <int R> void storeTile(void *p, int64_t stride) {
  for (int i = 0; i < rowsOf(R); ++i)
    std::memcpy(static_cast<uint8_t *>(p) + i * stride, tiles[R].bytes[i],
                configuration.columnBytes[R]);
}
template <int C, int A, int B> void multiplyTiles() {
  const int m = rowsOf(A), quads = rowsOf(B), columns = configuration.columnBytes[B] / 4;
  if (rowsOf(C) != m || configuration.columnBytes[C] != 4 * columns ||
      configuration.columnBytes[A] != 4 * quads) {
    std::fprintf(stderr, "tmm%d += tmm%d * tmm%d: shapes don't fit\n", C, A, B);
    std::abort();
  }
  for (int i = 0; i < m; ++i)
    for (int n = 0; n < columns; ++n) {
      int32_t sum;
      std::memcpy(&sum, &tiles[C].bytes[i][4 * n], 4);
      for (int k = 0; k < 4 * quads; ++k)
        sum += static_cast<int8_t>(tiles[A].bytes[i][k]) *
               static_cast<int8_t>(tiles[B].bytes[k / 4][4 * n + k % 4]);
      std::memcpy(&tiles[C].bytes[i][4 * n], &sum, 4);
    }
}

} // namespace
} // namespace llmc::kernel

#include "codegen/cpu/kernels/Gemm.cpp"

void llmc::test::emulatedTilesGemm(const LlmrtStep *step, void *const *bindings, int64_t tasks,
                                   const EmulatedShape &s) {
  llmc_emulated_tiles_gemm(step, bindings, nullptr, 0, tasks, nullptr, s.k, s.n, s.element, kN16K4,
                           s.wGroup, s.scale, s.hasMin, kF16, 1, s.group, 0, 0, 0, 0, 0, 1);
}
