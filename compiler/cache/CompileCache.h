//===- CompileCache.h - plans of models that were compiled on the way ---------------------===//
//
// `llmc run MODEL` compiles once. A cached plan is found without reading the model: an index entry,
// named by the model's path and the options, holds device, inode, size and times of every file that
// the compilation read, and the name of the plan; that name is a hash of the files' contents, the
// options and the compiler. Files that were only touched are hashed again and found to be the same.
// No MLIR: this is part of what runs a plan.
//
//===----------------------------------------------------------------------------------------===//
#ifndef LLMC_COMPILER_CACHE_COMPILECACHE_H
#define LLMC_COMPILER_CACHE_COMPILECACHE_H

#include "compiler/driver/CompileOptions.h"
#include "compiler/driver/CompileReport.h"
#include "runtime/support/Status.h"

#include <functional>
#include <optional>
#include <string>

namespace llmc {

/// SHA-256 (FIPS 180-4) of \p size bytes, hexadecimal.
std::string sha256Hex(const void *bytes, size_t size);
/// The same of the contents of a regular file; nothing if it can't be read.
std::optional<std::string> sha256OfFile(const std::string &path);

class CompileCache {
public:
  using Compile = std::function<llmrt::Status(const CompileOptions &, CompileReport &)>;

  /// In \p folder; \p compilerId changes whenever the compiler would make other plans.
  CompileCache(std::string folder, std::string compilerId)
      : folder_(std::move(folder)), compilerId_(std::move(compilerId)) {}

  /// LLMC_CACHE_DIR, else llmc below XDG_CACHE_HOME, else ~/.cache/llmc.
  static llmrt::Result<std::string> defaultFolder();

  /// The path of the plan for \p options (whose output is ignored), compiled with \p compile if it
  /// is not there yet.
  llmrt::Result<std::string> planFor(CompileOptions options, const Compile &compile);

private:
  struct Entry;
  std::string indexPath(const CompileOptions &options) const;
  std::optional<std::string> lookUp(const CompileOptions &options) const;
  std::string contentKey(const Entry &entry, const CompileOptions &options) const;

  std::string folder_, compilerId_;
};

} // namespace llmc

#endif // LLMC_COMPILER_CACHE_COMPILECACHE_H
