//===- LoadCompiler.cpp - the compiler, when it is needed -----------------------------------===//

#include "tools/llmc/LoadCompiler.h"

#include <dlfcn.h>
#include <filesystem>

using namespace llmc;
using llmrt::Status;

/// `bin/llmc` in a build or an installation has its library in `lib` beside `bin`; a distribution
/// may use another name for that folder.
static std::string libraryPath() {
  std::error_code error;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path().parent_path() / LLMC_LIBDIR / "libllmc_compiler.so").string();
}

Status tools::compile(const CompileOptions &options, CompileReport &report) {
  static void *library = nullptr;
  std::string path = libraryPath();
  if (!library)
    library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return llmrt::unsupported(std::string("the compiler can't be loaded: ") + dlerror());
  auto entry = reinterpret_cast<CompileEntry>(dlsym(library, kCompileEntry));
  if (!entry)
    return llmrt::unsupported(path + ": is no compiler of this version");
  Status status;
  entry(options, report, status);
  return status;
}
