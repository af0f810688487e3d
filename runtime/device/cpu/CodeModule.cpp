#include "runtime/device/cpu/CodeModule.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U // Linux 6.3; older kernels refuse the bit
#endif

namespace llmrt {
namespace {

int createMemoryFile() {
  constexpr unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  int fd = memfd_create("llmrt-code", flags | MFD_EXEC);
  if (fd < 0 && errno == EINVAL)
    fd = memfd_create("llmrt-code", flags);
  return fd;
}

bool writeAll(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return false;
    bytes = bytes.subspan(size_t(written));
  }
  return true;
}

/// dlopen trusts what it reads; what it would crash on is refused before.
Status checkElf(std::span<const std::byte> elf, const std::string &name) {
  static constexpr unsigned char start[] = {0x7f, 'E', 'L', 'F', 2 /*64-bit*/, 1 /*little*/};
  if (elf.size() < 64 || std::memcmp(elf.data(), start, sizeof(start)) != 0)
    return invalidFile(name + ": not a 64-bit little-endian ELF object");
  return Status::ok();
}

} // namespace

Result<CodeModule> CodeModule::load(std::span<const std::byte> elf, const std::string &name) {
  LLMRT_RETURN_IF_ERROR(checkElf(elf, name));
  int fd = createMemoryFile();
  if (fd < 0)
    return ioError(name + ": memfd_create: " + std::strerror(errno));
  if (!writeAll(fd, elf)) {
    Status failure = ioError(name + ": writing the code to memory: " + std::strerror(errno));
    ::close(fd);
    return failure;
  }
  // From here on nobody can change the code under the mapping.
  ::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
  std::string path = "/proc/self/fd/" + std::to_string(fd);
  void *handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *why = ::dlerror();
    Status failure = invalidFile(name + ": the code can't be loaded: " + (why ? why : "dlopen"));
    ::close(fd);
    return failure;
  }
  return CodeModule(fd, handle, name);
}

CodeModule::CodeModule(CodeModule &&other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      handle_(std::exchange(other.handle_, nullptr)), name_(std::move(other.name_)) {}

CodeModule &CodeModule::operator=(CodeModule &&other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(handle_, other.handle_);
  std::swap(name_, other.name_);
  return *this;
}

CodeModule::~CodeModule() {
  if (handle_)
    ::dlclose(handle_);
  if (descriptor_ >= 0)
    ::close(descriptor_);
}

Result<void *> CodeModule::symbol(const char *symbol) const {
  void *address = ::dlsym(handle_, symbol);
  if (!address)
    return invalidFile(name_ + ": has no kernel '" + symbol + "'");
  return address;
}

Result<LlmrtKernel> CodeModule::kernel(const char *symbol) const {
  LLMRT_ASSIGN_OR_RETURN(void *address, this->symbol(symbol));
  return reinterpret_cast<LlmrtKernel>(address);
}

} // namespace llmrt
