//===- InputFile.h - the fuzzer's bytes as a file ----------------------------------===//
#ifndef LLMC_TEST_FUZZ_INPUTFILE_H
#define LLMC_TEST_FUZZ_INPUTFILE_H

#include <cstdint>
#include <cstdlib>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace llmc::fuzz {

/// A file in memory, for readers that map their input.
class InputFile {
public:
  InputFile(const uint8_t *data, size_t size) : descriptor_(memfd_create("input", MFD_CLOEXEC)) {
    if (descriptor_ < 0 || (size && write(descriptor_, data, size) != static_cast<ssize_t>(size)))
      std::abort();
  }
  ~InputFile() { close(descriptor_); }
  InputFile(const InputFile &) = delete;
  InputFile &operator=(const InputFile &) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

private:
  int descriptor_;
};

} // namespace llmc::fuzz

#endif // LLMC_TEST_FUZZ_INPUTFILE_H
