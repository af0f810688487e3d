#include "compiler/import/common/MappedFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

using namespace llmrt;

namespace llmc {

Result<MappedFile> MappedFile::open(const std::string &path) {
  // A FIFO would block the plain open for ever.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0)
    return ioError(path + ": can't be opened: " + std::strerror(errno));
  return fromDescriptor(fd, path);
}

Result<MappedFile> MappedFile::fromDescriptor(int fd, const std::string &path) {
  struct stat info;
  if (::fstat(fd, &info) != 0) {
    const int error = errno;
    ::close(fd);
    return ioError(path + ": " + std::strerror(error));
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(fd);
    return invalidArgument(path + ": not a regular file");
  }
  const uint64_t size = static_cast<uint64_t>(info.st_size);
  void *data = nullptr;
  if (size != 0) {
    data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
      const int error = errno;
      ::close(fd);
      return ioError(path + ": can't be mapped: " + std::strerror(error));
    }
  }
  return MappedFile(fd, static_cast<const uint8_t *>(data), size, path);
}

MappedFile::MappedFile(MappedFile &&other) noexcept
    : fd_(std::exchange(other.fd_, -1)), data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)), path_(std::move(other.path_)) {}

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(path_, other.path_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_)
    ::munmap(const_cast<uint8_t *>(data_), size_);
  if (fd_ >= 0)
    ::close(fd_);
}

Result<std::span<const uint8_t>> MappedFile::extent(uint64_t offset, uint64_t size,
                                                    const std::string &what) const {
  if (offset > size_ || size > size_ - offset)
    return invalidFile(path_ + ": " + what + " needs " + std::to_string(size) +
                       " bytes at offset " + std::to_string(offset) + ", but the file has " +
                       std::to_string(size_) + " bytes; it may be cut short");
  return bytes().subspan(offset, size);
}

Status MappedFile::checkStillWhole() const {
  struct stat info;
  if (::fstat(fd_, &info) != 0)
    return ioError(path_ + ": " + std::strerror(errno));
  if (static_cast<uint64_t>(info.st_size) < size_)
    return ioError(path_ + ": shrank from " + std::to_string(size_) + " to " +
                   std::to_string(info.st_size) + " bytes while it was being read");
  return Status::ok();
}

} // namespace llmc
