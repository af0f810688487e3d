//===- MicrokernelBitcode.h - the kernels' bitcode that the compiler carries -===//
#ifndef LLMC_CODEGEN_CPU_MICROKERNELBITCODE_H
#define LLMC_CODEGEN_CPU_MICROKERNELBITCODE_H

#include "codegen/cpu/CpuCodegen.h"

#include "llvm/IR/Module.h"

namespace llmc {

/// The bitcode of \p level as the build embedded it.
llvm::StringRef microkernelBitcode(CpuLevel level);

/// Reads it; an error names a damaged build.
llvm::Expected<std::unique_ptr<llvm::Module>> loadMicrokernels(CpuLevel level,
                                                               llvm::LLVMContext &context);

/// The constants that the entry point of a kind takes, in order, read from the first level's
/// bitcode. Empty for a kind that isn't there.
struct KernelParameter {
  std::string name; ///< as in plans: task_tiles
  bool isReal;      ///< float; int64_t otherwise
};
llvm::ArrayRef<KernelParameter> kernelParameters(llvm::StringRef kind);

/// True where the bitcode has the kind.
bool hasMicrokernel(llvm::StringRef kind);

/// "llmc_kernel_" + kind.
std::string microkernelName(llvm::StringRef kind);

} // namespace llmc

#endif // LLMC_CODEGEN_CPU_MICROKERNELBITCODE_H
