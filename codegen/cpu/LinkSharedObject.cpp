#include "codegen/cpu/LinkSharedObject.h"

#include "lld/Common/Driver.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

LLD_HAS_DRIVER(elf)

using namespace llmc;

namespace {

llvm::Error systemError(llvm::StringRef what) {
  return llvm::createStringError(std::error_code(errno, std::generic_category()), what);
}

llvm::Error writeAll(int fd, llvm::StringRef bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return systemError("linking CPU code: can't write the object to memory");
    bytes = bytes.drop_front(n);
  }
  return llvm::Error::success();
}

} // namespace

llvm::Expected<std::string> llmc::linkSharedObject(llvm::ArrayRef<llvm::StringRef> relocatables) {
  static std::mutex lldMutex;
  std::lock_guard<std::mutex> lock(lldMutex);

  std::vector<int> files;
  llvm::scope_exit close([&] { llvm::for_each(files, ::close); });
  std::vector<std::string> inputs;
  for (llvm::StringRef relocatable : relocatables) {
    files.push_back(::memfd_create("llmc-object", MFD_CLOEXEC));
    if (files.back() < 0)
      return systemError("linking CPU code: can't create a file in memory");
    if (llvm::Error error = writeAll(files.back(), relocatable))
      return error;
    inputs.push_back("/proc/self/fd/" + std::to_string(files.back()));
  }
  // lld renames its output into place, which needs a real folder.
  llvm::SmallString<128> folder;
  if (std::error_code error = llvm::sys::fs::createUniqueDirectory("llmc-link", folder))
    return llvm::createStringError(error, "linking CPU code: can't create a temporary folder: " +
                                              error.message());
  llvm::scope_exit remove([&] { llvm::sys::fs::remove_directories(folder); });

  const std::string outPath = (folder + "/code.so").str();
  std::vector<const char *> arguments = {"ld.lld",
                                         "-shared",
                                         "-z",
                                         "defs",
                                         "-z",
                                         "noexecstack",
                                         "-z",
                                         "now",
                                         "--gc-sections",
                                         "--build-id=none",
                                         "--hash-style=gnu",
                                         "--strip-all",
                                         "--threads=1",
                                         "-o",
                                         outPath.c_str()};
  for (const std::string &input : inputs)
    arguments.push_back(input.c_str());
  std::string text;
  llvm::raw_string_ostream messages(text);
  lld::Result result = lld::lldMain(arguments, messages, messages, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0)
    return llvm::createStringError(std::make_error_code(std::errc::invalid_argument),
                                   "linking CPU code failed: " + llvm::StringRef(text).trim());
  auto buffer = llvm::MemoryBuffer::getFile(outPath, false, false);
  if (!buffer)
    return llvm::createStringError(buffer.getError(), "linking CPU code: can't read the result: " +
                                                          buffer.getError().message());
  return (*buffer)->getBuffer().str();
}
