//===- Device.h - what the parts of the stand-in driver share -------------------===//
#ifndef LLMC_TEST_EMULATOR_DRIVER_DEVICE_H
#define LLMC_TEST_EMULATOR_DRIVER_DEVICE_H

#include "runtime/device/cuda/DriverTypes.h"
#include "test/emulator/driver/Streams.h"

#include <cstddef>
#include <mutex>
#include <vector>

namespace standin {

using namespace llmrt::cuda;

struct Device {
  int major, minor;
  size_t bytes;
  size_t used = 0;
};

/// One lock for the whole driver: every function of it is short.
using Lock = std::lock_guard<std::recursive_mutex>;
std::recursive_mutex &driverMutex();

std::vector<Device> &visibleDevices();
/// The one whose context is current; null: none. An error: not initialised, or no context.
CUresult currentDevice(Device *&device);

inline Stream &streamOf(CUstream s) { return s ? *reinterpret_cast<Stream *>(s) : nullStream(); }

} // namespace standin

#endif // LLMC_TEST_EMULATOR_DRIVER_DEVICE_H
