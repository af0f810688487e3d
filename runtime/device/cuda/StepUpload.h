//===- StepUpload.h - a step's arrays on the device -------------------------===//
#ifndef LLMRT_DEVICE_CUDA_STEPUPLOAD_H
#define LLMRT_DEVICE_CUDA_STEPUPLOAD_H

#include "runtime/device/RowDraws.h"
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
  /// For steps up to \p largest, block tables up to \p maxBlocks wide, \p draws: with RowDraws.
  static Result<StepUpload> create(const Driver &driver, const StepDims &largest, int64_t maxBlocks,
                                   bool draws);

  CUdeviceptr address() const { return device_.address(); }
  size_t bytes() const { return device_.bytes(); }

  /// Puts the copy of \p step in \p stream; the KV fields are \p kv's; without \p draws the host
  /// draws all tokens. What an earlier call put there must be done.
  Status enqueue(const Driver &driver, CUstream stream, const LlmrtStep &step, CUdeviceptr kv,
                 int64_t blockTokens, int64_t blockBytes, const RowDraws *draws);

private:
  DeviceBuffer device_;
  PinnedBuffer host_;
};

} // namespace llmrt::cuda

#endif // LLMRT_DEVICE_CUDA_STEPUPLOAD_H
