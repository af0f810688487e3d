#include "compiler/quantize/SearchScaleMin.h"

namespace llmc {
namespace {

LLMC_ALWAYS_INLINE void rangeOf(const GroupBlock &groups, Lanes &low, Lanes &high) {
  low = high = groups.values[0];
  for (uint32_t i = 1; i != groups.count; ++i) {
    const Lanes w = groups.values[i];
    low = w < low ? w : low;
    high = w > high ? w : high;
  }
}

/// Sums over each group for one coding: what the error is, and what a regression needs.
struct Sums {
  Lanes error, q, qq, wq;
};

LLMC_ALWAYS_INLINE void sumsOf(const GroupBlock &groups, const ScaleMin &at, Sums &sums) {
  Parts error, sumQ, sumQq, sumWq;
  Lanes inverse;
  invertLanes(at.scale, inverse);
  for (uint32_t part = 0; part != partCount; ++part) {
    Lanes e = 0, sq = 0, sqq = 0, swq = 0;
    for (uint32_t i = part; i < groups.size; i += partCount) {
      const Lanes w = groups.values[i], importance = groups.importance[i];
      Lanes q = (w - at.min) * inverse;
      roundLanes(q);
      clampLanes(q, 0, 15);
      const Lanes d = w - (q * at.scale + at.min);
      const Lanes iq = importance * q;
      e += importance * d * d;
      sq += iq;
      sqq += iq * q;
      swq += iq * w;
    }
    error[part] = e, sumQ[part] = sq, sumQq[part] = sqq, sumWq[part] = swq;
  }
  sumParts(error, sums.error);
  sumParts(sumQ, sums.q);
  sumParts(sumQq, sums.qq);
  sumParts(sumWq, sums.wq);
}

LLMC_ALWAYS_INLINE void storeAs(Element type, ScaleMin &at) {
  storeAs(type, at.scale);
  storeAs(type, at.min);
}

} // namespace

LLMC_CPU_CLONES
void searchScaleMin4(const GroupBlock &groups, Element type, ScaleMin &result) {
  Lanes low, high;
  rangeOf(groups, low, high);
  const Lanes middle = 0.5f * low + 0.5f * high, half = 0.5f * high - 0.5f * low;
  Parts importanceParts, weightParts;
  for (uint32_t part = 0; part != partCount; ++part) {
    Lanes importanceSum = 0, weightSum = 0;
    for (uint32_t i = part; i < groups.size; i += partCount) {
      importanceSum += groups.importance[i];
      weightSum += groups.importance[i] * groups.values[i];
    }
    importanceParts[part] = importanceSum, weightParts[part] = weightSum;
  }
  Lanes all, w;
  sumParts(importanceParts, all);
  sumParts(weightParts, w);

  ScaleMin best = {2 * half / 15, low};
  storeAs(type, best);
  Sums sums;
  sumsOf(groups, best, sums);
  Lanes least = sums.error;
  for (const float part : {0.85f, 0.895f, 0.94f, 0.985f, 1.03f}) {
    ScaleMin at = {2 * half * part / 15, middle - half * part};
    storeAs(type, at);
    IntLanes going = -1;
    for (int round = 0; round != 3; ++round) {
      sumsOf(groups, at, sums);
      const IntLanes better = going & (sums.error < least);
      least = better ? sums.error : least;
      best.scale = better ? at.scale : best.scale;
      best.min = better ? at.min : best.min;
      const Lanes determinant = all * sums.qq - sums.q * sums.q;
      going &= determinant > Lanes(0);
      const Lanes scale = (all * sums.wq - sums.q * w) / determinant;
      at = {scale, (w - scale * sums.q) / all};
      storeAs(type, at);
    }
  }
  // One value: the minimum alone.
  ScaleMin flat = {0, middle};
  storeAs(type, flat);
  result.scale = half == Lanes(0) ? flat.scale : best.scale;
  result.min = half == Lanes(0) ? flat.min : best.min;
}

LLMC_CPU_CLONES
void scaleMin8(const GroupBlock &groups, Element type, ScaleMin &result) {
  Lanes low, high;
  rangeOf(groups, low, high);
  result.scale = high / 255 - low / 255;
  storeAs(type, result.scale);
  result.min = low + 128 * result.scale;
  storeAs(type, result.min);
}

} // namespace llmc
