//===- CompileCache.cpp - plans of models that were compiled on the way -------------------===//

#include "compiler/cache/CompileCache.h"
#include "compiler/driver/OutputFile.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <openssl/evp.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace llmc;
namespace fs = std::filesystem;
using llmrt::Result;
using llmrt::Status;
using nlohmann::json;

std::string llmc::sha256Hex(const void *bytes, size_t size) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  EVP_Digest(bytes, size, digest, &length, EVP_sha256(), nullptr);
  static constexpr char digits[] = "0123456789abcdef";
  std::string hex;
  for (unsigned i = 0; i < length; ++i) {
    hex += digits[digest[i] >> 4];
    hex += digits[digest[i] & 15];
  }
  return hex;
}

std::optional<std::string> llmc::sha256OfFile(const std::string &path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat s;
  if (fd < 0)
    return std::nullopt;
  if (fstat(fd, &s) || !S_ISREG(s.st_mode)) {
    close(fd);
    return std::nullopt;
  }
  size_t size = static_cast<size_t>(s.st_size);
  void *bytes = size ? mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0) : nullptr;
  close(fd);
  if (bytes == MAP_FAILED)
    return std::nullopt;
  std::string hex = sha256Hex(bytes, size);
  if (bytes)
    munmap(bytes, size);
  return hex;
}

