//===- GgufKeys.h - the metadata of one architecture, with an eye on what nobody read ----===//
#ifndef LLMC_IMPORT_GGUF_GGUFKEYS_H
#define LLMC_IMPORT_GGUF_GGUFKEYS_H

#include "compiler/import/gguf/GgufFile.h"

#include <set>

namespace llmc {

/// Metadata under ARCHITECTURE.KEY. Keys that are asked for are remembered, so that checkHonoured()
/// can refuse one that changes what the model computes and that nobody looked at.
class GgufKeys {
public:
  GgufKeys(const GgufFile &file, std::string architecture, std::vector<std::string> &notes)
      : file_(file), prefix_(std::move(architecture) + "."), notes(notes) {}

  const GgufFile &file() const { return file_; }
  const std::string &path() const { return file_.files().front().path(); }
  std::string full(const char *key) const { return prefix_ + key; }
  llmrt::Status fail(const std::string &why) const {
    return llmrt::invalidFile(path() + ": " + why);
  }
  void note(std::string text) { notes.push_back(std::move(text)); }
  bool hasTensor(const char *name) const { return file_.findTensor(name); }

  llmrt::Result<std::optional<uint64_t>> integer(const char *key);
  llmrt::Result<std::optional<double>> number(const char *key);
  llmrt::Result<std::optional<std::string>> text(const char *key);
  llmrt::Result<bool> flag(const char *key, bool fallback);
  llmrt::Result<uint64_t> required(const char *key);
  /// A number that may be given for each layer, but is the same for all; \p to keeps its value
  /// where there is none, which is an error if that is 0.
  llmrt::Status uniform(const char *key, uint64_t layers, uint64_t &to);
  /// Into a variable that keeps its value where the key is missing.
  llmrt::Status read(const char *key, double &to);

  /// Unsupported for keys of the architecture that nobody asked for and that are not known to be
  /// harmless.
  llmrt::Status checkHonoured() const;

private:
  const GgufFile &file_;
  std::string prefix_;
  std::vector<std::string> &notes;
  std::set<std::string, std::less<>> asked;
};

} // namespace llmc

#endif // LLMC_IMPORT_GGUF_GGUFKEYS_H
