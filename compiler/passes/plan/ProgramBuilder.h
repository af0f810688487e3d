//===- ProgramBuilder.h - a plan.program as it grows ------------------------------===//
#ifndef LLMC_COMPILER_PASSES_PLAN_PROGRAMBUILDER_H
#define LLMC_COMPILER_PASSES_PLAN_PROGRAMBUILDER_H

#include "dialects/plan/PlanDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include <variant>

namespace llmc {

/// Which dimension of the step the rows of a tensor are.
enum class RowKind { Token, Logit };

/// A row tensor of the step as the plan has it: rows of a buffer (or output).
struct PlanRows {
  mlir::Value memory; ///< of type !plan.buffer or !plan.output
  RowKind kind = RowKind::Token;
  int64_t rowElements = 0; ///< elements from one row to the next
  int64_t offset = 0;      ///< elements before the first column
  int64_t columns = 0;
};

/// A constant of a kernel: name and value.
using PlanConstant = std::pair<llvm::StringRef, std::variant<int64_t, double, std::string>>;

/// Makes weights, buffers, kernels and commands, each once.
class ProgramBuilder {
public:
  ProgramBuilder(plan::ProgramOp program);

  /// The plan's weight for the weight expression \p expression of the step function, in \p format
  /// (null: f32 rows). One for each pair of the two.
  mlir::Value weight(mlir::Value expression, llm::FormatAttr format, llvm::StringRef name);

  /// A buffer of \p bytesPerRow bytes a row.
  mlir::Value buffer(llvm::StringRef name, RowKind kind, int64_t bytesPerRow);

  /// One command; a kernel of the same kind and constants is shared.
  plan::CommandOp command(mlir::Location loc, const llvm::Twine &name, llvm::StringRef kind,
                          llvm::ArrayRef<std::pair<llvm::StringRef, mlir::Value>> bindings,
                          llvm::ArrayRef<PlanConstant> constants, plan::AffineAttr tasks,
                          llvm::ArrayRef<int64_t> scalars = {}, plan::CostAttr cost = {});

  plan::AffineAttr perRow(RowKind kind, int64_t count);
  plan::AffineAttr constant(int64_t count);
  mlir::OpBuilder &builder() { return builder_; }
  mlir::MLIRContext *context() { return builder_.getContext(); }

private:
  mlir::Value cloneWeight(mlir::Value expression);

  plan::ProgramOp program_;
  mlir::OpBuilder builder_;
  mlir::IRMapping weightClones_;
  llvm::DenseMap<std::pair<mlir::Value, mlir::Attribute>, mlir::Value> weights_;
  llvm::DenseMap<mlir::Attribute, plan::KernelOp> kernels_;
  llvm::StringMap<int> kernelCounts_;
};

} // namespace llmc

#endif // LLMC_COMPILER_PASSES_PLAN_PROGRAMBUILDER_H
