//===- StepAxes.h - The dimensions of a graph tensor, by meaning -*- C++ -*-===//
//
// A tensor of the graph is [batch, heads, sequence, size] here and [batch * sequence, heads * size]
// there. Its dimensions are written as lists of axes instead, so that reshapes, transposes,
// squeezes and expands only regroup axes: [batch][heads=9,stride=64][fresh][size=64,stride=1] is a
// view of llm rows [T, 576].
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_PASSES_RAISE_STEPAXES_H
#define LLMC_COMPILER_PASSES_RAISE_STEPAXES_H

#include "compiler/passes/raise/SampleEvaluation.h"

namespace llmc::raise {

enum class AxisKind {
  Batch,   ///< Sequences of the batch.
  Fresh,   ///< New tokens of a sequence.
  Keys,    ///< Past and new tokens of a sequence.
  Feature, ///< `size` columns of the rows, `stride` apart.
  Repeat,  ///< The same elements `size` times.
};

struct Axis {
  AxisKind kind;
  int64_t size = 0, stride = 0;

  bool operator==(const Axis &) const = default;
  int64_t extent(const Sample &sample) const;
};

/// One dimension of a tensor: its axes, outermost first; none for a dimension of size 1.
using AxisGroup = llvm::SmallVector<Axis, 2>;
using Axes = llvm::SmallVector<AxisGroup, 4>;

/// The axes under another shape (one an entry of `shapes`, one a sample), or nothing if a dimension
/// of it is no product of axes. Feature and repeat axes are split where a dimension asks for it.
std::optional<Axes> regroup(const Axes &axes, llvm::ArrayRef<Shape> shapes,
                            llvm::ArrayRef<Sample> samples);

/// The axes broadcast to another shape: dimensions of size 1 that grow become repeats.
std::optional<Axes> expandAxes(const Axes &axes, llvm::ArrayRef<Shape> shapes,
                               llvm::ArrayRef<Sample> samples);

/// Neighbouring feature axes that run on into each other become one, and so do repeats.
void mergeNeighbours(AxisGroup &group);

/// The feature axes of a tensor, in the order of its dimensions.
AxisGroup featuresOf(const Axes &axes);
/// Product of the sizes of the feature axes.
int64_t featureCount(const Axes &axes);
/// Whether the group is exactly [kind].
bool isOnly(const AxisGroup &group, AxisKind kind);
/// Whether any axis of the tensor has the kind.
bool contains(const Axes &axes, AxisKind kind);

} // namespace llmc::raise

#endif
