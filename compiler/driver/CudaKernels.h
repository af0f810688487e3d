//===- CudaKernels.h - the kernels of a program for CUDA ------------------------------===//
#ifndef LLMC_COMPILER_DRIVER_CUDAKERNELS_H
#define LLMC_COMPILER_DRIVER_CUDAKERNELS_H

#include "codegen/cuda/CudaCodegen.h"
#include "compiler/driver/PlanEmitter.h"

namespace llmc {

/// The value of --emit that writes CUDA sources.
inline constexpr llvm::StringLiteral kEmitCuda = "cuda";

/// The kernels of \p program as the code generators take them, in its order.
std::vector<KernelSpec> kernelSpecs(plan::ProgramOp program);

/// The CUDA C++ of all kernels of \p program. Errors go to its location.
mlir::FailureOr<std::vector<CudaUnit>> emitCudaUnits(plan::ProgramOp program);

/// Compiles \p units for each of \p archs, and to PTX for every other GPU, on \p jobs threads. An
/// error names the file, the architecture and what NVRTC said; spilled registers are one.
llmrt::Result<CudaImages> compileCudaUnits(const std::vector<CudaUnit> &units,
                                           const std::vector<std::string> &archs, unsigned jobs,
                                           Progress &progress);

/// Writes \p units, the headers they include and manifest.json to \p folder. The manifest has
/// registers, spills and occupancy of each of \p archs where NVRTC is found.
llmrt::Status writeCudaSources(plan::ProgramOp program, const std::vector<CudaUnit> &units,
                               const std::vector<std::string> &archs, const std::string &folder,
                               unsigned jobs, Progress &progress);

} // namespace llmc

#endif // LLMC_COMPILER_DRIVER_CUDAKERNELS_H
