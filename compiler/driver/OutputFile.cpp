//===- OutputFile.cpp - text files that are whole or not there ---------------------------===//

#include "compiler/driver/OutputFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

using llmrt::Status;

Status llmc::makeFolder(const std::string &path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error)
    return llmrt::ioError(path + ": the folder can't be made: " + error.message());
  return Status::ok();
}

Status llmc::writeOutputFile(const std::string &path, const std::string &text) {
  std::string temporary = path + ".tmp-" + std::to_string(getpid());
  int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0)
    return llmrt::ioError(path + ": can't be written: " + std::strerror(errno));
  size_t done = 0;
  int error = 0;
  while (done < text.size() && !error) {
    ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno != EINTR)
      error = errno;
    else if (n > 0)
      done += static_cast<size_t>(n);
  }
  if (close(fd) && !error)
    error = errno;
  if (!error && rename(temporary.c_str(), path.c_str()))
    error = errno;
  if (!error)
    return Status::ok();
  unlink(temporary.c_str());
  return llmrt::ioError(path + ": can't be written: " + std::strerror(error));
}
