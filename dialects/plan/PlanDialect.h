//===- PlanDialect.h - the plan dialect --------------------------------------===//
#ifndef LLMC_DIALECTS_PLAN_PLANDIALECT_H
#define LLMC_DIALECTS_PLAN_PLANDIALECT_H

#include "dialects/llm/LlmDialect.h"
#include "mlir/IR/SymbolTable.h"

#include "dialects/plan/PlanDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/plan/PlanAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/plan/PlanTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/plan/PlanOps.h.inc"

#endif // LLMC_DIALECTS_PLAN_PLANDIALECT_H
