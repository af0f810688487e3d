//===- LoadCompiler.cpp - the compiler, when it is needed -----------------------------------===//

#include "tools/llmc/LoadCompiler.h"
#include "compiler/cache/CompileCache.h"
#include "runtime/engine/SelfTest.h"

#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>

using namespace llmc;
using llmrt::Status;

/// The library is in `lib` beside the build's `bin`, and where an installation puts libraries.
static std::string libraryPath() {
  std::error_code error;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  std::filesystem::path prefix = self.parent_path().parent_path();
  for (const char *folder : {"lib", LLMC_INSTALL_LIBDIR}) {
    std::filesystem::path path = prefix / folder / "libllmc_compiler.so";
    if (std::filesystem::exists(path, error))
      return path.string();
  }
  return (prefix / "lib" / "libllmc_compiler.so").string();
}

static Status runSelfTest(const std::string &path, std::span<const int32_t> prompt,
                          std::span<int32_t> tokens, uint64_t &fingerprint) {
  LLMRT_ASSIGN_OR_RETURN(std::shared_ptr<const llmrt::Plan> plan, llmrt::Plan::open(path));
  return llmrt::runSelfTest(std::move(plan), prompt, tokens, fingerprint);
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
  CompileOptions withTest = options;
  withTest.selfTest = runSelfTest;
  Status status;
  entry(withTest, report, status);
  return status;
}

/// Changes with every build of the compiler: its version, and the library's size and time.
static std::string compilerId() {
  struct stat s = {};
  stat(libraryPath().c_str(), &s);
  return "llmc " LLMC_VERSION " " + std::to_string(s.st_size) + " " +
         std::to_string(s.st_mtim.tv_sec) + "." + std::to_string(s.st_mtim.tv_nsec);
}

llmrt::Result<std::string> tools::planOf(const std::string &modelOrPlan, CompileOptions options) {
  char magic[8] = {};
  std::ifstream(modelOrPlan, std::ios::binary).read(magic, sizeof magic);
  if (std::string_view(magic, 8) == "LLMPLAN1" || modelOrPlan.ends_with(".plan"))
    return modelOrPlan;
  LLMRT_ASSIGN_OR_RETURN(std::string folder, CompileCache::defaultFolder());
  options.model = modelOrPlan;
  return CompileCache(folder, compilerId()).planFor(std::move(options), compile);
}
