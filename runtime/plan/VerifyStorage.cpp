// The parts of the verifier that look at bytes: segments, weights, the arena, outputs.
#include "runtime/plan/ArenaLayout.h"
#include "runtime/plan/CheckedMath.h"
#include "runtime/plan/PlanFormat.h"
#include "runtime/plan/VerifyParts.h"
#include "runtime/plan/WeightFormat.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace llmrt::verify {

using fbs::SegmentKind;

/// Segments follow one another in file order, each on a page, and end where the file ends, so that
/// every byte of the file belongs to the head, to one segment or to padding that must be zero.
static Status segments(const fbs::Plan &plan, uint64_t headSize, uint64_t fileSize) {
  UniqueNames names;
  uint64_t end = sizeof(PlanHeader) + headSize; // of what came before
  if (fileSize > std::numeric_limits<uint64_t>::max() - kPlanPage)
    return invalidFile("the file is too large");
  for (uint32_t i = 0; i < plan.segments()->size(); ++i) {
    const fbs::Segment &s = *plan.segments()->Get(i);
    auto fail = [&](const std::string &what) {
      return invalidFile(at("segments", i, s.name()) + what);
    };
    if (!isName(s.name()))
      return fail("has no printable name");
    if (!names.add(s.name()))
      return fail("the name is used twice");
    if (s.kind() > SegmentKind::Auxiliary)
      return fail("unknown kind " + num(static_cast<uint64_t>(s.kind())));
    if (s.offset() % kPlanPage != 0)
      return fail("offset " + num(s.offset()) + " is no multiple of " + num(kPlanPage));
    if (s.offset() > fileSize || s.size() > fileSize - s.offset())
      return fail("bytes " + num(s.offset()) + " + " + num(s.size()) + " lie outside the file of " +
                  num(fileSize));
    // Before the first segment there may be room that the writer kept for the head.
    bool inPlace = i == 0 ? s.offset() >= end && s.offset() <= kMaxHeadBytes + kPlanPage
                          : s.offset() == alignUp(end, kPlanPage);
    if (!inPlace)
      return fail("starts at " + num(s.offset()) + ", what comes before it ends at " + num(end));
    end = s.offset() + s.size();
  }
  if (alignUp(end, kPlanPage) != fileSize)
    return invalidFile("segments end at " + num(end) + ", the file has " + num(fileSize) +
                       " bytes");
  return Status::ok();
}

/// Names of weights and buffers are labels: commands refer to them by index.
static Status weights(const fbs::Plan &plan) {
  struct Extent {
    uint32_t segment, index;
    uint64_t begin, end;
  };
  std::vector<Extent> extents;
  for (uint32_t i = 0; i < plan.weights()->size(); ++i) {
    const fbs::Weight &w = *plan.weights()->Get(i);
    auto fail = [&](const std::string &what) {
      return invalidFile(at("weights", i, w.name()) + what);
    };
    if (!isName(w.name()))
      return fail("has no printable name");
    if (!w.format())
      return fail("has no format");
    if (w.segment() >= plan.segments()->size())
      return fail("segment " + num(w.segment()) + " of " + num(plan.segments()->size()));
    const fbs::Segment &s = *plan.segments()->Get(w.segment());
    if (s.kind() != SegmentKind::Weights)
      return fail("segment '" + s.name()->str() + "' doesn't hold weights");
    if (w.offset() % kPlanAlignment != 0)
      return fail("offset " + num(w.offset()) + " is no multiple of " + num(kPlanAlignment));
    auto bytes = packedBytes(WeightFormat(*w.format()), w.rows(), w.columns());
    if (!bytes)
      return fail("no format for " + num(w.rows()) + " x " + num(w.columns()) +
                  " weights: " + WeightFormat(*w.format()).name());
    if (*bytes != w.size())
      return fail("has " + num(w.size()) + " bytes, " + num(w.rows()) + " x " + num(w.columns()) +
                  " of " + WeightFormat(*w.format()).name() + " take " + num(*bytes));
    if (w.offset() > s.size() || w.size() > s.size() - w.offset())
      return fail("bytes " + num(w.offset()) + " + " + num(w.size()) + " lie outside segment '" +
                  s.name()->str() + "' of " + num(s.size()));
    extents.push_back({w.segment(), i, w.offset(), w.offset() + w.size()});
  }
  std::sort(extents.begin(), extents.end(), [](const Extent &a, const Extent &b) {
    return std::tie(a.segment, a.begin) < std::tie(b.segment, b.begin);
  });
  for (size_t i = 1; i < extents.size(); ++i) {
    const Extent &a = extents[i - 1], &b = extents[i];
    if (a.segment == b.segment && b.begin < a.end)
      return invalidFile(at("weights", b.index, plan.weights()->Get(b.index)->name()) +
                         "overlaps weight '" + plan.weights()->Get(a.index)->name()->str() + "'");
  }
  return Status::ok();
}

