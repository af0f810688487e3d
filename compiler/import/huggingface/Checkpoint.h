//===- Checkpoint.h - the weights of a Hugging Face folder ---------------------===//
//
// A folder holds model.safetensors, or an index that names shards. Every tensor comes from
// exactly one file that the index names; files that nothing names are left alone.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_IMPORT_HUGGINGFACE_CHECKPOINT_H
#define LLMC_IMPORT_HUGGINGFACE_CHECKPOINT_H

#include "compiler/import/huggingface/SafetensorsFile.h"

#include <string_view>
#include <unordered_map>

namespace llmc {

class Checkpoint {
public:
  struct Tensor : SafetensorsTensor {
    uint32_t file = 0; ///< index into files()
  };

  /// Opens the checkpoint in \p folder. Errors list what is missing.
  static llmrt::Result<Checkpoint> open(const std::string &folder);

  const std::vector<MappedFile> &files() const { return files_; }
  /// Their names in the folder.
  const std::vector<std::string> &names() const { return names_; }
  const std::vector<Tensor> &tensors() const { return tensors_; }
  const Tensor *find(std::string_view name) const;
  llmrt::Result<WeightSource> source(const Tensor &tensor) const {
    return safetensorsSource(files_[tensor.file], tensor);
  }
  /// What was left out, a line each, for the log.
  const std::vector<std::string> &notes() const { return notes_; }

private:
  llmrt::Status openSingle(MappedFile file);
  llmrt::Status openShards(const std::string &folder, const MappedFile &index);
  void noteStrayFiles(const std::string &folder);

  std::vector<MappedFile> files_;
  std::vector<std::string> names_; ///< of files_, in the folder
  std::vector<Tensor> tensors_;
  std::unordered_map<std::string, size_t> index_;
  std::vector<std::string> notes_;
};

} // namespace llmc

#endif // LLMC_IMPORT_HUGGINGFACE_CHECKPOINT_H
