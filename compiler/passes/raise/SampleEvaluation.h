//===- SampleEvaluation.h - A graph run at a few sizes, as an analysis -*- C++ -*-===//
//
// Exporters spell masks, positions, reshape targets and slice bounds in countless ways, all of them
// functions of the sizes of a step. Instead of matching the spellings, the graph is run at a few
// sizes (batch, past, new tokens) with an attention mask of ones and positions past .. past + new -
// 1: every value that depends on nothing else is then known at each of them, and every value's
// shape. What a mask or a rotary table *means* is read off the numbers.
//
// The sizes include an empty past, single tokens, a batch of two, and one long context, so that a
// window or a clamp that only shows late is seen. Anything that depends on token ids or on the
// cache's contents stays unknown, so a mask made from token ids is never taken for a causal one.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_PASSES_RAISE_SAMPLEEVALUATION_H
#define LLMC_COMPILER_PASSES_RAISE_SAMPLEEVALUATION_H

#include "compiler/passes/raise/Evaluate.h"
#include "compiler/passes/raise/ModelInputs.h"
#include "llvm/ADT/DenseMap.h"

namespace llmc::raise {

/// Sizes of one run.
struct Sample {
  int64_t batch, past, fresh;
  int64_t total() const { return past + fresh; }
};

class SampleEvaluation {
public:
  /// Runs the function's body; `op` is a func.func.
  explicit SampleEvaluation(mlir::Operation *op);

  llvm::ArrayRef<Sample> samples() const { return points; }

  /// Shape at a sample, or null if it is not known.
  const Shape *shape(mlir::Value value, unsigned sample) const;
  /// Whether the shape is known at every sample.
  bool hasShape(mlir::Value value) const;
  /// Elements at a sample, or null; large ones are computed on demand.
  HostArrayRef data(mlir::Value value, unsigned sample);
  /// The elements of a small value if they are the same at every sample, else null.
  HostArrayRef constant(mlir::Value value) const;

  /// Takes in an operation that a pass has made in place of `old`, so that the analysis outlives
  /// the pass. Operations may not be erased while it lives.
  void extend(mlir::Operation *op, mlir::Operation *old);

private:
  using Table = llvm::DenseMap<mlir::Value, Facts>;

  void run(mlir::func::FuncOp func, unsigned sample);
  void evaluate(mlir::Operation &op, Table &table, int64_t limit);
  HostArrayRef materialize(mlir::Value value, Table &table);

  llvm::SmallVector<Sample> points;
  llvm::SmallVector<Table> tables;
  llvm::DenseMap<mlir::Operation *, unsigned> order;
};

} // namespace llmc::raise

#endif
