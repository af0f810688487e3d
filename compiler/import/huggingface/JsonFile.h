//===- JsonFile.h - one JSON file of a model folder ------------------------------===//
#ifndef LLMC_IMPORT_HUGGINGFACE_JSONFILE_H
#define LLMC_IMPORT_HUGGINGFACE_JSONFILE_H

#include "compiler/import/common/MappedFile.h"
#include "runtime/text/Json.h"

#include <memory>
#include <optional>

namespace llmc {

/// A file and its values. The typed getters give nothing for a key that is missing or null, and an
/// error that names file, key, found and wanted type for any other mismatch.
class JsonFile {
public:
  /// Null when the folder has no such file; an error when it isn't a JSON object. Keys that appear
  /// twice in the outermost object are an error.
  static llmrt::Result<std::unique_ptr<JsonFile>> open(const std::string &folder,
                                                       const std::string &name);

  const std::string &path() const { return file_.path(); }
  llmrt::JsonValue root() const { return document_.root(); }
  std::string_view text() const {
    return {reinterpret_cast<const char *>(file_.bytes().data()), file_.bytes().size()};
  }

  llmrt::Result<std::optional<uint64_t>> unsignedInteger(llmrt::JsonValue in,
                                                         std::string_view key) const;
  llmrt::Result<std::optional<double>> number(llmrt::JsonValue in, std::string_view key) const;
  llmrt::Result<std::optional<bool>> boolean(llmrt::JsonValue in, std::string_view key) const;
  llmrt::Result<std::optional<std::string>> string(llmrt::JsonValue in, std::string_view key) const;
  llmrt::Status wrongType(std::string_view key, llmrt::JsonValue found, const char *wanted) const;
  llmrt::Status fail(const std::string &why) const;

private:
  explicit JsonFile(MappedFile file) : file_(std::move(file)) {}
  MappedFile file_;
  llmrt::JsonDocument document_;
};

/// \p value as a double, if it is a finite number.
std::optional<double> jsonNumber(llmrt::JsonValue value);

} // namespace llmc

#endif // LLMC_IMPORT_HUGGINGFACE_JSONFILE_H
