// The stand-in driver's modules, functions and launches. A module is an object that build-kernels
// made from our own source; cubins and PTX are refused.
#include "test/emulator/Emulator.h"
#include "test/emulator/driver/Device.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <map>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>

namespace standin {

CUresult DeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device);

namespace {

struct Module {
  void *handle;
};
struct Function {
  const simt::KernelEntry *entry;
  unsigned maxDynamicShared = 48 << 10;
};

size_t reportsPrinted = 0;

/// The kind of error that a device would give for the emulator's last report.
CUresult errorOf(const simt::Report &r) {
  auto has = [&](const char *word) { return r.kind.find(word) != std::string::npos; };
  return has("misaligned")                                          ? CUDA_ERROR_MISALIGNED_ADDRESS
         : has("bounds") || has("not device memory") || has("null") ? CUDA_ERROR_ILLEGAL_ADDRESS
                                                                    : CUDA_ERROR_LAUNCH_FAILED;
}

CUresult printReports() {
  const std::vector<simt::Report> &all = simt::reports();
  reportsPrinted = std::min(reportsPrinted, all.size()); // somebody cleared them
  for (; reportsPrinted < all.size(); ++reportsPrinted) {
    const simt::Report &r = all[reportsPrinted];
    std::fprintf(stderr, "emulated device: %s: %s: %s\n", r.kernel.c_str(), r.kind.c_str(),
                 r.text.c_str());
  }
  return all.empty() ? CUDA_ERROR_LAUNCH_FAILED : errorOf(all.back());
}

} // namespace

CUresult ModuleLoadDataEx(CUmodule *module, const void *image, unsigned, CUjit_option *, void **) {
  Lock lock(driverMutex());
  Device *device;
  if (CUresult r = currentDevice(device))
    return r;
  Elf64_Ehdr header;
  std::memcpy(&header, image, SELFMAG);
  if (std::memcmp(&header, ELFMAG, SELFMAG) != 0)
    return CUDA_ERROR_NO_BINARY_FOR_GPU; // PTX
  std::memcpy(&header, image, sizeof header);
  if (header.e_machine != EM_X86_64)
    return CUDA_ERROR_NO_BINARY_FOR_GPU; // a cubin
  size_t bytes = header.e_shoff + size_t(header.e_shnum) * header.e_shentsize;
  if (std::string_view(static_cast<const char *>(image), bytes).find(SIMT_OBJECT_MARK) ==
      std::string_view::npos)
    return CUDA_ERROR_NO_BINARY_FOR_GPU; // not from build-kernels
  // dlopen compares inodes: every load is a file of its own.
  int fd = memfd_create("kernels", 0);
  bool written = fd >= 0 && write(fd, image, bytes) == ssize_t(bytes);
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  void *handle = written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (!handle) {
    std::fprintf(stderr, "emulated device: %s\n", written ? dlerror() : "no memory file");
    close(fd);
    return CUDA_ERROR_INVALID_IMAGE;
  }
  // The descriptor stays: its number names the library until it is closed.
  *module = reinterpret_cast<CUmodule>(new Module{handle});
  return CUDA_SUCCESS;
}

CUresult ModuleUnload(CUmodule module) {
  Lock lock(driverMutex());
  drainAll();
  auto *m = reinterpret_cast<Module *>(module);
  dlclose(m->handle);
  delete m;
  return CUDA_SUCCESS;
}

CUresult ModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  Lock lock(driverMutex());
  void *entry = dlsym(reinterpret_cast<Module *>(module)->handle,
                      (std::string("simt_kernel_") + name).c_str());
  if (!entry)
    return CUDA_ERROR_NOT_FOUND;
  // Handles live as long as the process, as functions of a module do for its users.
  static std::map<void *, Function> functions;
  *function = reinterpret_cast<CUfunction>(
      &functions.try_emplace(entry, Function{static_cast<simt::KernelEntry *>(entry)})
           .first->second);
  return CUDA_SUCCESS;
}

CUresult FuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  Lock lock(driverMutex());
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
    return CUDA_ERROR_INVALID_VALUE;
  Device *device;
  if (CUresult r = currentDevice(device))
    return r;
  int most = 0;
  DeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                     CUdevice(device - visibleDevices().data()));
  if (value < 0 || value > most)
    return CUDA_ERROR_INVALID_VALUE;
  reinterpret_cast<Function *>(function)->maxDynamicShared = unsigned(value);
  return CUDA_SUCCESS;
}

CUresult LaunchKernel(CUfunction function, unsigned gridX, unsigned gridY, unsigned gridZ,
                      unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,
                      CUstream stream, void **parameters, void **extra) {
  Lock lock(driverMutex());
  const Function &f = *reinterpret_cast<Function *>(function);
  if (!gridX || !gridY || !gridZ || gridX > 0x7fffffff || gridY > 65535 || gridZ > 65535 ||
      blockX * blockY * blockZ == 0 || blockX * blockY * blockZ > 1024 || blockZ > 64 ||
      sharedBytes > f.maxDynamicShared || extra)
    return CUDA_ERROR_INVALID_VALUE;
  // Parameters are copied now, at the alignment that they may have on a device.
  struct Parameters {
    std::vector<std::unique_ptr<void, decltype(&std::free)>> values;
    std::vector<void *> pointers;
  };
  auto copies = std::make_shared<Parameters>();
  for (int i = 0; i < f.entry->argumentCount; ++i) {
    size_t bytes = f.entry->argumentBytes[i];
    copies->values.emplace_back(std::aligned_alloc(64, (bytes + 63) / 64 * 64), &std::free);
    std::memcpy(copies->values.back().get(), parameters[i], bytes);
    copies->pointers.push_back(copies->values.back().get());
  }
  return enqueue(streamOf(stream), [=, entry = f.entry] {
    return simt::launch(*entry, {gridX, gridY, gridZ}, {blockX, blockY, blockZ}, sharedBytes,
                        copies->pointers.data())
               ? CUDA_SUCCESS
               : printReports();
  });
}

} // namespace standin
