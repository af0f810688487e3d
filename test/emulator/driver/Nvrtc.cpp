// A stand-in for libnvrtc: the compiler (LLMC_NVRTC=this file) gets for its CUDA C++ an object that
// clang built for the emulator, in place of a cubin. So `llmc compile --target cuda:sm_80` makes a
// plan that the stand-in driver runs, by the same path as the real ones, and neither llmc nor
// libllmrt knows.
//
//   SIMT_MODE=fast (default) or checked
//   SIMT_CACHE=DIR                keeps objects by their text and the headers that it includes
//   SIMT_KEEP=1                   leaves the text in the temporary folder
//
// Its version is one that NVRTC will not have, so that no cache mixes the two.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace fs = std::filesystem;

namespace {

struct Program {
  std::string source, name, log, object, ptx;
  std::vector<std::pair<std::string, std::string>> headers; ///< name, text
};

bool checked() {
  const char *mode = std::getenv("SIMT_MODE");
  return mode && std::string(mode) == "checked";
}

std::string readFile(const fs::path &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Runs a program, its output to \p log; its exit status.
int run(const std::vector<std::string> &words, const fs::path &log) {
  std::vector<char *> arguments;
  for (const std::string &word : words)
    arguments.push_back(const_cast<char *>(word.c_str()));
  arguments.push_back(nullptr);
  std::string redirect = log.string();
  pid_t child = fork();
  if (child == 0) {
    if (!freopen(redirect.c_str(), "w", stdout) || dup2(1, 2) < 0)
      _exit(126);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/// The text with all that it includes, in order.
std::string expanded(const Program &program, const std::string &text, int depth = 0) {
  std::string all = text;
  for (size_t at = text.find("#include \""); at != std::string::npos && depth < 16;
       at = text.find("#include \"", at + 1)) {
    size_t begin = at + 10, end = text.find('"', begin);
    for (const auto &[name, header] : program.headers)
      if (name == text.substr(begin, end - begin))
        all += expanded(program, header, depth + 1);
  }
  return all;
}

/// Where an object with that content is kept; empty without SIMT_CACHE.
fs::path cachedObject(const Program &program) {
  const char *folder = std::getenv("SIMT_CACHE");
  if (!folder)
    return {};
  size_t hash = std::hash<std::string>()(expanded(program, program.source));
  return fs::path(folder) / (std::to_string(hash) + (checked() ? ".checked.so" : ".fast.so"));
}

/// What ptxas would say, with nothing to say: the host has no count of registers.
std::string resourceLog(const std::string &object) {
  std::string log;
  const std::string prefix = "simt_kernel_";
  for (size_t at = object.find(prefix); at != std::string::npos; at = object.find(prefix, at + 1)) {
    std::string name = object.c_str() + at + prefix.size();
    log += "ptxas info    : Compiling entry function '" + name +
           "' for 'emulator'\n    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill "
           "loads\nptxas info    : Used 0 registers\n";
  }
  return log;
}

int copyOut(const std::string &text, size_t *size, char *to, bool terminated) {
  size_t bytes = text.size() + terminated;
  if (size)
    *size = bytes;
  if (to)
    std::memcpy(to, text.c_str(), bytes);
  return 0;
}

} // namespace

#define API extern "C" __attribute__((visibility("default"))) int

API nvrtcVersion(int *major, int *minor) {
  *major = 9999;
  *minor = checked();
  return 0;
}

extern "C" __attribute__((visibility("default"))) const char *nvrtcGetErrorString(int error) {
  return error ? "the emulator's clang failed" : "success";
}

API nvrtcCreateProgram(Program **program, const char *source, const char *name, int headers,
                       const char *const *texts, const char *const *names) {
  *program = new Program{source, name ? name : "kernels.cu", "", "", "", {}};
  for (int i = 0; i < headers; ++i)
    (*program)->headers.push_back({names[i], texts[i]});
  return 0;
}

API nvrtcDestroyProgram(Program **program) {
  delete *program;
  *program = nullptr;
  return 0;
}

API nvrtcCompileProgram(Program *program, int count, const char *const *options) {
  for (int i = 0; i < count; ++i)
    if (std::strstr(options[i], "compute_")) {
      program->ptx = "// the emulator's compiler makes no PTX\n";
      return 0;
    }
  fs::path cached = cachedObject(*program);
  if (!cached.empty() && fs::exists(cached)) {
    program->object = readFile(cached);
    program->log = resourceLog(program->object);
    return 0;
  }
  std::string folder = (fs::temp_directory_path() / "simt-nvrtc-XXXXXX").string();
  if (!mkdtemp(folder.data()))
    return 1;
  fs::path base(folder);
  for (const auto &[name, text] : program->headers)
    std::ofstream(base / name, std::ios::binary) << text;
  fs::path source = base / fs::path(program->name).filename(), object = base / "kernels.so";
  std::ofstream(source, std::ios::binary) << program->source;
  int status = run({SIMT_BUILD_KERNELS, checked() ? "checked" : "fast", source.string(),
                    object.string(), "-L", SIMT_LIBRARY_FOLDER, "-I" + folder},
                   base / "log");
  program->log = readFile(base / "log");
  if (status == 0)
    program->object = readFile(object);
  std::error_code ignored;
  if (!std::getenv("SIMT_KEEP"))
    fs::remove_all(base, ignored);
  if (status != 0 || program->object.empty())
    return 6; // NVRTC_ERROR_COMPILATION
  if (!cached.empty()) {
    fs::create_directories(cached.parent_path(), ignored);
    fs::path part = cached.string() + "." + std::to_string(getpid());
    std::ofstream(part, std::ios::binary) << program->object;
    fs::rename(part, cached, ignored);
  }
  program->log += resourceLog(program->object);
  return 0;
}

API nvrtcGetProgramLogSize(Program *program, size_t *size) {
  return copyOut(program->log, size, nullptr, true);
}
API nvrtcGetProgramLog(Program *program, char *log) {
  return copyOut(program->log, nullptr, log, true);
}
API nvrtcGetCUBINSize(Program *program, size_t *size) {
  return copyOut(program->object, size, nullptr, false);
}
API nvrtcGetCUBIN(Program *program, char *cubin) {
  return copyOut(program->object, nullptr, cubin, false);
}
API nvrtcGetPTXSize(Program *program, size_t *size) {
  return copyOut(program->ptx, size, nullptr, true);
}
API nvrtcGetPTX(Program *program, char *ptx) { return copyOut(program->ptx, nullptr, ptx, true); }
