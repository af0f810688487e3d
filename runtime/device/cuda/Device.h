//===- Device.h - one GPU and its context -----------------------------------===//
#ifndef LLMRT_DEVICE_CUDA_DEVICE_H
#define LLMRT_DEVICE_CUDA_DEVICE_H

#include "runtime/device/cuda/Driver.h"

#include <memory>
#include <string>

namespace llmrt::cuda {

/// Holds the device's primary context.
class Device {
public:
  /// \p ordinal counts the devices that CUDA_VISIBLE_DEVICES leaves; the driver reads it.
  static Result<std::unique_ptr<Device>> open(int ordinal);
  ~Device();
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  const Driver &driver() const { return *driver_; }
  /// Makes its context that of this thread.
  Status makeCurrent() const;
  /// "device 0 (NVIDIA H200, sm_90)"
  const std::string &name() const { return name_; }
  int major() const { return major_; }
  int minor() const { return minor_; }
  /// Dynamic shared memory that a block may have, bytes.
  int maxSharedBytes() const { return maxSharedBytes_; }
  /// Free memory, bytes.
  Result<size_t> freeMemory() const;

private:
  Device(const Driver *driver, CUdevice device) : driver_(driver), device_(device) {}
  const Driver *driver_;
  CUdevice device_;
  CUcontext context_ = nullptr;
  std::string name_;
  int major_ = 0, minor_ = 0, maxSharedBytes_ = 0;
};

} // namespace llmrt::cuda

#endif // LLMRT_DEVICE_CUDA_DEVICE_H
