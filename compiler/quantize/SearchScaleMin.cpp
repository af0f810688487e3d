#include "compiler/quantize/SearchScaleMin.h"

#include <algorithm>

namespace llmc {
namespace {

struct Range {
  float low, high;
};

Range rangeOf(GroupView group) {
  Range range{group.values[0], group.values[0]};
  for (uint32_t i = 1; i != group.size; ++i) {
    if (group.importance[i] == 0 && group.values[i] == 0)
      continue; // padding
    range.low = std::min(range.low, group.values[i]);
    range.high = std::max(range.high, group.values[i]);
  }
  return range;
}

/// Sums over the group for one coding: what the error is, and what a regression needs.
struct Sums {
  float error, q, qq, wq;
};

Sums sumsOf(GroupView group, ScaleMin at) {
  Lanes error = 0, sumQ = 0, sumQq = 0, sumWq = 0;
  const float inverse = at.scale != 0 ? 1 / at.scale : 0;
  for (uint32_t i = 0; i != group.size; i += laneCount) {
    const Lanes w = loadLanes(group.values + i), importance = loadLanes(group.importance + i);
    const Lanes q = clampLanes(roundLanes((w - at.min) * inverse), 0, 15);
    const Lanes d = w - (q * at.scale + at.min);
    const Lanes iq = importance * q;
    error += importance * d * d;
    sumQ += iq;
    sumQq += iq * q;
    sumWq += iq * w;
  }
  return {sumLanes(error), sumLanes(sumQ), sumLanes(sumQq), sumLanes(sumWq)};
}

} // namespace

ScaleMin searchScaleMin4(GroupView group, Element type) {
  const Range range = rangeOf(group);
  const float middle = 0.5f * range.low + 0.5f * range.high;
  const float half = 0.5f * range.high - 0.5f * range.low;
  const auto stored = [type](float scale, float min) {
    return ScaleMin{storedAs(type, scale), storedAs(type, min)};
  };
  if (half == 0) // one value: the minimum alone
    return stored(0, middle);
  Lanes importanceSum = 0, weightSum = 0;
  for (uint32_t i = 0; i != group.size; i += laneCount) {
    const Lanes importance = loadLanes(group.importance + i);
    importanceSum += importance;
    weightSum += importance * loadLanes(group.values + i);
  }
  const float all = sumLanes(importanceSum), w = sumLanes(weightSum);

  ScaleMin best = stored(2 * half / 15, range.low);
  float least = sumsOf(group, best).error;
  for (const float part : {0.85f, 0.895f, 0.94f, 0.985f, 1.03f}) {
    ScaleMin at = stored(2 * half * part / 15, middle - half * part);
    for (int round = 0; round != 3; ++round) {
      const Sums sums = sumsOf(group, at);
      if (sums.error < least) {
        least = sums.error;
        best = at;
      }
      const float determinant = all * sums.qq - sums.q * sums.q;
      if (round == 2 || !(determinant > 0))
        break;
      const float scale = (all * sums.wq - sums.q * w) / determinant;
      at = stored(scale, (w - scale * sums.q) / all);
    }
  }
  return best;
}

ScaleMin scaleMin8(GroupView group, Element type) {
  const Range range = rangeOf(group);
  const float scale = storedAs(type, (range.high / 255 - range.low / 255));
  return {scale, storedAs(type, range.low + 128 * scale)};
}

} // namespace llmc
