#include "tools/common/Npy.h"

#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace llmc::tools {

using llmrt::ioError;
using llmrt::Status;

NpyWriter::~NpyWriter() {
  if (file_) {
    std::fclose(file_);
    ::unlink(temporary_.c_str());
  }
}

Status NpyWriter::open(const std::string &path, int64_t rows, int64_t columns) {
  path_ = path;
  temporary_ = path + ".tmp-" + std::to_string(::getpid());
  file_ = std::fopen(temporary_.c_str(), "wb");
  if (!file_)
    return ioError(path + ": " + std::strerror(errno));
  missing_ = rows * columns;
  // Magic, version 1.0, header length, then a dictionary padded so that the data is 64-byte
  // aligned (NEP 1).
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                       std::to_string(rows) + ", " + std::to_string(columns) + "), }";
  size_t total = (10 + header.size() + 1 + 63) / 64 * 64;
  header.append(total - 10 - header.size() - 1, ' ');
  header += '\n';
  std::string start("\x93NUMPY\x01\x00", 8);
  start += static_cast<char>(header.size() & 0xff);
  start += static_cast<char>(header.size() >> 8);
  start += header;
  failed_ = std::fwrite(start.data(), 1, start.size(), file_) != start.size();
  error_ = errno;
  return Status::ok();
}

void NpyWriter::append(std::span<const float> values) {
  missing_ -= static_cast<int64_t>(values.size());
  if (!failed_ &&
      std::fwrite(values.data(), sizeof(float), values.size(), file_) != values.size()) {
    failed_ = true;
    error_ = errno;
  }
}

Status NpyWriter::commit() {
  bool closed = std::fclose(file_) == 0;
  if (!closed && !failed_)
    error_ = errno;
  file_ = nullptr;
  if (failed_ || !closed || missing_ != 0) {
    ::unlink(temporary_.c_str());
    return ioError(path_ + ": " +
                   (failed_ || !closed ? std::strerror(error_) : "not all values were computed"));
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    Status failure = ioError(path_ + ": " + std::strerror(errno));
    ::unlink(temporary_.c_str());
    return failure;
  }
  return Status::ok();
}

} // namespace llmc::tools
