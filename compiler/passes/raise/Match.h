//===- Match.h - Small questions that the raise patterns ask ----*- C++ -*-===//

#ifndef LLMC_COMPILER_PASSES_RAISE_MATCH_H
#define LLMC_COMPILER_PASSES_RAISE_MATCH_H

#include "dialects/graph/GraphDialect.h"
#include <optional>

namespace llmc::raise {

/// The number that a constant holds in its only (or every) element.
std::optional<double> scalarConstant(mlir::Value value);

/// The integers of a small constant, or nothing.
std::optional<llvm::SmallVector<int64_t>> intConstant(mlir::Value value);

/// The value before any casts between float types.
mlir::Value peelCasts(mlir::Value value);

/// `value` (casts peeled) as a binary operation of a kind, or null.
graph::BinaryOp asBinary(mlir::Value value, graph::BinaryKind kind);
graph::UnaryOp asUnary(mlir::Value value, graph::UnaryKind kind);

/// If one factor (or term) of a commutative operation is a scalar constant: that number and the
/// other operand.
struct WithScalar {
  mlir::Value value;
  double scalar;
};
std::optional<WithScalar> splitScalar(mlir::Value value, graph::BinaryKind kind);

/// value = x * c or x / c with a scalar constant c: x and the factor; the value itself and 1 if it
/// is neither.
WithScalar peelScale(mlir::Value value);

/// Whether a value is computed from constants and weights alone.
bool isWeightLike(mlir::Value value);

/// Numbers equal up to f16 rounding of one of them.
bool isNear(double a, double b, double relative = 1e-5);

} // namespace llmc::raise

#endif
