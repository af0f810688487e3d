//===- WeightUpload.h - a plan's weights on the device ----------------------===//
#ifndef LLMRT_DEVICE_CUDA_WEIGHTUPLOAD_H
#define LLMRT_DEVICE_CUDA_WEIGHTUPLOAD_H

#include "runtime/device/cuda/Handles.h"
#include "runtime/plan/Plan.h"

#include <vector>

namespace llmrt::cuda {

/// Bytes of the plan's weight segments.
uint64_t weightBytes(const Plan &plan);

/// Device memory of each segment of weights, in the plan's order of segments; empty for others.
using WeightMemory = std::vector<DeviceBuffer>;

/// Copies the weights through two pinned buffers by turns, so that reading the file and the copy
/// go on at the same time.
Result<WeightMemory> uploadWeights(const Driver &driver, CUstream stream, const Plan &plan);

} // namespace llmrt::cuda

#endif // LLMRT_DEVICE_CUDA_WEIGHTUPLOAD_H
