//===- GraphKernels.h - the kernel of each operation of the graph dialect -------===//
#ifndef LLMC_CODEGEN_CPU_GRAPHKERNELS_H
#define LLMC_CODEGEN_CPU_GRAPHKERNELS_H

#include "dialects/graph/GraphDialect.h"

#include <string>
#include <vector>

namespace llmc {

/// How an operation is computed: llmc_graph_<name> of codegen/cpu/graph, specialised for a type,
/// with constants of its own.
struct GraphKernelCall {
  std::string name;
  int64_t type = 0;
  std::vector<int64_t> attributes;
  /// Operands in the kernel's order; null for a missing one.
  llvm::SmallVector<mlir::Value> operands;
};

/// The number that ONNX gives an element type; 0 for one that it doesn't have.
int32_t graphElementType(mlir::Type element);

/// The kernel call that computes \p op (not a constant, nor one with regions). Emits an error for
/// an operation that has no kernel.
llvm::FailureOr<GraphKernelCall> graphKernelCall(mlir::Operation *op);

} // namespace llmc

#endif // LLMC_CODEGEN_CPU_GRAPHKERNELS_H
