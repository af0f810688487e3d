//===- ConfigReader.h - config.json, with an eye on what nobody read --------------===//
#ifndef LLMC_IMPORT_HUGGINGFACE_CONFIGREADER_H
#define LLMC_IMPORT_HUGGINGFACE_CONFIGREADER_H

#include "compiler/import/huggingface/JsonFile.h"

#include <set>

namespace llmc {

/// The outermost object of a config.json. Every key that is asked for is remembered, so that
/// checkHonoured() can refuse a key that changes what the model computes and that its family's
/// reader doesn't know.
class ConfigReader {
public:
  ConfigReader(const JsonFile &file, std::vector<std::string> &notes) : file_(file), notes(notes) {}

  // The value under a key; nothing where it is missing or null.
  llmrt::Result<std::optional<uint64_t>> integer(const char *key);
  llmrt::Result<std::optional<double>> number(const char *key);
  llmrt::Result<std::optional<std::string>> text(const char *key);
  llmrt::Result<bool> flag(const char *key, bool fallback);
  llmrt::JsonValue value(const char *key);
  /// A whole number that must be there, under the first of \p keys that is.
  llmrt::Result<uint64_t> required(std::initializer_list<const char *> keys);

  // The same, into a variable that keeps its value where the key is missing.
  llmrt::Status read(const char *key, uint64_t &to);
  llmrt::Status read(const char *key, double &to);
  llmrt::Status read(const char *key, bool &to);

  /// Refuses a key that is set to other than \p allowed ("false", "0", ...: as the file spells it).
  llmrt::Status onlyAllowed(const char *key, std::string_view allowed);

  /// Unsupported for keys that change the mathematics (in some family), have a value that isn't
  /// null, false or 0 (or a factor of 1), and were not asked for. Other keys that nobody asked for
  /// and that are not known to be harmless get a note.
  llmrt::Status checkHonoured(const std::string &family);

  const JsonFile &file() const { return file_; }
  llmrt::Status fail(const std::string &why) const { return file_.fail(why); }
  void note(std::string text) { notes.push_back(std::move(text)); }

private:
  const JsonFile &file_;
  std::vector<std::string> &notes;
  std::set<std::string, std::less<>> asked;
};

} // namespace llmc

#endif // LLMC_IMPORT_HUGGINGFACE_CONFIGREADER_H
