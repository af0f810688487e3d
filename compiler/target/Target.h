//===- Target.h - what a plan carries code for ----------------------------------------------===//
//
// Plain C++ without MLIR: the command line, the compile cache, the driver and `explain` read it.
//
//===----------------------------------------------------------------------------------------===//
#ifndef LLMC_COMPILER_TARGET_TARGET_H
#define LLMC_COMPILER_TARGET_TARGET_H

#include "runtime/support/Status.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

/// A row of CudaArchs.inc.
struct CudaArch {
  std::string_view name;
  uint32_t registers, threads, blocks;  ///< of a multiprocessor
  uint32_t sharedPerSm, sharedPerBlock; ///< bytes
  std::string_view what;
};
std::span<const CudaArch> cudaArchs();
const CudaArch *findCudaArch(std::string_view name);

/// A row of CudaGpus.inc.
struct CudaGpu {
  std::string_view name, arch;
  uint32_t multiprocessors;
  double bytesPerSecond, operationsPerSecond;
};
std::span<const CudaGpu> cudaGpus();

/// Blocks of a kernel that a multiprocessor holds at a time, and what limits them.
struct Occupancy {
  uint32_t blocks = 0;
  double warps = 0;       ///< resident warps over the most there can be
  std::string_view limit; ///< "registers", "shared memory", "threads" or "blocks"
};
Occupancy occupancy(const CudaArch &arch, uint32_t threads, uint32_t registers,
                    uint32_t sharedBytes);

/// The targets of a compilation.
struct TargetSet {
  bool cpu = false;
  std::vector<std::string> cuda; ///< names of CudaArchs.inc, in the table's order, each once
};

/// Reads values of --target: "cpu", "cuda" (every architecture), "cuda:sm_80,sm_90a", and several
/// of them separated by commas. None: cpu.
llmrt::Result<TargetSet> parseTargets(const std::vector<std::string> &values);

/// The set as parseTargets reads it: "cpu,cuda:sm_80".
std::string formatTargets(const TargetSet &targets);

} // namespace llmc

#endif // LLMC_COMPILER_TARGET_TARGET_H
