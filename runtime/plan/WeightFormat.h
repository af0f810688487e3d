//===- WeightFormat.h - how many bytes a stored weight takes -----------------===//
//
// The one place that turns a weight's format and shape into bytes; the compiler sizes segments
// with it, the verifier refuses any other size, and kernels may rely on it.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_PLAN_WEIGHTFORMAT_H
#define LLMRT_PLAN_WEIGHTFORMAT_H

#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <optional>
#include <string>

namespace llmrt {

/// Rows of a tile in the packings N16 and N16K4.
inline constexpr uint64_t kTileRows = 16;
/// The largest group along K, and the largest number of elements along K that one row may have.
inline constexpr uint64_t kMaxGroup = uint64_t(1) << 20;

/// Bits of one element; 0 for a value that is no ElementType.
unsigned elementBits(fbs::ElementType type);
/// "f32", "i4", ...; "?" for a value that is no ElementType.
const char *elementName(fbs::ElementType type);

/// A WeightFormat as plain values: fbs::WeightFormatT and fbs::WeightFormat both convert to it.
struct WeightFormat {
  fbs::ElementType element = fbs::ElementType::F32;
  fbs::Packing packing = fbs::Packing::Rows;
  uint32_t group = 0;
  fbs::ElementType scale = fbs::ElementType::F32;
  bool hasMin = false;
  fbs::ElementType min = fbs::ElementType::F32;

  WeightFormat() = default;
  WeightFormat(const fbs::WeightFormat &f)
      : element(f.element()), packing(f.packing()), group(f.group()), scale(f.scale()),
        hasMin(f.has_min()), min(f.min()) {}
  WeightFormat(const fbs::WeightFormatT &f)
      : element(f.element), packing(f.packing), group(f.group), scale(f.scale), hasMin(f.has_min),
        min(f.min) {}

  /// A short name: "f32", "bf16.n16", "i4.g32.f16", "i4.g32.f16.min".
  std::string name() const;
};

/// Bytes of a [rows, columns] weight; nothing if the format isn't one that a plan may hold or the
/// size doesn't fit 64 bits. N = rows rounded up to 16, what pads N and K is zero:
///
///   Rows          rows * columns elements; i4: two a byte, each row on its own bytes
///   N16 f32, f16  [N/16][columns][16]
///   N16 bf16      [N/16][K/2][16][2], K = columns rounded up to 2
///   N16K4         [N/16][K/group] { group * 16 elements, 16 scales, 16 minimums if has_min },
///                 K = columns rounded up to group; group a multiple of 8 (i4, e2m1) or 4 (i8);
///                 e2m1 with scales of e8m0 and no minimums, neither of them anywhere else
std::optional<uint64_t> packedBytes(const WeightFormat &format, uint64_t rows, uint64_t columns);

} // namespace llmrt

#endif // LLMRT_PLAN_WEIGHTFORMAT_H
