//===- MappedFile.h - a model's file, mapped read-only -----------------------===//
//
// Model files are read in place: weights never enter private memory except row by row. All
// accesses go through checked extents, because every offset comes from the file itself.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_IMPORT_COMMON_MAPPEDFILE_H
#define LLMC_IMPORT_COMMON_MAPPEDFILE_H

#include "runtime/support/Status.h"

#include <cstdint>
#include <span>
#include <string>

namespace llmc {

class MappedFile {
public:
  /// Maps the regular file at \p path, which the user named (symbolic links are followed).
  static llmrt::Result<MappedFile> open(const std::string &path);
  /// Maps the open file \p fd, which is closed in any case; \p path is for messages. Anything
  /// but a regular file (folder, FIFO, device, socket) is refused.
  static llmrt::Result<MappedFile> fromDescriptor(int fd, const std::string &path);

  MappedFile(MappedFile &&other) noexcept;
  MappedFile &operator=(MappedFile &&other) noexcept;
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;
  ~MappedFile();

  const std::string &path() const { return path_; }
  uint64_t size() const { return size_; }
  std::span<const uint8_t> bytes() const { return {data_, size_}; }

  /// Bytes [offset, offset + size); fails, with both extents in the message, when the file is
  /// too short. \p what names the thing in the message.
  llmrt::Result<std::span<const uint8_t>> extent(uint64_t offset, uint64_t size,
                                                 const std::string &what) const;
  /// Fails when the file was cut short after it was mapped: touching the lost pages would kill
  /// the process. To be asked between tensors.
  llmrt::Status checkStillWhole() const;

private:
  MappedFile(int fd, const uint8_t *data, uint64_t size, std::string path)
      : fd_(fd), data_(data), size_(size), path_(std::move(path)) {}

  int fd_ = -1;
  const uint8_t *data_ = nullptr;
  uint64_t size_ = 0;
  std::string path_;
};

} // namespace llmc

#endif // LLMC_IMPORT_COMMON_MAPPEDFILE_H
