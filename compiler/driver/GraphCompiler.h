//===- GraphCompiler.h - a graph that is no decoder to a plan ----------------------===//
#ifndef LLMC_COMPILER_DRIVER_GRAPHCOMPILER_H
#define LLMC_COMPILER_DRIVER_GRAPHCOMPILER_H

#include "codegen/cpu/GraphCodegen.h"
#include "compiler/driver/PlanEmitter.h"

namespace llmc {

/// Whether \p module is the graph of a decoder: token ids in, logits out, and a cache.
bool isDecoderGraph(mlir::ModuleOp module);

/// Names the model and its files (`llm.model`, `llm.files`, the model's own file first) and gives
/// arguments that have a default in the file (an initializer that is an input, too) that value: a
/// plan's `main` has no optional inputs.
void prepareGraph(mlir::ModuleOp module, const std::string &modelPath);

/// Writes a plan whose entry is `main`: constants from the IR, weights as they are in \p files.
/// Errors name an input or output that a plan cannot have.
llmrt::Status writeGraphPlan(mlir::ModuleOp module, const GraphTables &tables,
                             const ModelFiles &files, const PlanExtras &extras,
                             const std::string &path, Progress &progress);

} // namespace llmc

#endif // LLMC_COMPILER_DRIVER_GRAPHCOMPILER_H