namespace {

/// What tells that a file is the one that was seen, without reading it.
struct FileStamp {
  uint64_t device = 0, inode = 0, size = 0;
  int64_t modified = 0, changed = 0; ///< nanoseconds
  bool operator==(const FileStamp &) const = default;
};

std::optional<FileStamp> stampOf(const std::string &path) {
  struct stat s;
  if (stat(path.c_str(), &s) || !S_ISREG(s.st_mode))
    return std::nullopt;
  auto nanoseconds = [](const timespec &t) { return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec; };
  return FileStamp{s.st_dev, s.st_ino, static_cast<uint64_t>(s.st_size), nanoseconds(s.st_mtim),
                   nanoseconds(s.st_ctim)};
}

/// The clock that stamps files: never ahead of the stamp of a file that is written later.
int64_t now() {
  timespec t;
  clock_gettime(CLOCK_REALTIME_COARSE, &t);
  return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
}

/// The small files beside a model that importers read: configuration, tokenizer, template. Their
/// set is part of what a plan was made from: one that appears later is a change.
std::vector<std::string> textFiles(const std::string &folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder, error)) {
    std::string extension = entry.path().extension().string();
    bool text = extension == ".json" || extension == ".jinja" || extension == ".txt" ||
                extension == ".model";
    if (text && entry.is_regular_file(error))
      files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string modelFolder(const std::string &model) {
  std::error_code error;
  if (fs::is_directory(model, error))
    return model;
  std::string folder = fs::path(model).parent_path().string();
  return folder.empty() ? "." : folder;
}

/// Every text file that the compilation of \p options may read.
std::vector<std::string> allTextFiles(const CompileOptions &options) {
  std::vector<std::string> files = textFiles(modelFolder(options.model));
  if (!options.tokenizer.empty()) {
    std::vector<std::string> more = textFiles(modelFolder(options.tokenizer));
    files.insert(files.end(), more.begin(), more.end());
  }
  return files;
}

/// Held while a plan is compiled, so that two processes do not compile the same model at once.
class FolderLock {
public:
  explicit FolderLock(const std::string &folder)
      : fd(open((folder + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    while (fd >= 0 && flock(fd, LOCK_EX) && errno == EINTR)
      ;
  }
  ~FolderLock() {
    if (fd >= 0)
      close(fd);
  }
  FolderLock(const FolderLock &) = delete;
  FolderLock &operator=(const FolderLock &) = delete;

private:
  int fd;
};

} // namespace

/// An index entry: the files as they were, and the plan.
struct CompileCache::Entry {
  struct File {
    std::string path, sha256;
    FileStamp stamp;
  };
  std::vector<File> files;        ///< all that was read
  std::vector<std::string> texts; ///< the text files that there were
  std::string plan;               ///< its name in the cache

  std::string toJson() const {
    json list = json::array();
    for (const File &f : files)
      list.push_back(
          {{"path", f.path},
           {"sha256", f.sha256},
           {"stamp",
            {f.stamp.device, f.stamp.inode, f.stamp.size, f.stamp.modified, f.stamp.changed}}});
    return json{{"plan", plan}, {"texts", texts}, {"files", list}}.dump(
        1, ' ', false, json::error_handler_t::replace);
  }

  /// Nothing for a file that is not there or not one of ours: the model is compiled again.
  static std::optional<Entry> read(const std::string &path) {
    std::ifstream stream(path);
    json document = json::parse(stream, nullptr, false);
    if (!document.is_object())
      return std::nullopt;
    // Only well-formed entries get through: accessors below do not throw on what was checked.
    auto plan = document.find("plan"), texts = document.find("texts"),
         list = document.find("files");
    if (plan == document.end() || !plan->is_string() || texts == document.end() ||
        !texts->is_array() || list == document.end() || !list->is_array())
      return std::nullopt;
    Entry entry;
    entry.plan = plan->get<std::string>();
    if (entry.plan.find('/') != std::string::npos)
      return std::nullopt;
    for (const json &text : *texts) {
      if (!text.is_string())
        return std::nullopt;
      entry.texts.push_back(text.get<std::string>());
    }
    for (const json &f : *list) {
      auto stamp = f.is_object() ? f.find("stamp") : f.end();
      if (!f.is_object() || !f.contains("path") || !f["path"].is_string() ||
          !f.contains("sha256") || !f["sha256"].is_string() || stamp == f.end() ||
          !stamp->is_array() || stamp->size() != 5 ||
          !std::all_of(stamp->begin(), stamp->end(),
                       [](const json &n) { return n.is_number_integer(); }))
        return std::nullopt;
      entry.files.push_back(
          {f["path"].get<std::string>(),
           f["sha256"].get<std::string>(),
           {(*stamp)[0].get<uint64_t>(), (*stamp)[1].get<uint64_t>(), (*stamp)[2].get<uint64_t>(),
            (*stamp)[3].get<int64_t>(), (*stamp)[4].get<int64_t>()}});
    }
    return entry;
  }
};

Result<std::string> CompileCache::defaultFolder() {
  for (auto [variable, below] : {std::pair<const char *, const char *>{"LLMC_CACHE_DIR", ""},
                                 {"XDG_CACHE_HOME", "/llmc"},
                                 {"HOME", "/.cache/llmc"}})
    if (const char *value = std::getenv(variable); value && *value)
      return std::string(value) + below;
  return llmrt::invalidArgument("no folder for compiled models: set LLMC_CACHE_DIR");
}

std::string CompileCache::indexPath(const CompileOptions &options) const {
  std::error_code error;
  std::string key = fs::absolute(options.model, error).lexically_normal().string() + "\n" +
                    fs::absolute(options.tokenizer, error).lexically_normal().string() + "\n" +
                    compilerId_;
  for (const std::string &option : optionsKey(options))
    key += "\n" + option;
  return folder_ + "/index/" + sha256Hex(key.data(), key.size()).substr(0, 32) + ".json";
}

std::string CompileCache::contentKey(const Entry &entry, const CompileOptions &options) const {
  std::string key = compilerId_;
  for (const std::string &option : optionsKey(options))
    key += "\n" + option;
  // Names without folders: a model that moved is the same model.
  for (const Entry::File &file : entry.files)
    key += "\n" + fs::path(file.path).filename().string() + " " + file.sha256;
  return sha256Hex(key.data(), key.size()).substr(0, 40);
}

std::optional<std::string> CompileCache::lookUp(const CompileOptions &options) const {
  std::string index = indexPath(options);
  std::optional<Entry> entry = Entry::read(index);
  if (!entry || entry->texts != allTextFiles(options))
    return std::nullopt;
  bool touched = false;
  for (Entry::File &file : entry->files) {
    std::optional<FileStamp> stamp = stampOf(file.path);
    if (!stamp)
      return std::nullopt;
    if (*stamp == file.stamp)
      continue;
    if (stamp->size != file.stamp.size || sha256OfFile(file.path) != file.sha256)
      return std::nullopt;
    file.stamp = *stamp;
    touched = true;
  }
  std::string plan = folder_ + "/" + entry->plan;
  if (!stampOf(plan))
    return std::nullopt;
  if (touched) // the next start need not read them; if this can't be written, it will
    (void)writeOutputFile(index, entry->toJson()).isOk();
  return plan;
}

Result<std::string> CompileCache::planFor(CompileOptions options, const Compile &compile) {
  if (std::optional<std::string> plan = lookUp(options))
    return *plan;
  LLMRT_RETURN_IF_ERROR(makeFolder(folder_ + "/index"));
  FolderLock lock(folder_);
  if (std::optional<std::string> plan = lookUp(options)) // another process was faster
    return *plan;

  Entry entry;
  entry.texts = allTextFiles(options);
  const int64_t began = now();
  std::string temporary = folder_ + "/new-" + std::to_string(getpid()) + ".plan";
  options.output = temporary;
  CompileReport report;
  LLMRT_RETURN_IF_ERROR(compile(options, report));
  // What is remembered must be what was compiled: a file that changed meanwhile is not remembered,
  // and the next start compiles again.
  bool steady = true;
  auto remember = [&](const std::string &path, std::optional<std::string> sha256) {
    std::optional<FileStamp> stamp = stampOf(path);
    steady &= stamp && sha256 && stamp->modified < began && stamp->changed < began;
    if (stamp && sha256)
      entry.files.push_back({path, *sha256, *stamp});
  };
  for (const std::string &text : entry.texts)
    remember(text, sha256OfFile(text));
  for (const SourceHash &source : report.files) {
    std::error_code error;
    remember(fs::absolute(source.path, error).string(), source.sha256);
  }
  entry.plan = contentKey(entry, options) + ".plan";
  std::string plan = folder_ + "/" + entry.plan;
  if (rename(temporary.c_str(), plan.c_str())) {
    int error = errno;
    unlink(temporary.c_str());
    return llmrt::ioError(plan + ": can't be written: " + std::strerror(error));
  }
  if (steady)
    LLMRT_RETURN_IF_ERROR(writeOutputFile(indexPath(options), entry.toJson()));
  return plan;
}
