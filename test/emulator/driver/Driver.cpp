// A stand-in for libcuda.so.1 over the emulator: what runtime/device/cuda calls, for tests on
// machines without a GPU. A module is an object that build-kernels made from our own source; cubins
// and PTX are refused, so code that NVIDIA's compilers made is never run here.
//
//   SIMT_DEVICES=8.0:4096,9.0:256   compute capability and MiB of each device; this is the
//   default's form SIMT_ORDER=forward|reverse|random[:SEED]   SIMT_WORKERS=N CUDA_VISIBLE_DEVICES
//   as the driver reads it
//
// Faults that the emulator finds go to stderr and end the launch with an error.
#include "runtime/device/cuda/DriverTypes.h"
#include "test/emulator/Emulator.h"
#include "test/emulator/driver/Streams.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>

namespace standin {

using namespace llmrt::cuda;

namespace {

struct Device {
  int major, minor;
  size_t bytes;
};

struct Module {
  void *handle;
};
struct Function {
  const simt::KernelEntry *entry;
  unsigned maxDynamicShared = 48 << 10;
};

std::recursive_mutex mutex;
bool initialised = false;
std::vector<Device> devices; ///< visible ones
int current = -1;            ///< the device whose context is current
std::map<void *, size_t> hostMemory;
std::map<CUdeviceptr, std::pair<int, size_t>> deviceMemory;
std::map<int, size_t> used;
size_t reportsPrinted = 0;

using Lock = std::lock_guard<std::recursive_mutex>;

Stream &streamOf(CUstream s) { return s ? *reinterpret_cast<Stream *>(s) : nullStream(); }

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

bool onDevice(CUdeviceptr p, size_t bytes) {
  return simt::isDeviceMemory(reinterpret_cast<void *>(p), bytes);
}

CUresult ready() {
  return !initialised  ? CUDA_ERROR_NOT_INITIALIZED
         : current < 0 ? CUDA_ERROR_INVALID_CONTEXT
                       : CUDA_SUCCESS;
}

} // namespace

CUresult Init(unsigned) {
  Lock lock(mutex);
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
  devices = visible(all);
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
  return devices.empty() ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
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
  *count = int(devices.size());
  return initialised ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult DeviceGet(CUdevice *device, int ordinal) {
  if (ordinal < 0 || ordinal >= int(devices.size()))
    return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult DeviceGetName(char *name, int bytes, CUdevice device) {
  const Device &d = devices[size_t(device)];
  std::snprintf(name, size_t(bytes), "SIMT emulator %d.%d", d.major, d.minor);
  return CUDA_SUCCESS;
}

CUresult DeviceGetUuid(CUuuid *uuid, CUdevice device) {
  std::memset(uuid->bytes, 0, sizeof uuid->bytes);
  uuid->bytes[15] = char(device);
  return CUDA_SUCCESS;
}

CUresult DeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  const Device &d = devices[size_t(device)];
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

CUresult MemGetInfo(size_t *free, size_t *total) {
  Lock lock(mutex);
  if (CUresult r = ready())
    return r;
  *total = devices[size_t(current)].bytes;
  *free = *total - used[current];
  return CUDA_SUCCESS;
}

CUresult MemAlloc(CUdeviceptr *memory, size_t bytes) {
  Lock lock(mutex);
  if (CUresult r = ready())
    return r;
  if (bytes == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (bytes > devices[size_t(current)].bytes - used[current])
    return CUDA_ERROR_OUT_OF_MEMORY;
  void *p = simt::allocate(bytes);
  if (!p)
    return CUDA_ERROR_OUT_OF_MEMORY;
  *memory = reinterpret_cast<CUdeviceptr>(p);
  deviceMemory[*memory] = {current, bytes};
  used[current] += bytes;
  return CUDA_SUCCESS;
}

CUresult MemFree(CUdeviceptr memory) {
  Lock lock(mutex);
  drainAll();
  auto it = deviceMemory.find(memory);
  if (it == deviceMemory.end())
    return CUDA_ERROR_INVALID_VALUE;
  used[it->second.first] -= it->second.second;
  deviceMemory.erase(it);
  simt::release(reinterpret_cast<void *>(memory));
  return CUDA_SUCCESS;
}

CUresult MemHostAlloc(void **memory, size_t bytes, unsigned) {
  Lock lock(mutex);
  *memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (!*memory)
    return CUDA_ERROR_OUT_OF_MEMORY;
  std::memset(*memory, 0xff, bytes);
  hostMemory[*memory] = bytes;
  return CUDA_SUCCESS;
}

CUresult MemFreeHost(void *memory) {
  Lock lock(mutex);
  drainAll();
  if (hostMemory.erase(memory) == 0)
    return CUDA_ERROR_INVALID_VALUE;
  std::free(memory);
  return CUDA_SUCCESS;
}

CUresult MemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
  Lock lock(mutex);
  if (!onDevice(to, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  return enqueue(streamOf(stream), [=] {
    std::memcpy(reinterpret_cast<void *>(to), from, bytes);
    simt::markInitialised(reinterpret_cast<void *>(to), bytes);
    return CUDA_SUCCESS;
  });
}

CUresult MemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
  Lock lock(mutex);
  if (!onDevice(from, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  return enqueue(streamOf(stream), [=] {
    std::memcpy(to, reinterpret_cast<void *>(from), bytes);
    return CUDA_SUCCESS;
  });
}

CUresult MemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  Lock lock(mutex);
  if (!onDevice(from, bytes) || !onDevice(to, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  return enqueue(streamOf(stream), [=] {
    std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes);
    simt::markInitialised(reinterpret_cast<void *>(to), bytes);
    return CUDA_SUCCESS;
  });
}

CUresult MemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
  Lock lock(mutex);
  if (!onDevice(to, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  return enqueue(streamOf(stream), [=] {
    std::memset(reinterpret_cast<void *>(to), value, bytes);
    simt::markInitialised(reinterpret_cast<void *>(to), bytes);
    return CUDA_SUCCESS;
  });
}

CUresult ModuleLoadDataEx(CUmodule *module, const void *image, unsigned, CUjit_option *, void **) {
  Lock lock(mutex);
  if (CUresult r = ready())
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
  Lock lock(mutex);
  drainAll();
  auto *m = reinterpret_cast<Module *>(module);
  dlclose(m->handle);
  delete m;
  return CUDA_SUCCESS;
}

CUresult ModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  Lock lock(mutex);
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
  Lock lock(mutex);
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
    return CUDA_ERROR_INVALID_VALUE;
  int most = 0;
  DeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, current);
  if (value < 0 || value > most)
    return CUDA_ERROR_INVALID_VALUE;
  reinterpret_cast<Function *>(function)->maxDynamicShared = unsigned(value);
  return CUDA_SUCCESS;
}

CUresult LaunchKernel(CUfunction function, unsigned gridX, unsigned gridY, unsigned gridZ,
                      unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,
                      CUstream stream, void **parameters, void **extra) {
  Lock lock(mutex);
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

CUresult StreamCreate(CUstream *stream, unsigned) {
  Lock lock(mutex);
  auto *s = new Stream;
  streams().insert(s);
  *stream = reinterpret_cast<CUstream>(s);
  return CUDA_SUCCESS;
}
CUresult StreamDestroy(CUstream stream) {
  Lock lock(mutex);
  drain(streamOf(stream));
  streams().erase(&streamOf(stream));
  delete &streamOf(stream);
  return CUDA_SUCCESS;
}
CUresult StreamSynchronize(CUstream stream) {
  Lock lock(mutex);
  if (streamOf(stream).capturing)
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return drain(streamOf(stream));
}
CUresult StreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  Lock lock(mutex);
  if (streamOf(stream).capturing)
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  auto *e = reinterpret_cast<Event *>(event);
  streamOf(stream).queue.push_back({nullptr, nullptr, e, e->recorded});
  return stickyError();
}
CUresult StreamBeginCapture(CUstream stream, CUstreamCaptureMode) {
  Lock lock(mutex);
  if (!stream || streamOf(stream).capturing)
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  streamOf(stream).capturing = std::make_unique<Graph>();
  return CUDA_SUCCESS;
}
CUresult StreamEndCapture(CUstream stream, CUgraph *graph) {
  Lock lock(mutex);
  if (!streamOf(stream).capturing)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  *graph = reinterpret_cast<CUgraph>(streamOf(stream).capturing.release());
  return CUDA_SUCCESS;
}
CUresult GraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long) {
  Lock lock(mutex);
  *exec = reinterpret_cast<CUgraphExec>(new Graph(*reinterpret_cast<Graph *>(graph)));
  return CUDA_SUCCESS;
}
CUresult GraphDestroy(CUgraph graph) {
  Lock lock(mutex);
  delete reinterpret_cast<Graph *>(graph);
  return CUDA_SUCCESS;
}
CUresult GraphExecDestroy(CUgraphExec exec) {
  Lock lock(mutex);
  delete reinterpret_cast<Graph *>(exec);
  return CUDA_SUCCESS;
}
CUresult GraphLaunch(CUgraphExec exec, CUstream stream) {
  Lock lock(mutex);
  for (const Work &node : reinterpret_cast<Graph *>(exec)->nodes)
    if (CUresult r = enqueue(streamOf(stream), node))
      return r;
  return CUDA_SUCCESS;
}

CUresult EventCreate(CUevent *event, unsigned) {
  *event = reinterpret_cast<CUevent>(new Event);
  return CUDA_SUCCESS;
}
CUresult EventDestroy(CUevent event) {
  Lock lock(mutex);
  auto *e = reinterpret_cast<Event *>(event);
  waitFor(*e, e->recorded);
  delete e;
  return CUDA_SUCCESS;
}
CUresult EventRecord(CUevent event, CUstream stream) {
  Lock lock(mutex);
  if (streamOf(stream).capturing)
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  auto *e = reinterpret_cast<Event *>(event);
  streamOf(stream).queue.push_back({nullptr, e, nullptr, ++e->recorded});
  return stickyError();
}
CUresult EventSynchronize(CUevent event) {
  Lock lock(mutex);
  auto *e = reinterpret_cast<Event *>(event);
  return waitFor(*e, e->recorded);
}
CUresult EventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
  Lock lock(mutex);
  auto *a = reinterpret_cast<Event *>(start), *b = reinterpret_cast<Event *>(end);
  if (a->reached < a->recorded || b->reached < b->recorded)
    return CUDA_ERROR_NOT_READY;
  *milliseconds = float((b->seconds - a->seconds) * 1e3);
  return CUDA_SUCCESS;
}

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
