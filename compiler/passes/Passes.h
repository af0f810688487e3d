//===- Passes.h - passes over the llm dialect --------------------------------===//
#ifndef LLMC_COMPILER_PASSES_PASSES_H
#define LLMC_COMPILER_PASSES_PASSES_H

#include "dialects/llm/LlmDialect.h"
#include "dialects/plan/PlanDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace llmc {
#define GEN_PASS_DECL
#include "compiler/passes/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "compiler/passes/Passes.h.inc"
} // namespace llmc

#endif // LLMC_COMPILER_PASSES_PASSES_H
