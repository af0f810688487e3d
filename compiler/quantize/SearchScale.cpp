#include "compiler/quantize/SearchScale.h"

namespace llmc {
namespace {

struct Fit {
  Lanes scale; ///< the best for the codes
  Lanes gain;  ///< by how much it lowers the error
};

/// Codes the groups with steps of 1 / \p inverse.
LLMC_ALWAYS_INLINE void fit(const GroupBlock &groups, const Lanes &inverse, Fit &result) {
  Parts wq, qq;
  for (uint32_t part = 0; part != partCount; ++part) {
    Lanes sumWq = 0, sumQq = 0;
    for (uint32_t i = part; i < groups.size; i += partCount) {
      const Lanes w = groups.values[i];
      Lanes q = w * inverse;
      roundLanes(q);
      clampLanes(q, -8, 7);
      const Lanes iq = groups.importance[i] * q;
      sumWq += iq * w;
      sumQq += iq * q;
    }
    wq[part] = sumWq;
    qq[part] = sumQq;
  }
  Lanes sumWq, sumQq;
  sumParts(wq, sumWq);
  sumParts(qq, sumQq);
  result.scale = sumQq > Lanes(0) ? sumWq / sumQq : Lanes(0);
  result.gain = sumQq > Lanes(0) ? sumWq * sumWq / sumQq : Lanes(0);
}

LLMC_ALWAYS_INLINE void errorOf(const GroupBlock &groups, const Lanes &scale, Lanes &error) {
  Parts sums;
  Lanes inverse;
  invertLanes(scale, inverse);
  for (uint32_t part = 0; part != partCount; ++part) {
    Lanes sum = 0;
    for (uint32_t i = part; i < groups.size; i += partCount) {
      const Lanes w = groups.values[i];
      Lanes q = w * inverse;
      roundLanes(q);
      clampLanes(q, -8, 7);
      const Lanes d = w - q * scale;
      sum += groups.importance[i] * d * d;
    }
    sums[part] = sum;
  }
  sumParts(sums, error);
}

/// The value of largest magnitude, with its sign; the first of several.
LLMC_ALWAYS_INLINE void extreme(const GroupBlock &groups, Lanes &best) {
  best = 0;
  Lanes most = 0;
  for (uint32_t i = 0; i != groups.count; ++i) {
    const Lanes w = groups.values[i];
    Lanes magnitude;
    magnitudeOf(w, magnitude);
    best = magnitude > most ? w : best;
    most = magnitude > most ? magnitude : most;
  }
}

} // namespace

LLMC_CPU_CLONES
void searchScale4(const GroupBlock &groups, Element type, Lanes &scale) {
  Lanes largest;
  extreme(groups, largest);
  Fit best = {0, 0};
  // The largest value at code -6.25 .. -9 before it is cut off at -8.
  for (int quarter = 25; quarter <= 36; ++quarter) {
    const Lanes inverse = Lanes(-0.25f * static_cast<float>(quarter)) / largest;
    Fit found;
    fit(groups, inverse, found);
    IntLanes better;
    finiteLanes(inverse, better);
    better = better & (found.gain > best.gain);
    best.scale = better ? found.scale : best.scale;
    best.gain = better ? found.gain : best.gain;
  }
  Lanes first = best.scale;
  storeAs(type, first);
  const Lanes inverse = 1 / first;
  Fit again;
  fit(groups, inverse, again);
  Lanes second = again.scale, firstError, secondError;
  storeAs(type, second);
  errorOf(groups, first, firstError);
  errorOf(groups, second, secondError);
  Lanes chosen = secondError < firstError ? second : first;
  chosen = first == Lanes(0) ? Lanes(0) : chosen;
  // Weights too small for these sums: no search.
  Lanes plain = largest / Lanes(-8);
  storeAs(type, plain);
  chosen = best.scale == Lanes(0) ? plain : chosen;
  scale = largest == Lanes(0) ? Lanes(0) : chosen;
}

LLMC_CPU_CLONES
void scale8(const GroupBlock &groups, Element type, Lanes &scale) {
  Lanes largest;
  extreme(groups, largest);
  magnitudeOf(largest, largest);
  scale = largest / Lanes(127);
  if (type != Element::F16)
    return;
  roundLanesToHalf(scale);
  // The next f16: one more in the 10 bits of its fraction, or 2^-24 below 2^-14.
  const Lanes smallest = 0x1p-14f;
  const Lanes next =
      scale >= smallest ? __builtin_bit_cast(Lanes, __builtin_bit_cast(IntLanes, scale) + (1 << 13))
                        : scale + Lanes(0x1p-24f);
  scale = largest <= 127.49f * scale ? scale : next;
}

} // namespace llmc
