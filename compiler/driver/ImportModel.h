//===- ImportModel.h - one entry for every kind of model --------------------------------===//
#ifndef LLMC_COMPILER_DRIVER_IMPORTMODEL_H
#define LLMC_COMPILER_DRIVER_IMPORTMODEL_H

#include "compiler/driver/CompileOptions.h"
#include "compiler/driver/Diagnostics.h"
#include "compiler/driver/WeightExpression.h"
#include "compiler/import/common/ImportedText.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace llmc {

/// A model as its importer gave it: IR of the graph dialect (ONNX) or the llm dialect, the files
/// that the IR names, and what the model says about text.
struct ImportedModel {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  ImportedText text;
};

/// Imports options.model; options.tokenizer overrides the model's own text.
llmrt::Result<ImportedModel> importModel(const CompileOptions &options, mlir::MLIRContext &context,
                                         DiagnosticCollector &diagnostics);

/// Maps the files that `llm.files` of a module names: those beside the model at \p model.
llmrt::Result<ModelFiles> openModelFiles(mlir::ModuleOp module, const std::string &model);

/// Applies --max-model-len to `max_context` of `llm.model`; without it a model that does not say
/// how long a context may be gets kDefaultContext. More than the model allows is an error.
llmrt::Status limitContext(mlir::ModuleOp module, int64_t maxModelLen);
inline constexpr int64_t kDefaultContext = 4096;

/// Gives a module of the llm dialect the entries `name` and `architecture` of `llm.model` where its
/// files have none: the file's or folder's name, and "decoder".
void nameModel(mlir::ModuleOp module, const std::string &path);

} // namespace llmc

#endif // LLMC_COMPILER_DRIVER_IMPORTMODEL_H
