//===- FuseUtils.h - what the fusion passes share ------------------------------===//
#ifndef LLMC_COMPILER_PASSES_FUSE_FUSEUTILS_H
#define LLMC_COMPILER_PASSES_FUSE_FUSEUTILS_H

#include "dialects/llm/LlmDialect.h"
#include "mlir/IR/PatternMatch.h"

namespace llmc {

/// A projection with nothing in its epilogue but a bias.
inline bool isPlainLinear(llm::LinearOp op) {
  return !op.getResidual() && !op.getGlu() && op.getActivation() == llm::Activation::None &&
         !op.getFormat();
}

/// A norm of each head: of groups of \p headSize columns, which one head alone need not say.
inline bool isHeadNorm(llm::RmsNormOp op, int64_t headSize) {
  return static_cast<int64_t>(op.getGroupSize().value_or(llm::dim(op.getInput(), 1))) == headSize;
}

/// True when one matrix can hold both weights as they are: floats, or integers of one format.
/// Joining different integer formats would need a wider one for both.
bool canJoin(mlir::Value a, mlir::Value b);

/// Moves the operations that compute \p weight (views and constants: they depend on nothing else)
/// before \p before, where they are not already. A null value is left alone.
void hoistWeight(mlir::Value weight, mlir::Operation *before);

/// Replaces \p parts, plain linears of one input, by one linear of the joined weights, and their
/// results by columns of its result. The rewriter's insertion point must follow all weights.
llm::LinearOp joinLinears(mlir::RewriterBase &rewriter, llvm::ArrayRef<llm::LinearOp> parts);

} // namespace llmc

#endif // LLMC_COMPILER_PASSES_FUSE_FUSEUTILS_H
