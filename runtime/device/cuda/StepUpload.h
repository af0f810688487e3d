//===- StepUpload.h - a step's arrays on the device -------------------------===//
#ifndef LLMRT_DEVICE_CUDA_STEPUPLOAD_H
#define LLMRT_DEVICE_CUDA_STEPUPLOAD_H

#include "runtime/device/StepExecutor.h"
#include "runtime/device/cuda/Handles.h"
#include "runtime/device/cuda/KernelAbi.h"
#include "runtime/plan/ArenaLayout.h"

#include <span>

namespace llmrt::cuda {

/// Packs LlmrtCudaStep and the arrays that it points to into pinned memory, and copies as much of
/// it as the step uses. The struct itself has one address for ever: graphs have it captured.
class StepUpload {
public:
  StepUpload() = default;
  /// For steps up to \p largest, block tables up to \p maxBlocks wide, \p pools KV pools;
  /// \p draws: with RowDraws.
  static Result<StepUpload> create(const Driver &driver, const StepDims &largest, int64_t maxBlocks,
                                   size_t pools, bool draws);

  /// Where the commands of a pool find their step.
  CUdeviceptr address(size_t pool) const { return device_.address() + pool * structBytes; }
  size_t bytes() const { return device_.bytes(); }

  struct Pool {
    CUdeviceptr kv;
    uint64_t blockBytes;
  };
  /// Puts the copy of \p step in \p stream, once for each of \p pools, of which those behind the
  /// first have the block tables and slots \p narrower; without \p draws the host draws all tokens.
  /// What an earlier call put there must be done.
  Status enqueue(const Driver &driver, CUstream stream, const LlmrtStep &step,
                 std::span<const KvTable> narrower, std::span<const Pool> pools,
                 int64_t blockTokens, const RowDraws *draws);

private:
  static constexpr size_t structBytes = (sizeof(LlmrtCudaStep) + 15) / 16 * 16;
  DeviceBuffer device_;
  PinnedBuffer host_;
};

} // namespace llmrt::cuda

#endif // LLMRT_DEVICE_CUDA_STEPUPLOAD_H
