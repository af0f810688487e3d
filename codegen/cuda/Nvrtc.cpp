#include "codegen/cuda/Nvrtc.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <mutex>

using namespace llmc;
using llmrt::Result;
namespace fs = std::filesystem;

/// The functions that are used, declared as NVRTC's documentation has them. A result of 0 is
/// success.
struct Nvrtc::Api {
  using Program = void *;
  int (*version)(int *major, int *minor);
  const char *(*errorString)(int);
  int (*createProgram)(Program *, const char *source, const char *name, int headers,
                       const char *const *headerTexts, const char *const *headerNames);
  int (*destroyProgram)(Program *);
  int (*compileProgram)(Program, int options, const char *const *);
  int (*logSize)(Program, size_t *);
  int (*log)(Program, char *);
  int (*cubinSize)(Program, size_t *);
  int (*cubin)(Program, char *);
  int (*ptxSize)(Program, size_t *);
  int (*ptx)(Program, char *);
};

namespace {

/// Names of the library, newest first.
const char *const kNames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};

/// Folders that may hold the library and are not on the loader's path.
std::vector<fs::path> folders() {
  std::vector<fs::path> found;
  std::error_code error;
  auto matching = [&](const fs::path &parent, llvm::StringRef prefix, const char *below) {
    std::vector<fs::path> names;
    for (fs::directory_iterator it(parent, error), end; !error && it != end; it.increment(error))
      if (llvm::StringRef(it->path().filename().string()).starts_with(prefix))
        names.push_back(it->path() / below);
    std::sort(names.rbegin(), names.rend());
    found.insert(found.end(), names.begin(), names.end());
  };
  matching("/usr/local", "cuda", "lib64");
  // Python packages: of the active environment, of the user, of the system.
  std::vector<fs::path> prefixes = {"/usr/local", "/usr"};
  if (const char *environment = std::getenv("VIRTUAL_ENV"))
    prefixes.insert(prefixes.begin(), environment);
  if (const char *home = std::getenv("HOME"))
    prefixes.push_back(fs::path(home) / ".local");
  for (const fs::path &prefix : prefixes)
    for (const char *nvidia : {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"}) {
      matching(prefix / "lib", "python3", (std::string("site-packages/") + nvidia).c_str());
      matching(prefix / "lib", "python3", (std::string("dist-packages/") + nvidia).c_str());
    }
  return found;
}

void *open() {
  if (const char *file = std::getenv("LLMC_NVRTC"))
    return dlopen(file, RTLD_NOW | RTLD_LOCAL);
  for (const char *name : kNames)
    if (void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL))
      return library;
  for (const fs::path &folder : folders())
    for (const char *name : kNames)
      if (void *library = dlopen((folder / name).c_str(), RTLD_NOW | RTLD_LOCAL))
        return library;
  return nullptr;
}

template <typename F> bool find(void *library, const char *name, F &function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

/// Finds the functions once; the library stays loaded.
const Nvrtc::Api *loadApi(std::string &why) {
  static std::mutex mutex;
  static Nvrtc::Api api;
  static bool loaded = false;
  std::lock_guard lock(mutex);
  if (loaded)
    return &api;
  void *library = open();
  if (!library) {
    const char *file = std::getenv("LLMC_NVRTC");
    why = file ? "LLMC_NVRTC: '" + std::string(file) + "' can't be loaded"
               : "libnvrtc.so is neither on the loader's path (LD_LIBRARY_PATH) nor in "
                 "/usr/local/cuda*/lib64 nor a Python package";
    return nullptr;
  }
  if (!find(library, "nvrtcVersion", api.version) ||
      !find(library, "nvrtcGetErrorString", api.errorString) ||
      !find(library, "nvrtcCreateProgram", api.createProgram) ||
      !find(library, "nvrtcDestroyProgram", api.destroyProgram) ||
      !find(library, "nvrtcCompileProgram", api.compileProgram) ||
      !find(library, "nvrtcGetProgramLogSize", api.logSize) ||
      !find(library, "nvrtcGetProgramLog", api.log) ||
      !find(library, "nvrtcGetCUBINSize", api.cubinSize) ||
      !find(library, "nvrtcGetCUBIN", api.cubin) ||
      !find(library, "nvrtcGetPTXSize", api.ptxSize) || !find(library, "nvrtcGetPTX", api.ptx)) {
    why = std::string("libnvrtc.so lacks a function: ") + dlerror();
    dlclose(library);
    return nullptr;
  }
  loaded = true;
  return &api;
}

/// A program that is destroyed at the end.
struct Program {
  const Nvrtc::Api &api;
  Nvrtc::Api::Program handle = nullptr;
  ~Program() {
    if (handle)
      api.destroyProgram(&handle);
  }
  std::string read(int (*size)(void *, size_t *), int (*get)(void *, char *)) const {
    size_t bytes = 0;
    if (size(handle, &bytes) != 0 || bytes == 0)
      return "";
    std::string text(bytes, '\0');
    return get(handle, text.data()) == 0 ? text : "";
  }
};

} // namespace

