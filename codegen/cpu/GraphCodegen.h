//===- GraphCodegen.h - a function of the graph dialect to machine code ---------===//
//
//   func.func @main (graph dialect) ──one call a kernel──▶ LLVM IR ──link the kernels' bitcode,
//   specialise, optimise──▶ machine code ──lld──▶ ELF
//
// Values live as long as they are needed: what computes them counts them once, their last use
// releases them. Branches and loops are those of the function.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CODEGEN_CPU_GRAPHCODEGEN_H
#define LLMC_CODEGEN_CPU_GRAPHCODEGEN_H

#include "codegen/cpu/CpuCodegen.h"
#include "dialects/graph/GraphDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace llmc {

/// The entry's name in the object.
inline constexpr llvm::StringLiteral kGraphMain = "llmc_main";

/// What the code of a graph refers to by number.
struct GraphTables {
  std::vector<mlir::Operation *> weights; ///< graph.constant and graph.weight
  llvm::DenseMap<mlir::Operation *, unsigned> weightIndex;
  std::vector<std::string> nodes;
  llvm::DenseMap<mlir::Operation *, unsigned> nodeIndex;

  explicit GraphTables(mlir::func::FuncOp main);
};

/// Compiles \p main for \p level; at \p optLevel 0 fast, not for speed. Emits errors at the
/// operations. May be called from several threads at once for one function.
llvm::FailureOr<std::string> emitGraphObject(mlir::func::FuncOp main, const GraphTables &tables,
                                             CpuLevel level, int optLevel,
                                             const CpuDump &dump = {});

} // namespace llmc

#endif // LLMC_CODEGEN_CPU_GRAPHCODEGEN_H
