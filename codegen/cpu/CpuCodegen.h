//===- CpuCodegen.h - plan kernels to one ELF object a CPU level -------------===//
//
//   KernelSpec ──MLIR (llvm dialect; arith, vector, scf for element-wise bodies)──▶ LLVM IR
//     ──link the level's microkernel bitcode, internalise, optimise──▶ parts ──lld──▶ ELF
//
// The object has one exported function a kernel (LlmrtKernel), no needed library, no undefined
// symbol, and the same bytes for the same input.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CODEGEN_CPU_CPUCODEGEN_H
#define LLMC_CODEGEN_CPU_CPUCODEGEN_H

#include "codegen/KernelSpec.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Support/LLVM.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace llmc {

/// A row of runtime/device/cpu/CpuLevels.inc, by the same name.
enum class CpuLevel : int {
#define LLMRT_CPU_LEVEL(Id, Name, Arch, Cpu, Features, What) Id,
#include "runtime/device/cpu/CpuLevels.inc"
};

enum class CpuArchitecture { X86_64, AArch64 };
CpuArchitecture architectureOf(CpuLevel level);
/// Of the machine that the compiler runs on.
CpuArchitecture hostArchitecture();
/// "x86-64", "aarch64".
llvm::StringRef architectureName(CpuArchitecture architecture);

/// Every level, those of an architecture least first, and its name in plans.
std::vector<CpuLevel> allCpuLevels();
llvm::StringRef cpuLevelName(CpuLevel level);
/// Whether \p specs gain from code at \p level that is not that of the level before it: AMX tiles
/// and SMMLA serve `gemm` with int8 activations only, and none that is small.
bool hasUseFor(CpuLevel level, llvm::ArrayRef<KernelSpec> specs);

/// Kernels that are compiled together. Objects are linked from parts since levels share some, and
/// threads compile several at once.
struct CpuPart {
  CpuLevel level;                ///< whose instructions it has
  std::string name;              ///< in dumps: the level's, or that and what sets the part apart
  std::vector<CpuLevel> objects; ///< the levels whose objects it goes into
  std::vector<KernelSpec> specs;
};

/// The parts of \p specs' objects for \p levels, those that take longest to compile first.
std::vector<CpuPart> cpuParts(llvm::ArrayRef<KernelSpec> specs, llvm::ArrayRef<CpuLevel> levels);

struct CpuObject {
  std::string bytes;                  ///< an ELF shared object
  std::vector<uint64_t> scratchBytes; ///< a thread, for each KernelSpec
};

/// Called with "mlir", "llvm", "llvm-opt" and "asm", and the text of that phase.
using CpuDump = std::function<void(llvm::StringRef phase, llvm::StringRef text)>;

/// Checks the constants of one kernel: known names, a variant that exists. Errors go to \p loc.
llvm::LogicalResult verifyKernelSpec(mlir::Location loc, const KernelSpec &spec);

/// Scratch of a kernel that verifyKernelSpec accepts.
uint64_t kernelScratchBytes(const KernelSpec &spec);

/// Compiles \p part at optimisation level \p optLevel (0..3; the results have the same bits at
/// each) to an ELF relocatable. Emits errors at \p loc. May be called from several threads.
llvm::FailureOr<std::string> emitCpuPart(mlir::Location loc, const CpuPart &part, int optLevel,
                                         const CpuDump &dump = {});

/// Links what emitCpuPart made of the parts of an object of \p level with kernels \p specs. Emits
/// errors at \p loc.
llvm::FailureOr<CpuObject> linkCpuObject(mlir::Location loc, llvm::ArrayRef<KernelSpec> specs,
                                         CpuLevel level,
                                         llvm::ArrayRef<llvm::StringRef> relocatables);

/// Both for all of \p specs, as one part.
llvm::FailureOr<CpuObject> emitCpuObject(mlir::Location loc, llvm::ArrayRef<KernelSpec> specs,
                                         CpuLevel level, int optLevel, const CpuDump &dump = {});

} // namespace llmc

#endif // LLMC_CODEGEN_CPU_CPUCODEGEN_H
