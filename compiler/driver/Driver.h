//===- Driver.h - a model's files to a plan -------------------------------------------===//
#ifndef LLMC_COMPILER_DRIVER_DRIVER_H
#define LLMC_COMPILER_DRIVER_DRIVER_H

#include "compiler/driver/CompileOptions.h"
#include "compiler/driver/CompileReport.h"
#include "compiler/driver/Progress.h"
#include "runtime/support/Status.h"

#include <string>
#include <vector>

namespace llmc {

/// What kind of model a path is.
enum class ModelKind { Onnx, Gguf, HuggingFace, Mlir };

/// Looks at \p path: a file's name and first bytes, a folder's config.json. An error says what
/// would be a model.
llmrt::Result<ModelKind> modelKind(const std::string &path);

/// Compiles options.model to options.output (or up to options.emitPhase). On failure there is one
/// message and no file.
llmrt::Status compileModel(const CompileOptions &options, Progress &progress,
                           CompileReport *report = nullptr);

} // namespace llmc

#endif // LLMC_COMPILER_DRIVER_DRIVER_H
