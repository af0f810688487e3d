//===- Elementwise.h - kernels whose body MLIR builds ------------------------===//
#ifndef LLMC_CODEGEN_CPU_ELEMENTWISE_H
#define LLMC_CODEGEN_CPU_ELEMENTWISE_H

#include "codegen/cpu/MicrokernelBitcode.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"

namespace llmc {

/// d (values a row), rows, scale (op scale), beside the text constant op.
llvm::ArrayRef<KernelParameter> elementwiseParameters();

/// add, mul, scale; relu, silu, gelu, gelu_tanh; each of these with _mul: activation(a) * b.
bool isElementwiseOp(llvm::StringRef op);
std::string elementwiseOpNames();

/// Fills the empty body of \p function (LlmrtKernel's parameters): rows [taskBegin, taskEnd) of d
/// values, sixteen lanes at a time, the rest under a mask. Arith, scf and llvm operations; calls
/// llmc_activate, which is declared in \p module where needed.
void buildElementwiseBody(mlir::ModuleOp module, mlir::LLVM::LLVMFuncOp function,
                          const KernelSpec &spec);

} // namespace llmc

#endif // LLMC_CODEGEN_CPU_ELEMENTWISE_H
