//===- RowSampling.h - a row's draw as kernels see it -----------------------===//
#ifndef LLMRT_DEVICE_CUDA_ROWSAMPLING_H
#define LLMRT_DEVICE_CUDA_ROWSAMPLING_H

#include "runtime/device/RowDraws.h"
#include "runtime/device/cuda/KernelAbi.h"

namespace llmrt::cuda {

inline LlmrtCudaRowSampling cudaRowSampling(const RowDraw &draw) {
  LlmrtCudaRowSampling row{};
  row.noiseKey = draw.noiseKey;
  row.scale = draw.scale;
  row.floor = draw.floor;
  row.topK = draw.topK;
  row.topP = draw.topP;
  row.firstChange = draw.firstChange;
  row.biases = draw.biases;
  row.bans = draw.bans;
  row.onDevice = draw.onDevice;
  return row;
}

} // namespace llmrt::cuda

#endif // LLMRT_DEVICE_CUDA_ROWSAMPLING_H
