//===- Passes.h - From the graph dialect to the llm dialect -----*- C++ -*-===//

#ifndef LLMC_COMPILER_PASSES_RAISE_PASSES_H
#define LLMC_COMPILER_PASSES_RAISE_PASSES_H

#include "mlir/Pass/Pass.h"
#include <memory>

namespace mlir {
class OpPassManager;
namespace func {
class FuncOp;
}
} // namespace mlir

namespace llmc::raise {

#define GEN_PASS_DECL
#include "compiler/passes/raise/RaisePasses.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/passes/raise/RaisePasses.h.inc"

/// All raise passes in their order: a module with a graph function `@main` becomes one with
/// `@step`.
void buildRaisePipeline(mlir::OpPassManager &manager);

} // namespace llmc::raise

namespace llmc {
using raise::buildRaisePipeline;
using raise::registerRaisePasses;
} // namespace llmc

#endif
