#include "runtime/device/cuda/Device.h"

namespace llmrt::cuda {

Result<std::unique_ptr<Device>> Device::open(int ordinal) {
  LLMRT_ASSIGN_OR_RETURN(const Driver *driver, Driver::load());
  int count = 0;
  LLMRT_RETURN_IF_ERROR(driver->check(driver->DeviceGetCount(&count), "counting CUDA devices"));
  if (ordinal < 0 || ordinal >= count)
    return invalidArgument("there is no CUDA device " + std::to_string(ordinal) +
                           "; this process sees " + std::to_string(count) + ", counted from 0");
  CUdevice handle = 0;
  std::string what = "device " + std::to_string(ordinal);
  LLMRT_RETURN_IF_ERROR(driver->check(driver->DeviceGet(&handle, ordinal), what));
  std::unique_ptr<Device> device(new Device(driver, handle));
  auto attribute = [&](CUdevice_attribute a, int &value) {
    return driver->check(driver->DeviceGetAttribute(&value, a, handle), what);
  };
  LLMRT_RETURN_IF_ERROR(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device->major_));
  LLMRT_RETURN_IF_ERROR(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device->minor_));
  LLMRT_RETURN_IF_ERROR(
      attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device->maxSharedBytes_));
  char name[256] = "";
  LLMRT_RETURN_IF_ERROR(driver->check(driver->DeviceGetName(name, sizeof name, handle), what));
  device->name_ = what + " (" + name + ", sm_" + std::to_string(device->major_) +
                  std::to_string(device->minor_) + ")";
  LLMRT_RETURN_IF_ERROR(driver->check(driver->DevicePrimaryCtxRetain(&device->context_, handle),
                                      "a context on " + device->name_));
  LLMRT_RETURN_IF_ERROR(device->makeCurrent());
  return device;
}

Device::~Device() {
  if (context_)
    driver_->DevicePrimaryCtxRelease(device_);
}

Status Device::makeCurrent() const {
  return driver_->check(driver_->CtxSetCurrent(context_), name_);
}

Result<size_t> Device::freeMemory() const {
  size_t free = 0, total = 0;
  LLMRT_RETURN_IF_ERROR(driver_->check(driver_->MemGetInfo(&free, &total), name_));
  return free;
}

} // namespace llmrt::cuda
