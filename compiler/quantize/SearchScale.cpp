#include "compiler/quantize/SearchScale.h"

#include <cmath>

namespace llmc {
namespace {

struct Fit {
  float scale = 0; ///< the best for the codes
  float gain = 0;  ///< by how much it lowers the error
};

/// Codes the group with steps of 1 / \p inverse.
Fit fit(GroupView group, float inverse) {
  Lanes sumWq = 0, sumQq = 0;
  for (uint32_t i = 0; i != group.size; i += laneCount) {
    const Lanes w = loadLanes(group.values + i);
    const Lanes q = clampLanes(roundLanes(w * inverse), -8, 7);
    const Lanes iq = loadLanes(group.importance + i) * q;
    sumWq += iq * w;
    sumQq += iq * q;
  }
  const float wq = sumLanes(sumWq), qq = sumLanes(sumQq);
  if (!(qq > 0))
    return {};
  return {wq / qq, wq * wq / qq};
}

float errorOf(GroupView group, float scale) {
  Lanes sum = 0;
  const float inverse = scale != 0 ? 1 / scale : 0;
  for (uint32_t i = 0; i != group.size; i += laneCount) {
    const Lanes w = loadLanes(group.values + i);
    const Lanes d = w - clampLanes(roundLanes(w * inverse), -8, 7) * scale;
    sum += loadLanes(group.importance + i) * d * d;
  }
  return sumLanes(sum);
}

/// The value of largest magnitude, with its sign; the first of several.
float extreme(GroupView group) {
  float best = 0;
  for (uint32_t i = 0; i != group.size; ++i)
    if (std::abs(group.values[i]) > std::abs(best))
      best = group.values[i];
  return best;
}

} // namespace

float searchScale4(GroupView group, Element type) {
  const float largest = extreme(group);
  if (largest == 0)
    return 0;
  Fit best;
  // The largest value at code -6.25 .. -9 before it is cut off at -8.
  for (int quarter = 25; quarter <= 36; ++quarter) {
    const float inverse = -0.25f * static_cast<float>(quarter) / largest;
    if (!std::isfinite(inverse))
      break;
    if (const Fit found = fit(group, inverse); found.gain > best.gain)
      best = found;
  }
  if (best.scale == 0) // weights too small for these sums: no search
    return storedAs(type, largest / -8);
  const float first = storedAs(type, best.scale);
  if (first == 0)
    return 0;
  const float second = storedAs(type, fit(group, 1 / first).scale);
  return errorOf(group, second) < errorOf(group, first) ? second : first;
}

float scale8(GroupView group, Element type) {
  const float largest = std::abs(extreme(group));
  const float scale = storedAs(type, largest / 127);
  if (type != Element::F16 || largest <= 127.49f * scale)
    return scale;
  return halfToFloat(static_cast<uint16_t>(floatToHalf(scale) + 1));
}

} // namespace llmc
