//===- CudaTraffic.h - what hot CUDA kernels ask of memory, as counted ----------------------===//
//
// A table of figures that the emulator of the tests counted, instruction by instruction, on whole
// tiles (test/emulator/kernels/TrafficTest.cpp): the test fails if a row is not what it counts.
// They depend on formats and sizes of heads alone, not on how large a matrix or a context is.
//
//===----------------------------------------------------------------------------------------===//
#ifndef LLMC_COMPILER_TARGET_CUDATRAFFIC_H
#define LLMC_COMPILER_TARGET_CUDATRAFFIC_H

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace llmc {

/// A row of CudaTraffic.inc: transactions over the least that the same bytes need. 1 is perfect.
struct CudaTraffic {
  std::string_view kernel;
  double banks;   ///< wavefronts of shared memory, all accesses: above 1 there are bank conflicts
  double sectors; ///< 32-byte sectors of global memory: of weights, or of keys and values
};
std::span<const CudaTraffic> cudaTraffic();

/// The row of a kernel of \p kind, a product (of a mixture's experts, too) or attention, whose integer constants \p constant
/// gives by name. \p isNarrow: the entry for few tokens, of attention for one. \p isWgmma:
/// Hopper's attention. Empty for other kinds.
std::string cudaTrafficName(std::string_view kind,
                            const std::function<int64_t(std::string_view)> &constant,
                            bool isNarrow, bool isWgmma = false);
/// Null where nothing was counted.
const CudaTraffic *findCudaTraffic(std::string_view name);

} // namespace llmc

#endif // LLMC_COMPILER_TARGET_CUDATRAFFIC_H
