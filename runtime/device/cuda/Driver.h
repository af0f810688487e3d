//===- Driver.h - the CUDA driver, found when it is needed ------------------===//
#ifndef LLMRT_DEVICE_CUDA_DRIVER_H
#define LLMRT_DEVICE_CUDA_DRIVER_H

#include "runtime/device/cuda/DriverTypes.h"
#include "runtime/support/Status.h"

#include <string>
#include <string_view>

namespace llmrt::cuda {

/// The functions of libcuda.so.1, initialised.
struct Driver {
#define LLMRT_CUDA_FUNCTION(name, parameters) CUresult(*name) parameters = nullptr;
#include "runtime/device/cuda/DriverFunctions.inc"
#undef LLMRT_CUDA_FUNCTION

  /// Loads it once a process. Unsupported: there is no driver, it is too old, or it shows no
  /// device; the message says which, and what to do.
  static Result<const Driver *> load();

  /// "CUDA_ERROR_OUT_OF_MEMORY (out of memory)"
  std::string describe(CUresult error) const;
  /// Ok, or a failure that names \p what: ResourceExhausted where memory is short.
  Status check(CUresult result, std::string_view what) const;
};

} // namespace llmrt::cuda

#endif // LLMRT_DEVICE_CUDA_DRIVER_H
