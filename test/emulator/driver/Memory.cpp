// The stand-in driver's memory: of the device, pinned, and copies between them.
#include "test/emulator/Emulator.h"
#include "test/emulator/TensorCopies.h"
#include "test/emulator/driver/Device.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

namespace standin {
namespace {

std::map<void *, size_t> &hostMemory() {
  static std::map<void *, size_t> all;
  return all;
}
/// By address: which of the visible devices, and how many bytes.
std::map<CUdeviceptr, std::pair<size_t, size_t>> &deviceMemory() {
  static std::map<CUdeviceptr, std::pair<size_t, size_t>> all;
  return all;
}

bool onDevice(CUdeviceptr p, size_t bytes) {
  return simt::isDeviceMemory(reinterpret_cast<void *>(p), bytes);
}

} // namespace

CUresult MemGetInfo(size_t *free, size_t *total) {
  Lock lock(driverMutex());
  Device *device;
  if (CUresult r = currentDevice(device))
    return r;
  *total = device->bytes;
  *free = device->bytes - device->used;
  return CUDA_SUCCESS;
}

CUresult MemAlloc(CUdeviceptr *memory, size_t bytes) {
  Lock lock(driverMutex());
  Device *device;
  if (CUresult r = currentDevice(device))
    return r;
  if (bytes == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (bytes > device->bytes - device->used)
    return CUDA_ERROR_OUT_OF_MEMORY;
  void *p = simt::allocate(bytes);
  if (!p)
    return CUDA_ERROR_OUT_OF_MEMORY;
  *memory = reinterpret_cast<CUdeviceptr>(p);
  deviceMemory()[*memory] = {size_t(device - visibleDevices().data()), bytes};
  device->used += bytes;
  return CUDA_SUCCESS;
}

CUresult MemFree(CUdeviceptr memory) {
  Lock lock(driverMutex());
  drainAll();
  auto it = deviceMemory().find(memory);
  if (it == deviceMemory().end())
    return CUDA_ERROR_INVALID_VALUE;
  visibleDevices()[it->second.first].used -= it->second.second;
  deviceMemory().erase(it);
  simt::release(reinterpret_cast<void *>(memory));
  return CUDA_SUCCESS;
}

CUresult MemHostAlloc(void **memory, size_t bytes, unsigned) {
  Lock lock(driverMutex());
  *memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (!*memory)
    return CUDA_ERROR_OUT_OF_MEMORY;
  std::memset(*memory, 0xff, bytes);
  hostMemory()[*memory] = bytes;
  return CUDA_SUCCESS;
}

CUresult MemFreeHost(void *memory) {
  Lock lock(driverMutex());
  auto it = hostMemory().find(memory);
  if (it == hostMemory().end())
    return CUDA_ERROR_INVALID_VALUE;
  std::memset(memory, 0xff, it->second); // another's at once: nothing waits for copies
  hostMemory().erase(it);
  afterQueued([memory] { std::free(memory); });
  return CUDA_SUCCESS;
}

CUresult MemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
  Lock lock(driverMutex());
  if (!onDevice(to, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  return enqueue(streamOf(stream), [=] {
    std::memcpy(reinterpret_cast<void *>(to), from, bytes);
    simt::markInitialised(reinterpret_cast<void *>(to), bytes);
    return CUDA_SUCCESS;
  });
}

CUresult MemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
  Lock lock(driverMutex());
  if (!onDevice(from, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  return enqueue(streamOf(stream), [=] {
    std::memcpy(to, reinterpret_cast<void *>(from), bytes);
    simt::bytesToHost() += bytes;
    return CUDA_SUCCESS;
  });
}

CUresult MemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  Lock lock(driverMutex());
  if (!onDevice(from, bytes) || !onDevice(to, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  return enqueue(streamOf(stream), [=] {
    std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes);
    simt::markInitialised(reinterpret_cast<void *>(to), bytes);
    return CUDA_SUCCESS;
  });
}

CUresult MemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
  Lock lock(driverMutex());
  if (!onDevice(to, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  return enqueue(streamOf(stream), [=] {
    std::memset(reinterpret_cast<void *>(to), value, bytes);
    simt::markInitialised(reinterpret_cast<void *>(to), bytes);
    return CUDA_SUCCESS;
  });
}

CUresult TensorMapEncodeTiled(void *map, CUtensorMapDataType type, unsigned rank, void *address,
                              const uint64_t *sizes, const uint64_t *strides, const unsigned *box,
                              const unsigned *elementStrides, CUtensorMapInterleave interleave,
                              CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                              CUtensorMapFloatOOBfill) {
  bool isPlain = interleave == CU_TENSOR_MAP_INTERLEAVE_NONE &&
                 swizzle == CU_TENSOR_MAP_SWIZZLE_128B && type == CU_TENSOR_MAP_DATA_TYPE_UINT16;
  for (unsigned i = 0; i < rank; ++i)
    isPlain &= elementStrides[i] == 1;
  std::string why = "not what the emulator has";
  if (isPlain)
    why = simt::encodeTensorMap(map, {address, rank, sizes, strides, box});
  if (why.empty())
    return CUDA_SUCCESS;
  std::fprintf(stderr, "emulated device: a tensor map of %s\n", why.c_str());
  return CUDA_ERROR_INVALID_VALUE;
}

} // namespace standin
