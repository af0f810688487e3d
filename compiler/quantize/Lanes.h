//===- Lanes.h - sums over a group in one fixed order ---------------------------===//
//
// Four lanes at a time, whatever the machine has: lane i adds the elements i, i + 4, ... in order,
// and the lanes are then added in pairs. So every build gives the same bits.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_QUANTIZE_LANES_H
#define LLMC_QUANTIZE_LANES_H

#include "compiler/quantize/HalfFloat.h"
#include "compiler/quantize/Pack.h"

#include <cstdint>
#include <cstring>

namespace llmc {

inline constexpr uint32_t laneCount = 4;
using Lanes = float __attribute__((ext_vector_type(laneCount)));

/// A group of weights as the searches see it: padded with zeros of no importance to whole lanes.
struct GroupView {
  const float *values;
  const float *importance;
  uint32_t size; ///< a multiple of laneCount
};

inline Lanes loadLanes(const float *from) {
  Lanes lanes;
  std::memcpy(&lanes, from, sizeof(lanes));
  return lanes;
}

inline float sumLanes(Lanes v) {
  const auto two = v.lo + v.hi;
  return two.x + two.y;
}

/// To the nearest integer, ties to even, for magnitudes below 2^22: adding 1.5 * 2^23 leaves no
/// bits for a fraction.
inline Lanes roundLanes(Lanes v) {
  constexpr float magic = 12582912.0f;
  return (v + magic) - magic;
}

inline Lanes clampLanes(Lanes v, float low, float high) {
  return __builtin_elementwise_min(__builtin_elementwise_max(v, Lanes(low)), Lanes(high));
}

/// \p value as a scale or minimum of type \p type is stored.
inline float storedAs(Element type, float value) {
  return type == Element::F16 ? roundToHalf(value) : value;
}

} // namespace llmc

#endif // LLMC_QUANTIZE_LANES_H
