//===- StepLowering.h - operations of the step to commands -------------------------===//
#ifndef LLMC_COMPILER_PASSES_PLAN_STEPLOWERING_H
#define LLMC_COMPILER_PASSES_PLAN_STEPLOWERING_H

#include "compiler/passes/plan/ProgramBuilder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace llmc {

/// Bytes and elements of one row of a row tensor.
int64_t rowBytes(mlir::Value value);
int64_t rowElements(mlir::Value value);

/// Lowers the operations of one step function, in order, to commands.
class StepLowering {
public:
  StepLowering(ProgramBuilder &builder, llvm::ArrayRef<int64_t> kvPrefixBytes)
      : b(builder), kvPrefixBytes(kvPrefixBytes) {}

  /// Lowers the whole function; a diagnostic names the operation that has no kernel.
  llvm::LogicalResult lower(mlir::func::FuncOp step);

private:
  llvm::LogicalResult lowerOp(mlir::Operation *op);
  llvm::LogicalResult lowerOp(llm::EmbeddingOp op);
  llvm::LogicalResult lowerOp(llm::GatherRowsOp op);
  llvm::LogicalResult lowerOp(llm::LinearOp op);
  llvm::LogicalResult lowerOp(llm::QuantizeOp op);
  llvm::LogicalResult lowerOp(llm::RmsNormOp op);
  llvm::LogicalResult lowerOp(llm::LayerNormOp op);
  llvm::LogicalResult lowerOp(llm::RopeAnglesOp op);
  llvm::LogicalResult lowerOp(llm::RopeGatherOp op);
  llvm::LogicalResult lowerOp(llm::RopeSelectOp op);
  llvm::LogicalResult lowerOp(llm::RopeAppendOp op);
  llvm::LogicalResult lowerOp(llm::AttentionOp op);
  llvm::LogicalResult lowerOp(llm::ColumnsOp op);
  // Mixtures of experts, latent attention (StepLoweringMoe.cpp).
  llvm::LogicalResult lowerOp(llm::RouteOp op);
  llvm::LogicalResult lowerOp(llm::ExpertLinearOp op);
  llvm::LogicalResult lowerOp(llm::CombineOp op);
  llvm::LogicalResult lowerOp(llm::HeadLinearOp op);
  llvm::LogicalResult lowerOp(llm::LatentAppendOp op);
  llvm::LogicalResult lowerElementwise(mlir::Operation *op, llvm::StringRef opcode,
                                       double scale = 0);
  llvm::LogicalResult lowerNorm(mlir::Operation *op, mlir::Value input, mlir::Value weight,
                                mlir::Value bias, int64_t kind, double eps, bool plusOne);

  /// The rows of a lowered value; asserts that it is lowered.
  const PlanRows &rows(mlir::Value value) const { return values.find(value)->second; }
  /// Whole rows, with nothing before or after the columns; an error where the kernel needs that.
  mlir::FailureOr<mlir::Value> whole(mlir::Operation *op, mlir::Value value);
  /// Memory for the result of \p op, of its type, in rows of \p kind: the step's output or a
  /// buffer.
  mlir::Value result(mlir::Value value, RowKind kind, llvm::StringRef what);
  /// Notes which layer the operations before a layer's cache belong to.
  void findLayers(mlir::func::FuncOp step);
  /// "layers.3.attention"; just the word before the first layer and after the last.
  std::string name(llvm::StringRef what) const;
  /// What a projection is in its layer: "qkv", "output", "gate_up", "down", "head".
  llvm::StringRef roleOf(llm::LinearOp op) const;
  /// f32 vector of the plan.
  mlir::Value vector(mlir::Value expression, llvm::StringRef what);

  ProgramBuilder &b;
  llvm::ArrayRef<int64_t> kvPrefixBytes;
  llvm::DenseMap<mlir::Value, PlanRows> values;
  llvm::DenseMap<mlir::Value, int64_t> cacheLayer;        ///< a cache value's layer
  mlir::Value returned;                                   ///< the logits
  llvm::DenseMap<mlir::Operation *, int64_t> layerBefore; ///< see findLayers
  int64_t layer = -1;
};

} // namespace llmc

#endif // LLMC_COMPILER_PASSES_PLAN_STEPLOWERING_H
