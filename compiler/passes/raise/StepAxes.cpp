#include "compiler/passes/raise/StepAxes.h"

using namespace mlir;
using namespace llmc::raise;

int64_t Axis::extent(const Sample &sample) const {
  switch (kind) {
  case AxisKind::Batch:
    return sample.batch;
  case AxisKind::Fresh:
    return sample.fresh;
  case AxisKind::Keys:
    return sample.total();
  case AxisKind::Feature:
  case AxisKind::Repeat:
    return size;
  }
  return 0;
}

void llmc::raise::mergeNeighbours(AxisGroup &group) {
  AxisGroup merged;
  for (const Axis &axis : group) {
    bool isFeature = axis.kind == AxisKind::Feature;
    if (!merged.empty() && merged.back().kind == axis.kind) {
      Axis &last = merged.back();
      if (isFeature && last.stride == axis.size * axis.stride) {
        last = {AxisKind::Feature, last.size * axis.size, axis.stride};
        continue;
      }
      if (axis.kind == AxisKind::Repeat) {
        last.size *= axis.size;
        continue;
      }
    }
    merged.push_back(axis);
  }
  group = merged;
}

std::optional<Axes> llmc::raise::regroup(const Axes &axes, ArrayRef<Shape> shapes,
                                         ArrayRef<Sample> samples) {
  // Axes still to be placed, the next one last.
  SmallVector<Axis> rest;
  for (const AxisGroup &group : llvm::reverse(axes))
    rest.append(group.rbegin(), group.rend());
  size_t rank = shapes.front().size(), count = samples.size();
  Axes result(rank);
  for (size_t d = 0; d < rank; ++d) {
    SmallVector<int64_t> open; // What the dimension still lacks, by sample.
    for (const Shape &shape : shapes) {
      if (shape.size() != rank || shape[d] <= 0)
        return std::nullopt;
      open.push_back(shape[d]);
    }
    while (llvm::any_of(open, [](int64_t size) { return size != 1; })) {
      if (rest.empty())
        return std::nullopt;
      Axis axis = rest.pop_back_val();
      bool fits = true;
      for (size_t s = 0; s < count; ++s) {
        if (axis.extent(samples[s]) <= 0)
          return std::nullopt;
        fits &= open[s] % axis.extent(samples[s]) == 0;
      }
      if (!fits) {
        // Only part of it belongs here: an outer part of `open` elements.
        bool isSplittable = (axis.kind == AxisKind::Feature || axis.kind == AxisKind::Repeat) &&
                            llvm::all_equal(open) && axis.size % open[0] == 0;
        if (!isSplittable)
          return std::nullopt;
        Axis inner = {axis.kind, axis.size / open[0], axis.stride};
        rest.push_back(inner);
        axis = {axis.kind, open[0], axis.kind == AxisKind::Feature ? axis.stride * inner.size : 0};
      }
      for (size_t s = 0; s < count; ++s)
        open[s] /= axis.extent(samples[s]);
      result[d].push_back(axis);
    }
    mergeNeighbours(result[d]);
  }
  return rest.empty() ? std::optional(result) : std::nullopt;
}

std::optional<Axes> llmc::raise::expandAxes(const Axes &axes, ArrayRef<Shape> shapes,
                                            ArrayRef<Sample> samples) {
  size_t rank = shapes.front().size();
  if (rank < axes.size())
    return std::nullopt;
  Axes result(rank);
  size_t shift = rank - axes.size();
  for (size_t d = 0; d < rank; ++d) {
    if (d >= shift)
      result[d] = axes[d - shift];
    int64_t times = 0;
    for (auto [shape, sample] : llvm::zip(shapes, samples)) {
      int64_t own = 1;
      for (const Axis &axis : result[d])
        own *= axis.extent(sample);
      if (shape.size() != rank || own == 0 || shape[d] % own != 0 ||
          (times && shape[d] / own != times))
        return std::nullopt;
      times = shape[d] / own;
    }
    if (times == 1)
      continue;
    if (!result[d].empty())
      return std::nullopt;
    result[d].push_back({AxisKind::Repeat, times, 0});
  }
  return result;
}

AxisGroup llmc::raise::featuresOf(const Axes &axes) {
  AxisGroup features;
  for (const AxisGroup &group : axes)
    for (const Axis &axis : group)
      if (axis.kind == AxisKind::Feature)
        features.push_back(axis);
  return features;
}

int64_t llmc::raise::featureCount(const Axes &axes) {
  int64_t count = 1;
  for (const Axis &axis : featuresOf(axes))
    count *= axis.size;
  return count;
}

bool llmc::raise::isOnly(const AxisGroup &group, AxisKind kind) {
  return group.size() == 1 && group.front().kind == kind;
}

bool llmc::raise::contains(const Axes &axes, AxisKind kind) {
  for (const AxisGroup &group : axes)
    for (const Axis &axis : group)
      if (axis.kind == kind)
        return true;
  return false;
}
