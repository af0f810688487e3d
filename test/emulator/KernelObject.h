//===- KernelObject.h - kernels that build-kernels made ---------------------===//
#ifndef LLMC_TEST_EMULATOR_KERNELOBJECT_H
#define LLMC_TEST_EMULATOR_KERNELOBJECT_H

#include "test/emulator/Abi.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <string>

namespace simt {

/// A test's own object: what is missing ends the test program with a message.
class KernelObject {
public:
  explicit KernelObject(const char *path) : handle_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (!handle_)
      die(dlerror());
  }
  KernelObject(const KernelObject &) = delete;
  KernelObject &operator=(const KernelObject &) = delete;
  ~KernelObject() { dlclose(handle_); }

  const KernelEntry &kernel(const std::string &name) const {
    void *entry = dlsym(handle_, ("simt_kernel_" + name).c_str());
    if (!entry)
      die(("no kernel " + name).c_str());
    return *static_cast<const KernelEntry *>(entry);
  }

private:
  [[noreturn]] static void die(const char *what) {
    std::fprintf(stderr, "%s\n", what);
    std::abort();
  }
  void *handle_;
};

} // namespace simt

#endif // LLMC_TEST_EMULATOR_KERNELOBJECT_H
