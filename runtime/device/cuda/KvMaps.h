//===- KvMaps.h - the KV cache as tensors for the copy unit -----------------===//
#ifndef LLMRT_DEVICE_CUDA_KVMAPS_H
#define LLMRT_DEVICE_CUDA_KVMAPS_H

#include "runtime/device/cuda/Driver.h"
#include "runtime/device/cuda/KernelAbi.h"
#include "runtime/plan/plan_generated.h"

namespace llmrt::cuda {

/// The KV pool.
struct KvMemory {
  CUdeviceptr address = 0;
  int64_t blocks = 0, blockTokens = 0;
  uint64_t blockBytes = 0;
};

/// Whether the code of a kernel for \p architecture may have LlmrtKvMaps as its third parameter.
bool takesKvMaps(const fbs::Kernel &kernel, std::string_view architecture);

/// The maps of the layer whose cache begins \p prefix bytes a token into a block, for the attention
/// kernel \p kernel. Unsupported: the driver is older than CUDA 12.
Result<LlmrtKvMaps> encodeKvMaps(const Driver &driver, const fbs::Kernel &kernel, int64_t prefix,
                                 const KvMemory &memory);

} // namespace llmrt::cuda

#endif // LLMRT_DEVICE_CUDA_KVMAPS_H
