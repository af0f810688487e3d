//===- WeightExpression.h - weight expressions of the IR, to be read ---------------===//
#ifndef LLMC_COMPILER_DRIVER_WEIGHTEXPRESSION_H
#define LLMC_COMPILER_DRIVER_WEIGHTEXPRESSION_H

#include "compiler/import/common/MappedFile.h"
#include "compiler/import/common/WeightView.h"
#include "mlir/IR/Value.h"

#include <deque>

namespace llmc {

/// The files that a module's `llm.files` names, mapped. \p folder is where they are; a name leads
/// nowhere else.
class ModelFiles {
public:
  static llmrt::Result<ModelFiles> open(const std::string &folder,
                                        llvm::ArrayRef<std::string> names);
  const MappedFile &operator[](size_t index) const { return files_[index]; }
  size_t size() const { return files_.size(); }

private:
  std::deque<MappedFile> files_;
};

/// The matrix (or vector: one column) that \p expression, made of llm.weight operations, stands
/// for. Fails where a source lies outside its file.
llmrt::Result<WeightView> readableWeight(mlir::Value expression, const ModelFiles &files);

} // namespace llmc

#endif // LLMC_COMPILER_DRIVER_WEIGHTEXPRESSION_H