// Both are affine and S, R, Q lie in [0, T], so the smallest difference for a given T takes each of
// those at 0 or T, and is linear in T: it suffices to look at both ends. int128 holds any sum of
// five products of an int64 and a count.
bool fits(const fbs::Affine &need, const fbs::Affine &have, int64_t maxTokens) {
  auto least = [](int64_t h, int64_t n) { return std::min<__int128>(0, __int128(h) - n); };
  __int128 constant = __int128(have.constant()) - need.constant();
  __int128 perToken = __int128(have.per_token()) - need.per_token() +
                      least(have.per_sequence(), need.per_sequence()) +
                      least(have.per_row(), need.per_row()) +
                      least(have.per_tile(), need.per_tile());
  return constant + perToken >= 0 && constant + perToken * maxTokens >= 0;
}

static Status arena(const fbs::Plan &plan, const StepDims &limits) {
  Checked total(0);
  for (uint32_t i = 0; i < plan.arena_slots()->size(); ++i) {
    const fbs::Affine *size = plan.arena_slots()->Get(i)->size();
    auto bytes = size ? evaluateChecked(*size, limits) : std::nullopt;
    if (!bytes || *bytes > kMaxArenaBytes)
      return invalidFile(at("arena_slots", i) + "the size is missing, negative or beyond " +
                         num(kMaxArenaBytes) + " bytes at the plan's limits");
    total = total + Checked(*bytes).roundUp(kPlanAlignment);
    if (*total.get() > kMaxArenaBytes)
      return invalidFile("the arena takes more than " + num(kMaxArenaBytes) +
                         " bytes at the plan's limits");
  }
  for (uint32_t i = 0; i < plan.buffers()->size(); ++i) {
    const fbs::Buffer &b = *plan.buffers()->Get(i);
    auto fail = [&](const std::string &what) {
      return invalidFile(at("buffers", i, b.name()) + what);
    };
    if (!isName(b.name()))
      return fail("has no printable name");
    if (b.slot() >= plan.arena_slots()->size())
      return fail("slot " + num(b.slot()) + " of " + num(plan.arena_slots()->size()));
    if (!b.size() || !evaluateChecked(*b.size(), limits))
      return fail("the size is missing, negative or too large");
    if (!fits(*b.size(), *plan.arena_slots()->Get(b.slot())->size(), limits.T))
      return fail("is larger than its slot " + num(b.slot()));
  }
  return Status::ok();
}

static Status outputs(const fbs::Plan &plan, const StepDims &limits) {
  UniqueNames names;
  for (uint32_t i = 0; i < plan.outputs()->size(); ++i) {
    const fbs::Output &o = *plan.outputs()->Get(i);
    auto fail = [&](const std::string &what) {
      return invalidFile(at("outputs", i, o.name()) + what);
    };
    if (!isName(o.name()))
      return fail("has no printable name");
    if (!names.add(o.name()))
      return fail("the name is used twice");
    if (elementBits(o.element()) == 0)
      return fail("unknown element type " + num(static_cast<uint64_t>(o.element())));
    auto bytes = o.size() ? evaluateChecked(*o.size(), limits) : std::nullopt;
    if (!bytes || *bytes > kMaxArenaBytes)
      return fail("the size is missing, negative or beyond " + num(kMaxArenaBytes) + " bytes");
    if (o.columns() == 0 || o.columns() > kMaxDimension)
      return fail("has " + num(o.columns()) + " columns");
  }
  if (plan.outputs()->size() == 0)
    return invalidFile("outputs: there is none, expected logits");
  const fbs::Output &logits = *plan.outputs()->Get(0);
  uint64_t vocab = plan.model()->vocab_size();
  if (logits.element() != fbs::ElementType::F32 || logits.columns() != vocab)
    return invalidFile("outputs[0] must be f32 logits of " + num(vocab) + " columns, not " +
                       elementName(logits.element()) + " of " + num(logits.columns()));
  const fbs::Affine &size = *logits.size();
  if (size.constant() != 0 || size.per_token() != 0 || size.per_sequence() != 0 ||
      size.per_tile() != 0 || static_cast<uint64_t>(size.per_row()) != 4 * vocab)
    return invalidFile("outputs[0]: logits must take " + num(4 * vocab) +
                       " bytes a row and no more");
  return Status::ok();
}

Status storage(const fbs::Plan &plan, uint64_t headSize, uint64_t fileSize) {
  if (plan.main()) {
    LLMRT_RETURN_IF_ERROR(segments(plan, headSize, fileSize));
    return weights(plan);
  }
  // Not stepLimits(): a caller may evaluate with any S and R up to the limits, whatever its T.
  StepDims limits = stepLimits(*plan.limits());
  limits.S = plan.limits()->max_sequences();
  limits.R = plan.limits()->max_rows();
  LLMRT_RETURN_IF_ERROR(segments(plan, headSize, fileSize));
  LLMRT_RETURN_IF_ERROR(weights(plan));
  LLMRT_RETURN_IF_ERROR(arena(plan, limits));
  return outputs(plan, limits);
}

} // namespace llmrt::verify
