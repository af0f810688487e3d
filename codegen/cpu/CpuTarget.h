//===- CpuTarget.h - LLVM's view of a CPU level -----------------------------===//
#ifndef LLMC_CODEGEN_CPU_CPUTARGET_H
#define LLMC_CODEGEN_CPU_CPUTARGET_H

#include "codegen/cpu/CpuCodegen.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace llmc {

struct LevelTarget {
  llvm::StringRef cpu, features;
};
LevelTarget levelTarget(CpuLevel level);

/// Null if this LLVM has no target for the level's architecture.
std::unique_ptr<llvm::TargetMachine> makeTargetMachine(CpuLevel level, int optLevel);
/// Vectors: the text computes on vectors and says what must be unrolled; more of either makes it
/// longer (half again as long to compile, twice as much code), and no faster.
enum class Loops { Scalar, Vectors };
void optimise(llvm::Module &module, llvm::TargetMachine &machine, int optLevel, Loops loopsAre);
/// Emits \p module, which is used up when \p type is an object; empty on failure.
std::string emitFile(const llvm::Module &module, llvm::TargetMachine &machine,
                     llvm::CodeGenFileType type);

} // namespace llmc

#endif // LLMC_CODEGEN_CPU_CPUTARGET_H
