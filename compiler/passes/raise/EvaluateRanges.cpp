//===- EvaluateRanges.cpp - Axes, broadcasts and slice bounds ---------------===//

#include "compiler/passes/raise/Evaluate.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::graph;
using namespace llmc::raise;

std::optional<Shape> llmc::raise::broadcastShapes(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  if (a.size() < b.size())
    std::swap(a, b);
  Shape result(a);
  size_t shift = a.size() - b.size();
  for (size_t i = 0; i < b.size(); ++i) {
    int64_t &dim = result[i + shift];
    if (dim == 1)
      dim = b[i];
    else if (b[i] != 1 && b[i] != dim)
      return std::nullopt;
  }
  return result;
}

std::optional<int64_t> llmc::raise::placeAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return std::nullopt;
  return axis < 0 ? axis + rank : axis;
}

SliceRange llmc::raise::clampSlice(int64_t start, int64_t end, int64_t step, int64_t dim) {
  // Bounds below zero count from the end; the additions cannot overflow, since only negative
  // numbers are added to.
  auto place = [&](int64_t bound, int64_t low, int64_t high) {
    return std::clamp<int64_t>(bound < 0 ? bound + dim : bound, low, high);
  };
  if (step == 0 || dim == 0)
    return {0, 1, 0};
  if (step > 0) {
    int64_t from = place(start, 0, dim), to = place(end, 0, dim);
    return {from, step, to > from ? (to - from - 1) / step + 1 : 0};
  }
  int64_t from = place(start, -1, dim - 1), to = place(end, -1, dim - 1);
  // A step of INT64_MIN has no positive counterpart; it takes one element like any step beyond the
  // dimension.
  int64_t stride = step == INT64_MIN ? INT64_MAX : -step;
  return {from, step, from > to ? (from - to - 1) / stride + 1 : 0};
}

std::optional<SmallVector<SliceRange>>
llmc::raise::sliceRanges(SliceOp op, ArrayRef<Facts> operands, ArrayRef<int64_t> shape) {
  auto find = [&](Value value) -> const HostArray * {
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      if (operand == value)
        return operands[i].data.get();
    return nullptr;
  };
  const HostArray *starts = find(op.getStarts()), *ends = find(op.getEnds());
  const HostArray *axes = op.getAxes() ? find(op.getAxes()) : nullptr;
  const HostArray *steps = op.getSteps() ? find(op.getSteps()) : nullptr;
  if (!starts || !ends || (op.getAxes() && !axes) || (op.getSteps() && !steps))
    return std::nullopt;
  int64_t count = starts->size(), rank = shape.size();
  if (ends->size() != count || (axes && axes->size() != count) ||
      (steps && steps->size() != count) || count > rank)
    return std::nullopt;
  SmallVector<SliceRange> ranges;
  for (int64_t dim : shape)
    ranges.push_back({0, 1, dim});
  for (int64_t i = 0; i < count; ++i) {
    auto axis = placeAxis(axes ? axes->ints[i] : i, rank);
    if (!axis)
      return std::nullopt;
    ranges[*axis] =
        clampSlice(starts->ints[i], ends->ints[i], steps ? steps->ints[i] : 1, shape[*axis]);
  }
  return ranges;
}

std::optional<SmallVector<bool>> llmc::raise::reducedAxes(ReduceOp op, ArrayRef<Facts> operands,
                                                          int64_t rank) {
  SmallVector<bool> flags(rank, false);
  const HostArray *axes = nullptr;
  if (op.getAxes()) {
    axes = operands[1].data.get();
    if (!axes)
      return std::nullopt;
  }
  if (!axes || axes->size() == 0)
    return SmallVector<bool>(rank, !op.getNoopWithEmptyAxes());
  for (int64_t axis : axes->ints) {
    auto place = placeAxis(axis, rank);
    if (!place)
      return std::nullopt;
    flags[*place] = true;
  }
  return flags;
}
