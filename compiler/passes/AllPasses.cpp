//===- AllPasses.cpp - every dialect and pass of the compiler ----------------------===//

#include "compiler/passes/AllPasses.h"
#include "compiler/passes/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#if LLMC_HAS_RAISE
#include "compiler/passes/raise/Passes.h"
#include "dialects/graph/GraphDialect.h"
#endif

void llmc::registerAllDialects(mlir::DialectRegistry &registry) {
  registry.insert<mlir::func::FuncDialect, llm::LlmDialect, plan::PlanDialect>();
#if LLMC_HAS_RAISE
  registerGraphDialect(registry);
#endif
}

void llmc::registerAllPasses() {
  registerLlmcPasses();
#if LLMC_HAS_RAISE
  registerRaisePasses();
#endif
}
