//===- StepUpload.h - a step's arrays on the device -------------------------===//
#ifndef LLMRT_DEVICE_CUDA_STEPUPLOAD_H
#define LLMRT_DEVICE_CUDA_STEPUPLOAD_H

#include "runtime/device/cpu/KernelAbi.h"
#include "runtime/device/cuda/Handles.h"
#include "runtime/device/cuda/KernelAbi.h"
#include "runtime/plan/ArenaLayout.h"

namespace llmrt::cuda {

/// Packs LlmrtCudaStep and the arrays that it points to into pinned memory, and copies as much of
/// it as the step uses. The struct itself has one address for ever: graphs have it captured.
class StepUpload {
public:
  StepUpload() = default;
  /// For steps up to \p largest, block tables up to \p maxBlocks wide.
  static Result<StepUpload> create(const Driver &driver, const StepDims &largest,
                                   int64_t maxBlocks);

  CUdeviceptr address() const { return device_.address(); }
  size_t bytes() const { return device_.bytes(); }

  /// Puts the copy of \p step in \p stream; the KV fields are \p kv's. What an earlier call put
  /// there must be done.
  Status enqueue(const Driver &driver, CUstream stream, const LlmrtStep &step, CUdeviceptr kv,
                 int64_t blockTokens, int64_t blockBytes);

private:
  DeviceBuffer device_;
  PinnedBuffer host_;
};

} // namespace llmrt::cuda

#endif // LLMRT_DEVICE_CUDA_STEPUPLOAD_H
