//===- ArenaPlanner.h - which buffers share memory ---------------------------------===//
#ifndef LLMC_COMPILER_PASSES_PLAN_ARENAPLANNER_H
#define LLMC_COMPILER_PASSES_PLAN_ARENAPLANNER_H

#include "dialects/plan/PlanDialect.h"

namespace llmc {

/// Gives every buffer of \p program a slot: buffers whose lives (first to last command that binds
/// them) do not overlap may share one. Deterministic.
void planArena(plan::ProgramOp program);

} // namespace llmc

#endif // LLMC_COMPILER_PASSES_PLAN_ARENAPLANNER_H
