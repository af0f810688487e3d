//===- Pipeline.h - the passes of a compilation, as one list ---------------------------===//
#ifndef LLMC_COMPILER_DRIVER_PIPELINE_H
#define LLMC_COMPILER_DRIVER_PIPELINE_H

#include "compiler/driver/CompileOptions.h"
#include "mlir/IR/BuiltinOps.h"

#include <functional>

namespace llmc {

enum class Phase {
#define LLMC_PHASE(Id, Name, What) Id,
#include "compiler/driver/Phases.inc"
};

/// "fuse" and so on, and back; names that --emit takes.
llvm::StringRef phaseName(Phase phase);
std::optional<Phase> phaseByName(llvm::StringRef name);
std::vector<std::pair<std::string, std::string>> phaseHelp();

/// Names of the passes that --disable-pass takes: those that are not needed for a correct plan.
std::vector<std::string> optionalPasses();

/// What the levels mean:
///   -O0  the passes that a plan needs and no more; machine code at -O1
///   -O1  + common subexpressions, epilogues and int8 rows written by norms; -O2
///   -O2  + one read for Q, K, V and for gate, up; only the rows whose logits are wanted; -O2
///   -O3  the same passes; machine code at -O3
/// Results have the same bits at every level.
int machineCodeLevel(int optLevel);

/// Runs the phases from the one after \p imported up to \p last on \p module. \p after is called
/// with the module after each phase.
llvm::LogicalResult runPipeline(mlir::ModuleOp module, const CompileOptions &options, Phase last,
                                const std::function<llvm::LogicalResult(Phase)> &after);

} // namespace llmc

#endif // LLMC_COMPILER_DRIVER_PIPELINE_H
