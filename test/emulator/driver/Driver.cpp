// A stand-in for libcuda.so.1 over the emulator: what runtime/device/cuda calls, for tests on
// machines without a GPU. Here: the devices, and the one function that the runtime finds by name.
// Memory.cpp, Modules.cpp and StreamFunctions.cpp have the rest; code that NVIDIA's compilers made
// is never run here.
//
//   SIMT_DEVICES=8.0:4096,9.0:256   compute capability and MiB of each device
//   SIMT_ORDER=forward|reverse|random[:SEED]
//   SIMT_WORKERS=N
//   CUDA_VISIBLE_DEVICES            as the driver reads it
//
// Faults that the emulator finds go to stderr and end the launch with an error.
#include "test/emulator/Emulator.h"
#include "test/emulator/driver/Device.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <string_view>

namespace standin {

namespace {

bool initialised = false;
int current = -1; ///< the device whose context is current

std::vector<std::string> split(const std::string &text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string uuidText(int physical) {
  char text[64];
  std::snprintf(text, sizeof text, "GPU-5117d0e5-0000-0000-0000-%012d", physical);
  return text;
}

/// CUDA_VISIBLE_DEVICES: indices or beginnings of UUIDs, in that order, up to the first that names
/// no device.
std::vector<Device> visible(const std::vector<Device> &all) {
  const char *list = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!list)
    return all;
  std::vector<Device> chosen;
  for (const std::string &name : split(list)) {
    size_t index = all.size();
    if (name.rfind("GPU-", 0) == 0) {
      for (size_t i = 0; i < all.size(); ++i)
        if (uuidText(int(i)).rfind(name, 0) == 0)
          index = std::min(index, i);
    } else if (!name.empty() && name.find_first_not_of("0123456789") == std::string::npos) {
      index = std::min(all.size(), size_t(std::strtoul(name.c_str(), nullptr, 10)));
    }
    if (index == all.size())
      break;
    chosen.push_back(all[index]);
  }
  return chosen;
}

} // namespace

std::recursive_mutex &driverMutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

std::vector<Device> &visibleDevices() {
  static std::vector<Device> devices;
  return devices;
}

CUresult currentDevice(Device *&device) {
  if (!initialised)
    return CUDA_ERROR_NOT_INITIALIZED;
  if (current < 0)
    return CUDA_ERROR_INVALID_CONTEXT;
  device = &visibleDevices()[size_t(current)];
  return CUDA_SUCCESS;
}

CUresult Init(unsigned) {
  Lock lock(driverMutex());
  const char *list = std::getenv("SIMT_DEVICES");
  std::vector<Device> all;
  for (const std::string &one : split(list ? list : "8.0:4096")) {
    Device d{};
    size_t megabytes = 4096;
    if (std::sscanf(one.c_str(), "%d.%d:%zu", &d.major, &d.minor, &megabytes) < 2)
      return CUDA_ERROR_NO_DEVICE;
    d.bytes = megabytes << 20;
    all.push_back(d);
  }
  visibleDevices() = visible(all);
  if (const char *order = std::getenv("SIMT_ORDER")) {
    std::string_view o(order);
    simt::options().order = o == "reverse"               ? simt::Order::Reverse
                            : o.substr(0, 6) == "random" ? simt::Order::Random
                                                         : simt::Order::Forward;
    if (o.substr(0, 7) == "random:")
      simt::options().seed = uint32_t(std::strtoul(order + 7, nullptr, 10));
  }
  if (const char *workers = std::getenv("SIMT_WORKERS"))
    simt::options().workers = unsigned(std::strtoul(workers, nullptr, 10));
  initialised = true;
  return visibleDevices().empty() ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

CUresult DriverGetVersion(int *version) {
  *version = 13000;
  return CUDA_SUCCESS;
}

CUresult GetErrorName(CUresult error, const char **name) {
#define NAME(e)                                                                                    \
  case e:                                                                                          \
    *name = #e;                                                                                    \
    return CUDA_SUCCESS;
  switch (error) {
    NAME(CUDA_SUCCESS)
    NAME(CUDA_ERROR_INVALID_VALUE)
    NAME(CUDA_ERROR_OUT_OF_MEMORY)
    NAME(CUDA_ERROR_NOT_INITIALIZED)
    NAME(CUDA_ERROR_NO_DEVICE)
    NAME(CUDA_ERROR_INVALID_DEVICE)
    NAME(CUDA_ERROR_INVALID_IMAGE)
    NAME(CUDA_ERROR_INVALID_CONTEXT)
    NAME(CUDA_ERROR_NO_BINARY_FOR_GPU)
    NAME(CUDA_ERROR_INVALID_PTX)
    NAME(CUDA_ERROR_INVALID_HANDLE)
    NAME(CUDA_ERROR_NOT_FOUND)
    NAME(CUDA_ERROR_NOT_READY)
    NAME(CUDA_ERROR_ILLEGAL_ADDRESS)
    NAME(CUDA_ERROR_MISALIGNED_ADDRESS)
    NAME(CUDA_ERROR_LAUNCH_FAILED)
    NAME(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
    NAME(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
  }
#undef NAME
  *name = nullptr;
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult GetErrorString(CUresult, const char **text) {
  *text = nullptr; // names say enough
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult DeviceGetCount(int *count) {
  *count = int(visibleDevices().size());
  return initialised ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult DeviceGet(CUdevice *device, int ordinal) {
  if (ordinal < 0 || ordinal >= int(visibleDevices().size()))
    return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult DeviceGetName(char *name, int bytes, CUdevice device) {
  const Device &d = visibleDevices()[size_t(device)];
  std::snprintf(name, size_t(bytes), "SIMT emulator %d.%d", d.major, d.minor);
  return CUDA_SUCCESS;
}

CUresult DeviceGetUuid(CUuuid *uuid, CUdevice device) {
  std::memset(uuid->bytes, 0, sizeof uuid->bytes);
  uuid->bytes[15] = char(device);
  return CUDA_SUCCESS;
}

CUresult DeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  const Device &d = visibleDevices()[size_t(device)];
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    *value = 2;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    *value = d.major;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    *value = d.minor;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: // CUDA C++ programming guide
    *value = (d.major == 8 && d.minor != 0 && d.minor != 7) || d.major == 12 ? 99 << 10
             : d.major == 8                                                  ? 163 << 10
                                                                             : 227 << 10;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
  case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
    *value = 0;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult DevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  static char contexts[64];
  *context = reinterpret_cast<CUcontext>(&contexts[device]);
  return CUDA_SUCCESS;
}
CUresult DevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }
CUresult CtxSetCurrent(CUcontext context) {
  CUcontext first;
  DevicePrimaryCtxRetain(&first, 0);
  current = int(reinterpret_cast<char *>(context) - reinterpret_cast<char *>(first));
  return CUDA_SUCCESS;
}

// Those of the other files.
#define LLMRT_CUDA_FUNCTION(name, parameters) CUresult name parameters;
#include "runtime/device/cuda/DriverFunctions.inc"
#undef LLMRT_CUDA_FUNCTION

} // namespace standin

/// The one function that the runtime finds by name; the table has the types that it expects.
extern "C" __attribute__((visibility("default"))) llmrt::cuda::CUresult
cuGetProcAddress(const char *symbol, void **function, int version, uint64_t) {
  using namespace llmrt::cuda;
  static const std::map<std::string_view, void *> table = {
#define LLMRT_CUDA_FUNCTION(name, parameters)                                                      \
  {"cu" #name, reinterpret_cast<void *>(static_cast<CUresult(*) parameters>(&standin::name))},
#include "runtime/device/cuda/DriverFunctions.inc"
#undef LLMRT_CUDA_FUNCTION
  };
  auto it = table.find(symbol);
  *function = it != table.end() ? it->second : nullptr;
  return *function && version >= driverInterfaceVersion ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