Result<Nvrtc> Nvrtc::load() {
  std::string why;
  Nvrtc nvrtc;
  nvrtc.api_ = loadApi(why);
  int major = 0, minor = 0;
  if (nvrtc.api_ && nvrtc.api_->version(&major, &minor) != 0)
    why = "nvrtcVersion failed", nvrtc.api_ = nullptr;
  if (nvrtc.api_ && major < 12)
    why = "libnvrtc is version " + std::to_string(major) + ", 12 or newer is needed",
    nvrtc.api_ = nullptr;
  if (!nvrtc.api_)
    return llmrt::unsupported(
        "--target cuda needs NVRTC, NVIDIA's run-time compiler: " + why +
        ". Install the CUDA toolkit 12 or 13 (no GPU is needed), or `pip install "
        "nvidia-cuda-nvrtc`, or name the library in LLMC_NVRTC; --emit cuda=DIR writes the "
        "sources without it");
  nvrtc.version_ = std::to_string(major) + "." + std::to_string(minor);
  return nvrtc;
}

std::map<std::string, CudaResources> llmc::parsePtxasLog(llvm::StringRef log) {
  std::map<std::string, CudaResources> all;
  CudaResources *current = nullptr;
  for (llvm::StringRef line : llvm::split(log, '\n')) {
    if (auto [before, after] = line.split("entry function '"); !after.empty())
      current = &all[after.split('\'').first.str()];
    if (!current)
      continue;
    auto numberBefore = [&](llvm::StringRef words, uint32_t &value) {
      size_t at = line.find(words);
      if (at == llvm::StringRef::npos)
        return;
      llvm::StringRef head = line.take_front(at).rtrim();
      uint32_t number = 0;
      if (!head.rsplit(' ').second.getAsInteger(10, number) ||
          !head.rsplit('\t').second.getAsInteger(10, number))
        value = number;
    };
    uint32_t stores = 0, loads = 0;
    numberBefore("bytes stack frame", current->stackBytes);
    numberBefore("bytes spill stores", stores);
    numberBefore("bytes spill loads", loads);
    current->spillBytes += stores + loads;
    numberBefore("registers", current->registers);
  }
  return all;
}

Result<CudaImage> Nvrtc::compile(const CudaUnit &unit, const std::string &architecture) const {
  Program program{*api_};
  std::vector<const char *> names, texts;
  for (const CudaHeader &header : cudaHeaders())
    names.push_back(header.name.data()), texts.push_back(header.text.data());
  std::string file = unit.family + ".cu";
  if (int error = api_->createProgram(&program.handle, unit.text.c_str(), file.c_str(),
                                      static_cast<int>(names.size()), texts.data(), names.data()))
    return llmrt::unsupported(file + ": NVRTC: " + api_->errorString(error));
  std::vector<std::string> options = cudaCompileFlags(architecture);
  std::vector<const char *> arguments;
  for (const std::string &option : options)
    arguments.push_back(option.c_str());
  int error =
      api_->compileProgram(program.handle, static_cast<int>(arguments.size()), arguments.data());
  std::string log = program.read(api_->logSize, api_->log);
  if (error)
    return llmrt::unsupported(file + " for " + architecture + ": NVRTC " + version_ + ": " +
                              api_->errorString(error) + "\n" + log.c_str());
  CudaImage image;
  if (llvm::StringRef(architecture).starts_with("compute_")) {
    image.bytes = program.read(api_->ptxSize, api_->ptx);
  } else {
    image.bytes = program.read(api_->cubinSize, api_->cubin);
    image.resources = parsePtxasLog(log);
    for (const CudaEntry &entry : unit.entries)
      if (!image.resources.count(entry.name))
        return llmrt::unsupported(file + " for " + architecture + ": NVRTC " + version_ +
                                  " reported no registers of '" + entry.name + "'");
  }
  if (image.bytes.empty())
    return llmrt::unsupported(file + " for " + architecture + ": NVRTC " + version_ +
                              " gave no code");
  return image;
}
