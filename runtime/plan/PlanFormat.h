//===- PlanFormat.h - the container around a plan's head ---------------------===//
//
// What stands in the first 64 bytes of a plan file, and the constants that reader and writer
// share. README.md shows the whole layout.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_PLAN_PLANFORMAT_H
#define LLMRT_PLAN_PLANFORMAT_H

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace llmrt {

/// The format that this build writes; it reads every minor of this major.
inline constexpr uint16_t kPlanMajor = 1, kPlanMinor = 0;

/// Segments start at multiples of this, whatever the host's page size: a plan moves between hosts.
inline constexpr uint64_t kPlanPage = 4096;
/// Weights start at multiples of this inside their segment; also the alignment of arena slots.
inline constexpr uint64_t kPlanAlignment = 64;
/// The largest head. A flatbuffer ends at 2 GiB; a head describes weights and never holds them, so
/// a far lower limit keeps a hostile file from making a reader allocate much.
inline constexpr uint64_t kMaxHeadBytes = uint64_t(64) << 20;

inline constexpr char kPlanMagic[9] = "LLMPLAN1";
inline constexpr uint32_t kContainerVersion = 1;

/// The first bytes of a plan file, little-endian.
struct PlanHeader {
  char magic[8];             ///< kPlanMagic without the terminator
  uint32_t containerVersion; ///< kContainerVersion
  uint32_t reserved0;        ///< 0
  uint64_t headSize;         ///< bytes of the flatbuffer, which follows this header
  uint64_t headChecksum;     ///< XXH64, seed 0, of the flatbuffer
  uint64_t fileSize;         ///< bytes of the whole file
  uint64_t reserved1[3];     ///< 0
};
static_assert(sizeof(PlanHeader) == 64, "the head must start 64-byte aligned");

/// Rounds up to a multiple of \p unit, a power of two. \p value must be below 2^64 - unit.
constexpr uint64_t alignUp(uint64_t value, uint64_t unit) {
  return (value + unit - 1) & ~(unit - 1);
}

} // namespace llmrt

#endif // LLMRT_PLAN_PLANFORMAT_H
