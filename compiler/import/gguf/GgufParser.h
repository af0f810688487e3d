//===- GgufParser.h - the bytes of one GGUF file -------------------------------===//
#ifndef LLMC_IMPORT_GGUF_GGUFPARSER_H
#define LLMC_IMPORT_GGUF_GGUFPARSER_H

#include "compiler/import/gguf/GgufFile.h"

namespace llmc {

/// What is known of a tensor type; {0, 0} values and bytes for a number that no type has.
struct GgufTensorType {
  const char *name;
  uint32_t values, bytes;
  std::optional<WeightEncoding> encoding;
};
GgufTensorType ggufTensorType(uint32_t number);

/// Parses the head of one file.
class GgufParser {
public:
  GgufParser(const MappedFile &file, uint32_t fileIndex) : file_(file), fileIndex_(fileIndex) {}

  /// Fills metadata and tensors. Keys are views into the file.
  llmrt::Status parse();

  std::unordered_map<std::string_view, GgufValue> metadata;
  std::vector<GgufTensor> tensors;

private:
  uint64_t left() const { return file_.size() - at_; }
  template <typename T> llmrt::Status read(T &value, const char *what);
  llmrt::Status readText(std::span<const uint8_t> &text, const std::string &what);
  llmrt::Status readValue(GgufType type, const std::string &key, int depth, GgufValue &value);
  llmrt::Status readArray(const std::string &key, int depth, GgufValue &value);
  llmrt::Status readTensor(uint64_t index);
  llmrt::Status placeTensors();
  llmrt::Status checkOverlaps() const;
  llmrt::Status fail(const std::string &why) const;

  const MappedFile &file_;
  uint32_t fileIndex_;
  uint64_t at_ = 0;
  uint64_t alignment_ = 32;
};

} // namespace llmc

#endif // LLMC_IMPORT_GGUF_GGUFPARSER_H
