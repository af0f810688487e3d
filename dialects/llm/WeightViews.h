//===- WeightViews.h - views of weights, as importers and passes write them ----===//
#ifndef LLMC_DIALECTS_LLM_WEIGHTVIEWS_H
#define LLMC_DIALECTS_LLM_WEIGHTVIEWS_H

#include "dialects/llm/LlmDialect.h"
#include "mlir/IR/Builders.h"

namespace llmc::llm {

/// Makes `llm.weight_*` operations at one place; every result's type follows from its operands.
class WeightViews {
public:
  WeightViews(mlir::OpBuilder &builder, mlir::Location loc) : b(builder), loc(loc) {}

  mlir::Value rows(mlir::Value weight, int64_t offset, int64_t count);
  mlir::Value transpose(mlir::Value matrix);
  mlir::Value reshape(mlir::Value weight, llvm::ArrayRef<int64_t> shape);
  /// Rows 0, 2, 4, ... and then 1, 3, 5, ...
  mlir::Value deinterleave(mlir::Value weight);
  mlir::Value interleave(mlir::Value first, mlir::Value second);
  mlir::Value stack(llvm::ArrayRef<mlir::Value> weights);
  /// Matrix (or vector) \p index of a tensor whose first dimension counts them.
  mlir::Value part(mlir::Value tensor, int64_t index);

private:
  mlir::RankedTensorType type(llvm::ArrayRef<int64_t> shape) {
    return mlir::RankedTensorType::get(shape, b.getF32Type());
  }
  mlir::OpBuilder &b;
  mlir::Location loc;
};

} // namespace llmc::llm

#endif // LLMC_DIALECTS_LLM_WEIGHTVIEWS_H
