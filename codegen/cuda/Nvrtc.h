//===- Nvrtc.h - NVIDIA's run-time compiler, loaded where it is found ----------------===//
//
// NVRTC turns one unit into a cubin or PTX in memory: no file, no include path, no header of
// NVIDIA. It is not linked: a compiler that never makes CUDA code needs none.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CODEGEN_CUDA_NVRTC_H
#define LLMC_CODEGEN_CUDA_NVRTC_H

#include "codegen/cuda/CudaCodegen.h"
#include "runtime/support/Status.h"

#include <map>

namespace llmc {

/// What ptxas reports of one function.
struct CudaResources {
  uint32_t registers = 0, spillBytes = 0, stackBytes = 0;
};

struct CudaImage {
  std::string bytes;                              ///< a cubin; for "compute_XX" PTX
  std::map<std::string, CudaResources> resources; ///< by entry; none for PTX
};

class Nvrtc {
public:
  /// Loads libnvrtc: LLMC_NVRTC (a file), the loader's path, /usr/local/cuda*/lib64, the folders of
  /// Python's nvidia-cuda-nvrtc package. An error says where it was looked for and what to install.
  static llmrt::Result<Nvrtc> load();

  /// "13.0"
  const std::string &version() const { return version_; }

  /// Compiles \p unit for \p architecture ("sm_90a", or "compute_80" for PTX). An error holds the
  /// compiler's messages. May be called from several threads.
  llmrt::Result<CudaImage> compile(const CudaUnit &unit, const std::string &architecture) const;

  struct Api;

private:
  const Api *api_ = nullptr;
  std::string version_;
};

/// Compiles through a folder of earlier results, named by a hash of NVRTC's version, the text, the
/// headers, the architecture and the flags. A damaged file is compiled again.
class CudaCompiler {
public:
  CudaCompiler(Nvrtc nvrtc, std::string cacheFolder)
      : nvrtc_(std::move(nvrtc)), folder_(std::move(cacheFolder)) {}

  llmrt::Result<CudaImage> compile(const CudaUnit &unit, const std::string &architecture) const;

private:
  Nvrtc nvrtc_;
  std::string folder_; ///< empty: no cache
};

/// The most registers a thread that a block of \p threads may take: two blocks of 128, or one block
/// of up to 1024, have room on a multiprocessor (65,536) of every supported GPU.
uint32_t mostCudaRegisters(uint32_t threads);

/// Every entry of \p unit keeps its values in registers: no spill, no local memory, and not more
/// registers than mostCudaRegisters(). An error names the kernel and what it takes.
llmrt::Status checkCudaResources(const CudaUnit &unit, const std::string &architecture,
                                 const CudaImage &image);

/// NVRTC's options.
std::vector<std::string> cudaCompileFlags(const std::string &architecture);

/// Reads the resources of each entry from what `ptxas -v` wrote.
std::map<std::string, CudaResources> parsePtxasLog(llvm::StringRef log);

} // namespace llmc

#endif // LLMC_CODEGEN_CUDA_NVRTC_H
