#include "runtime/device/cuda/Driver.h"

#include <cstdlib>
#include <dlfcn.h>

namespace llmrt::cuda {
namespace {

Status noDriver(const std::string &why) {
  return unsupported("this plan's code is for CUDA, and no CUDA device can be used: " + why +
                     "; run it on a machine with an NVIDIA GPU, or compile the model with "
                     "--target cpu");
}

/// What hides devices, for the message that there are none.
std::string visibility() {
  const char *visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible ? " (CUDA_VISIBLE_DEVICES is '" + std::string(visible) + "')" : std::string();
}

Result<const Driver *> loadOnce() {
  // Never closed: the driver's threads live as long as the process.
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *error = dlerror();
    return noDriver(std::string("the NVIDIA driver is not installed (") +
                    (error ? error : "libcuda.so.1") + ")");
  }
  using GetProcAddress = CUresult (*)(const char *, void **, int, uint64_t);
  auto get = reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress"));
  if (!get)
    return noDriver("the NVIDIA driver is older than CUDA 11.4");
  static Driver driver;
  auto find = [&](const char *name, void **function) {
    return get(name, function, driverInterfaceVersion, 0) == CUDA_SUCCESS && *function;
  };
#define LLMRT_CUDA_LATER_FUNCTION(name, version, parameters)                                       \
  if (get("cu" #name, reinterpret_cast<void **>(&driver.name), version, 0) != CUDA_SUCCESS)        \
    driver.name = nullptr;
#define LLMRT_CUDA_FUNCTION(name, parameters)                                                      \
  if (!find("cu" #name, reinterpret_cast<void **>(&driver.name)))                                  \
    return noDriver("the NVIDIA driver has no cu" #name ": it is older than CUDA 11.4");
#include "runtime/device/cuda/DriverFunctions.inc"
#undef LLMRT_CUDA_FUNCTION

  if (CUresult r = driver.Init(0); r == CUDA_ERROR_NO_DEVICE)
    return noDriver("the NVIDIA driver shows none" + visibility());
  else if (r != CUDA_SUCCESS)
    return noDriver("the NVIDIA driver does not start: " + driver.describe(r));
  int count = 0;
  if (CUresult r = driver.DeviceGetCount(&count); r != CUDA_SUCCESS)
    return noDriver("the NVIDIA driver does not count devices: " + driver.describe(r));
  if (count == 0)
    return noDriver("the NVIDIA driver shows none" + visibility());
  return &driver;
}

} // namespace

Result<const Driver *> Driver::load() {
  static const Result<const Driver *> loaded = loadOnce();
  return loaded;
}

std::string Driver::describe(CUresult error) const {
  const char *name = nullptr, *text = nullptr;
  GetErrorName(error, &name);
  GetErrorString(error, &text);
  std::string out = name ? name : "CUDA error " + std::to_string(int(error));
  return text ? out + " (" + text + ")" : out;
}

Status Driver::check(CUresult result, std::string_view what) const {
  if (result == CUDA_SUCCESS)
    return Status::ok();
  std::string message = std::string(what) + ": " + describe(result);
  return result == CUDA_ERROR_OUT_OF_MEMORY ? resourceExhausted(std::move(message))
                                            : internalError(std::move(message));
}

} // namespace llmrt::cuda
