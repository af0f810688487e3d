//===- PlanImage.h - a plan file in memory -----------------------------------===//
//
// For tests and small plans: the bytes that PlanWriter would have written, without a file.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_PLAN_PLANIMAGE_H
#define LLMRT_PLAN_PLANIMAGE_H

#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <string>
#include <vector>

namespace llmrt {

struct SegmentImage {
  fbs::SegmentKind kind;
  std::string name;
  std::vector<uint8_t> bytes;
};

/// The bytes of a plan of \p head and \p segments. Nothing is verified: a test may build what a
/// reader must refuse. \p head's format and segments are filled in.
std::vector<uint8_t> buildPlanImage(fbs::PlanT &head, const std::vector<SegmentImage> &segments);

/// The same around a head whose segments and format stand as the caller left them; checksums of
/// the head and header are right, so that a reader gets as far as the damage.
std::vector<uint8_t> wrapHead(const fbs::PlanT &head, const std::vector<SegmentImage> &segments);

} // namespace llmrt

#endif // LLMRT_PLAN_PLANIMAGE_H
