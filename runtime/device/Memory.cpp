#include "runtime/device/Memory.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <sys/mman.h>
#include <utility>

namespace llmrt {
namespace {

constexpr uint64_t hugePage = uint64_t(2) << 20;

std::optional<uint64_t> readNumber(const std::string &path) {
  std::ifstream in(path);
  uint64_t value;
  if (in >> value)
    return value;
  return std::nullopt; // absent, or "max"
}

/// What the limit leaves in the group at \p directory and in each of its parents below \p mount.
void tighten(uint64_t &available, const std::string &mount, std::string path, const char *limitFile,
             const char *usageFile) {
  while (true) {
    while (!path.empty() && path.back() == '/')
      path.pop_back();
    std::string directory = mount + path;
    if (std::optional<uint64_t> limit = readNumber(directory + limitFile)) {
      uint64_t used = readNumber(directory + usageFile).value_or(0);
      available = std::min(available, *limit - std::min(*limit, used));
    }
    size_t slash = path.rfind('/');
    if (slash == std::string::npos)
      return;
    path.resize(slash);
  }
}

} // namespace

Result<Memory> Memory::allocate(uint64_t bytes, const std::string &what) {
  if (bytes == 0)
    return Memory();
  if (bytes > std::numeric_limits<uint64_t>::max() / 2)
    return resourceExhausted(what + " would need " + std::to_string(bytes) + " bytes");
  uint64_t rounded = (bytes + 4095) & ~uint64_t(4095);
  void *p = ::mmap(nullptr, rounded, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    return resourceExhausted(what + " needs " + std::to_string(bytes) +
                             " bytes: " + std::strerror(errno));
  if (rounded >= hugePage)
    ::madvise(p, rounded, MADV_HUGEPAGE);
  return Memory(static_cast<uint8_t *>(p), rounded);
}

Memory::Memory(Memory &&other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Memory &Memory::operator=(Memory &&other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Memory::~Memory() {
  if (data_)
    ::munmap(data_, size_);
}

uint64_t availableMemory(const std::string &root) {
  uint64_t available = std::numeric_limits<uint64_t>::max();
  std::ifstream meminfo(root + "/proc/meminfo");
  for (std::string key; meminfo >> key;) {
    uint64_t kib = 0;
    if (key == "MemAvailable:" && meminfo >> kib) {
      available = kib * 1024;
      break;
    }
    std::getline(meminfo, key);
  }
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    size_t first = line.find(':');
    size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos)
      continue;
    std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string path = line.substr(second + 1);
    if (controllers == ",,")
      tighten(available, root + "/sys/fs/cgroup", path, "/memory.max", "/memory.current");
    else if (controllers.find(",memory,") != std::string::npos)
      tighten(available, root + "/sys/fs/cgroup/memory", path, "/memory.limit_in_bytes",
              "/memory.usage_in_bytes");
  }
  return available;
}

} // namespace llmrt
