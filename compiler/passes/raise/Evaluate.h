//===- Evaluate.h - What a graph operation computes, on small arrays -*- C++ -*-===//

#ifndef LLMC_COMPILER_PASSES_RAISE_EVALUATE_H
#define LLMC_COMPILER_PASSES_RAISE_EVALUATE_H

#include "compiler/passes/raise/HostArray.h"

namespace llmc::raise {

/// What is known of a value: its shape, and its elements if they depend on nothing unknown.
struct Facts {
  std::optional<Shape> shape;
  HostArrayRef data;

  Facts() = default;
  explicit Facts(HostArrayRef array) : shape(array->shape), data(std::move(array)) {}
};

/// Shapes of an operation's results from the shapes (and where they say shapes, the elements) of
/// its operands. A result whose shape cannot be told is left empty.
void inferShapes(mlir::Operation *op, llvm::ArrayRef<Facts> operands,
                 llvm::MutableArrayRef<Facts> results);

/// The elements of an operation's only result, all operands having theirs and the result its shape;
/// null if the operation is not one that is evaluated, or has no value there (an index out of
/// range).
HostArrayRef computeData(mlir::Operation *op, llvm::ArrayRef<Facts> operands,
                         llvm::ArrayRef<int64_t> shape);

/// Results of operations with several (split).
bool computeAll(mlir::Operation *op, llvm::ArrayRef<Facts> operands,
                llvm::MutableArrayRef<Facts> results);

/// NumPy's broadcast of two shapes, or nothing if they do not fit.
std::optional<Shape> broadcastShapes(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b);

/// `axis` counted from the front, or nothing if it is out of [-rank, rank).
std::optional<int64_t> placeAxis(int64_t axis, int64_t rank);

/// The normalised start, step and count of a slice of a dimension of size `dim`.
struct SliceRange {
  int64_t start, step, count;
};
SliceRange clampSlice(int64_t start, int64_t end, int64_t step, int64_t dim);

/// For each dimension of `rank`, the slice that a graph.slice takes, or nothing if its operands are
/// not known.
std::optional<llvm::SmallVector<SliceRange>>
sliceRanges(graph::SliceOp op, llvm::ArrayRef<Facts> operands, llvm::ArrayRef<int64_t> shape);

/// The axes that a graph.reduce reduces, as a flag a dimension.
std::optional<llvm::SmallVector<bool>> reducedAxes(graph::ReduceOp op,
                                                   llvm::ArrayRef<Facts> operands, int64_t rank);

// Parts of computeData, one a file.
HostArrayRef computeElementwise(mlir::Operation *op, llvm::ArrayRef<const HostArray *> operands,
                                llvm::ArrayRef<int64_t> shape);
HostArrayRef computeIndexed(mlir::Operation *op, llvm::ArrayRef<const HostArray *> operands,
                            llvm::ArrayRef<int64_t> shape);
HostArrayRef computeReduction(mlir::Operation *op, llvm::ArrayRef<Facts> operands,
                              llvm::ArrayRef<int64_t> shape);

} // namespace llmc::raise

#endif
