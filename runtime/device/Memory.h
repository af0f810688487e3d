//===- Memory.h - large memory straight from the system ---------------------===//
#ifndef LLMRT_DEVICE_MEMORY_H
#define LLMRT_DEVICE_MEMORY_H

#include "runtime/support/Status.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace llmrt {

/// Zeroed, page-aligned, private memory for the arena and the KV pool. Pages are made on first
/// touch, so a size is an upper bound and costs nothing until used; huge pages are asked for.
class Memory {
public:
  Memory() = default;
  /// \p what is for the message ("the KV pool").
  static Result<Memory> allocate(uint64_t bytes, const std::string &what);
  Memory(Memory &&other) noexcept;
  Memory &operator=(Memory &&other) noexcept;
  ~Memory();

  uint8_t *data() const { return data_; }
  uint64_t size() const { return size_; }

private:
  Memory(uint8_t *data, uint64_t size) : data_(data), size_(size) {}
  uint8_t *data_ = nullptr;
  uint64_t size_ = 0;
};

/// Bytes that this process may still use: the least of what the machine has available and what
/// the cgroup's limits (v2 memory.max, v1 memory.limit_in_bytes) leave. Files are read below
/// \p root, "" outside tests. UINT64_MAX where nothing is known.
uint64_t availableMemory(const std::string &root = "");

} // namespace llmrt

#endif // LLMRT_DEVICE_MEMORY_H
