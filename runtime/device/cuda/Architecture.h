//===- Architecture.h - which of a plan's codes a device runs ---------------===//
#ifndef LLMRT_DEVICE_CUDA_ARCHITECTURE_H
#define LLMRT_DEVICE_CUDA_ARCHITECTURE_H

#include "runtime/support/Status.h"

#include <span>
#include <string>

namespace llmrt::cuda {

/// The index of the best of \p names for a device of compute capability major.minor:
/// "sm_90a" runs on 9.0 alone and is best there; "sm_80" on 8.x from 8.0; "compute_80" is PTX,
/// which the driver compiles for every device from 8.0. Unsupported: none; the message lists them.
Result<size_t> chooseArchitecture(std::span<const std::string> names, int major, int minor);

} // namespace llmrt::cuda

#endif // LLMRT_DEVICE_CUDA_ARCHITECTURE_H
