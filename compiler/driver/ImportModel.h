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
  ModelFiles files;
  ImportedText text;
};

/// Imports options.model; options.tokenizer overrides the model's own text.
llmrt::Result<ImportedModel> importModel(const CompileOptions &options, mlir::MLIRContext &context,
                                         DiagnosticCollector &diagnostics);

} // namespace llmc

#endif // LLMC_COMPILER_DRIVER_IMPORTMODEL_H
