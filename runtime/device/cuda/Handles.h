//===- Handles.h - owners of what the driver gives --------------------------===//
#ifndef LLMRT_DEVICE_CUDA_HANDLES_H
#define LLMRT_DEVICE_CUDA_HANDLES_H

#include "runtime/device/cuda/Driver.h"

#include <string>
#include <utility>

namespace llmrt::cuda {

/// Owns a handle and gives it back with \p Release when it goes.
template <typename Handle, auto Release> class Owner {
public:
  Owner() = default;
  Owner(const Driver *driver, Handle handle) : driver_(driver), handle_(handle) {}
  Owner(Owner &&other) noexcept
      : driver_(other.driver_), handle_(std::exchange(other.handle_, Handle())) {}
  Owner &operator=(Owner &&other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owner() {
    if (handle_)
      (driver_->*Release)(handle_);
  }
  Handle get() const { return handle_; }
  explicit operator bool() const { return handle_ != Handle(); }

private:
  const Driver *driver_ = nullptr;
  Handle handle_{};
};

using StreamOwner = Owner<CUstream, &Driver::StreamDestroy>;
using EventOwner = Owner<CUevent, &Driver::EventDestroy>;
using ModuleOwner = Owner<CUmodule, &Driver::ModuleUnload>;
using GraphOwner = Owner<CUgraph, &Driver::GraphDestroy>;
using GraphExecOwner = Owner<CUgraphExec, &Driver::GraphExecDestroy>;

/// Memory of the device.
class DeviceBuffer {
public:
  DeviceBuffer() = default;
  /// \p what is for the message ("the weights"). 0 bytes: no memory.
  static Result<DeviceBuffer> allocate(const Driver &driver, size_t bytes,
                                       const std::string &what) {
    DeviceBuffer b;
    if (bytes == 0)
      return b;
    CUdeviceptr p = 0;
    LLMRT_RETURN_IF_ERROR(driver.check(
        driver.MemAlloc(&p, bytes), std::to_string(bytes) + " bytes of device memory for " + what));
    b.memory_ = {&driver, p};
    b.bytes_ = bytes;
    return b;
  }
  CUdeviceptr address() const { return memory_.get(); }
  void *pointer(size_t offset = 0) const {
    return reinterpret_cast<void *>(memory_.get() + offset);
  }
  size_t bytes() const { return bytes_; }

private:
  Owner<CUdeviceptr, &Driver::MemFree> memory_;
  size_t bytes_ = 0;
};

/// Memory of the host that the device copies from and to by itself.
class PinnedBuffer {
public:
  PinnedBuffer() = default;
  static Result<PinnedBuffer> allocate(const Driver &driver, size_t bytes,
                                       const std::string &what) {
    PinnedBuffer b;
    void *p = nullptr;
    LLMRT_RETURN_IF_ERROR(
        driver.check(driver.MemHostAlloc(&p, bytes, 0),
                     std::to_string(bytes) + " bytes of pinned memory for " + what));
    b.memory_ = {&driver, p};
    b.bytes_ = bytes;
    return b;
  }
  unsigned char *data() const { return static_cast<unsigned char *>(memory_.get()); }
  size_t bytes() const { return bytes_; }

private:
  Owner<void *, &Driver::MemFreeHost> memory_;
  size_t bytes_ = 0;
};

} // namespace llmrt::cuda

#endif // LLMRT_DEVICE_CUDA_HANDLES_H
