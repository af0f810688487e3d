//===- AllPasses.h - every dialect and pass of the compiler -----------------------===//
#ifndef LLMC_COMPILER_PASSES_ALLPASSES_H
#define LLMC_COMPILER_PASSES_ALLPASSES_H

#include "mlir/IR/DialectRegistry.h"

namespace llmc {

/// Registers graph, llm, plan and what they build on.
void registerAllDialects(mlir::DialectRegistry &registry);

/// Makes every pass known by its name, for pipelines and command lines.
void registerAllPasses();

} // namespace llmc

#endif // LLMC_COMPILER_PASSES_ALLPASSES_H
