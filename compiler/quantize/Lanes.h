//===- Lanes.h - sixteen groups side by side ------------------------------------===//
//
// The searches work on sixteen groups at once, one a lane, so that no sum crosses lanes and every
// vector width gives the same bits. Inside a group a sum has one fixed order: part i adds the
// elements i, i + 4, ... and the four parts are then added in pairs.
//
// The searches are compiled for several CPU levels; vectors stay inside them (how a vector is
// passed depends on the level), so what is shared is inlined and takes them by reference.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_QUANTIZE_LANES_H
#define LLMC_QUANTIZE_LANES_H

#include "compiler/quantize/Pack.h"

#include <cfloat>
#include <cstdint>

#if defined(__x86_64__)
#define LLMC_CPU_CLONES                                                                            \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define LLMC_CPU_CLONES
#endif
#define LLMC_ALWAYS_INLINE __attribute__((always_inline)) inline

namespace llmc {

inline constexpr uint32_t laneCount = 16, partCount = 4;
using Lanes = float __attribute__((ext_vector_type(laneCount)));
using IntLanes = int32_t __attribute__((ext_vector_type(laneCount)));
using Parts = Lanes[partCount];

/// Sixteen groups of weights, element by element. Elements from `count` on are zeros of no
/// importance, up to a whole number of parts.
struct GroupBlock {
  const Lanes *values;
  const Lanes *importance;
  uint32_t count; ///< elements of a group, at least 1
  uint32_t size;  ///< the same, raised to a multiple of partCount
};

LLMC_ALWAYS_INLINE void sumParts(const Parts &parts, Lanes &sum) {
  sum = (parts[0] + parts[2]) + (parts[1] + parts[3]);
}

/// To the nearest integer, ties to even, for magnitudes below 2^22: adding 1.5 * 2^23 leaves no
/// bits for a fraction.
LLMC_ALWAYS_INLINE void roundLanes(Lanes &v) {
  constexpr float magic = 12582912.0f;
  v = (v + magic) - magic;
}

/// A NaN becomes \p low.
LLMC_ALWAYS_INLINE void clampLanes(Lanes &v, float low, float high) {
  v = v > Lanes(low) ? v : Lanes(low);
  v = v < Lanes(high) ? v : Lanes(high);
}

/// 1 / v, and 0 for 0.
LLMC_ALWAYS_INLINE void invertLanes(const Lanes &v, Lanes &inverse) {
  inverse = v != Lanes(0) ? 1 / v : Lanes(0);
}

LLMC_ALWAYS_INLINE void finiteLanes(const Lanes &v, IntLanes &finite) {
  finite = (v <= Lanes(FLT_MAX)) & (v >= Lanes(-FLT_MAX));
}

LLMC_ALWAYS_INLINE void magnitudeOf(const Lanes &v, Lanes &magnitude) {
  magnitude = __builtin_elementwise_abs(v);
}

/// Rounds to what an f16 holds; the same as roundToHalf.
LLMC_ALWAYS_INLINE void roundLanesToHalf(Lanes &v) {
  const IntLanes bits = __builtin_bit_cast(IntLanes, v);
  const IntLanes magnitude = bits & 0x7fffffff;
  // 13 bits of the fraction go, to nearest even.
  IntLanes result = (magnitude + 0xfff + ((magnitude >> 13) & 1)) & ~0x1fff;
  // Below 2^-14 the last kept bit is 2^-24, which is where adding 0.5 rounds.
  const Lanes small = (__builtin_bit_cast(Lanes, magnitude) + 0.5f) - 0.5f;
  result = magnitude < 0x38800000 ? __builtin_bit_cast(IntLanes, small) : result;
  result = magnitude >= 0x477ff000 ? IntLanes(0x7f800000) : result;
  result = magnitude > 0x7f800000 ? IntLanes(0x7fc00000) : result;
  v = __builtin_bit_cast(Lanes, result | (bits & INT32_MIN));
}

/// \p v as scales or minimums of type \p type are stored.
LLMC_ALWAYS_INLINE void storeAs(Element type, Lanes &v) {
  if (type == Element::F16)
    roundLanesToHalf(v);
}

} // namespace llmc

#endif // LLMC_QUANTIZE_LANES_H
