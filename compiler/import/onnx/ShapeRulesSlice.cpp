//===- ShapeRulesSlice.cpp - parts of tensors, padding, ranges ----------------===//
#include "compiler/import/onnx/ShapeRules.h"

#include "llvm/Support/MathExtras.h"

using namespace llmc::onnx;
using namespace llmc::graph;
using namespace mlir;
using llvm::Twine;

LogicalResult ShapeRules::rule(SplitOp op) {
  auto from = shape(op.getX());
  if (!from)
    return unknown();
  auto at = axis(static_cast<int64_t>(op.getAxis()), static_cast<int64_t>(from->size()));
  if (!at)
    return failure();
  int64_t parts = static_cast<int64_t>(op.getNumResults());
  Dim whole = (*from)[*at];
  const Dims *sizes = op.getSizes() ? known.elements(op.getSizes()) : nullptr;
  if (sizes && static_cast<int64_t>(sizes->size()) != parts)
    return report(Twine(sizes->size()) + " sizes for " + Twine(parts) + " parts");
  int64_t chunk = whole.isNumber() ? llvm::divideCeil(whole.value, parts) : 0, total = 0;
  for (int64_t i = 0; i < parts; ++i) {
    Dims dims = *from;
    if (op.getSizes())
      dims[*at] = sizes ? (*sizes)[i] : Dim();
    else if (whole.isNumber())
      dims[*at] = Dim::number(std::clamp<int64_t>(whole.value - i * chunk, 0, chunk));
    else
      dims[*at] = parts == 1 ? whole : Dim();
    if (dims[*at].isNumber() &&
        (dims[*at].value < 0 || llvm::AddOverflow(total, dims[*at].value, total)))
      return report("the sizes " + toString(*sizes) + " are not those of a split");
    results[i] = std::move(dims);
  }
  if (sizes && whole.isNumber() && llvm::all_of(*sizes, [](Dim dim) { return dim.isNumber(); }) &&
      total != whole.value)
    return report("the sizes " + toString(*sizes) + " don't add up to " + Twine(whole.value));
  return success();
}

/// Elements of start, start + step, ... before end of a dimension, as ONNX clamps the bounds.
static int64_t sliceLength(int64_t size, int64_t start, int64_t end, int64_t step) {
  if (size == 0)
    return 0;
  auto fromFront = [&](int64_t bound) { return bound < 0 ? bound + size : bound; };
  start = fromFront(start);
  end = fromFront(end);
  if (step > 0) {
    start = std::clamp<int64_t>(start, 0, size);
    end = std::clamp<int64_t>(end, 0, size);
    return start < end ? (end - start - 1) / step + 1 : 0;
  }
  start = std::clamp<int64_t>(start, 0, size - 1);
  end = std::clamp<int64_t>(end, -1, size - 1);
  // -step overflows for INT64_MIN, and one element is then all that fits.
  return end < start ? (step == INT64_MIN ? 1 : (start - end - 1) / -step + 1) : 0;
}

LogicalResult ShapeRules::rule(SliceOp op) {
  auto dims = shape(op.getX());
  if (!dims)
    return unknown();
  int64_t rank = static_cast<int64_t>(dims->size());
  std::optional<llvm::SmallVector<int64_t>> list;
  if (op.getAxes()) {
    list = known.numbers(op.getAxes());
  } else if (auto count = length(op.getStarts()); count && *count <= rank) {
    list = llvm::to_vector(llvm::seq<int64_t>(*count));
  }
  if (!list)
    return set(Dims(rank));
  auto places = axes(*list, rank);
  if (!places)
    return failure();
  const Dims *starts = known.elements(op.getStarts()), *ends = known.elements(op.getEnds());
  const Dims *steps = op.getSteps() ? known.elements(op.getSteps()) : nullptr;
  for (const Dims *bounds : {starts, ends, steps})
    if (bounds && bounds->size() != places->size())
      return report(Twine(bounds->size()) + " bounds for " + Twine(places->size()) + " axes");
  for (size_t i = 0; i < places->size(); ++i) {
    Dim &dim = (*dims)[(*places)[i]];
    Dim start = starts ? (*starts)[i] : Dim(), end = ends ? (*ends)[i] : Dim();
    Dim step = !op.getSteps() ? Dim::number(1) : steps ? (*steps)[i] : Dim();
    if (step.is(0))
      return report("a step of 0");
    bool toEnd = end.same(dim) || (end.isNumber() && end.value >= INT32_MAX);
    if (dim.isNumber() && start.isNumber() && end.isNumber() && step.isNumber())
      dim = Dim::number(sliceLength(dim.value, start.value, end.value, step.value));
    else if (dim.isNumber() || !(start.is(0) && step.is(1) && toEnd))
      dim = Dim();
  }
  return set(std::move(*dims));
}

LogicalResult ShapeRules::rule(PadOp op) {
  auto dims = shape(op.getX());
  if (!dims)
    return unknown();
  int64_t rank = static_cast<int64_t>(dims->size());
  auto list = op.getAxes() ? known.numbers(op.getAxes())
                           : std::optional(llvm::to_vector<6>(llvm::seq<int64_t>(rank)));
  auto pads = known.numbers(op.getPads());
  if (!list || !pads)
    return set(Dims(rank));
  auto places = axes(*list, rank);
  if (!places)
    return failure();
  if (pads->size() != 2 * places->size())
    return report(Twine(pads->size()) + " pads for " + Twine(places->size()) + " axes");
  for (size_t i = 0; i < places->size(); ++i) {
    Dim &dim = (*dims)[(*places)[i]];
    Dim both = sum(Dim::number((*pads)[i]), Dim::number((*pads)[i + places->size()]));
    dim = both.is(0) ? dim : dim.isNumber() ? sum(dim, both) : Dim();
  }
  return set(std::move(*dims));
}

LogicalResult ShapeRules::rule(RangeOp op) {
  auto one = [&](Value value) -> Dim {
    const Dims *elements = known.elements(value);
    return elements && elements->size() == 1 ? elements->front() : Dim();
  };
  Dim start = one(op.getStart()), limit = one(op.getLimit()), step = one(op.getStep());
  if (step.is(0))
    return report("a step of 0");
  // A count of tokens: 0 to n, or past to past + n.
  if (step.is(1) && limit.kind == Dim::Symbol)
    return set({known.difference(limit, start)});
  int64_t span;
  if (!start.isNumber() || !limit.isNumber() || !step.isNumber() || step.value == INT64_MIN ||
      llvm::SubOverflow(limit.value, start.value, span) || span == INT64_MIN)
    return set({Dim()});
  bool isForward = (span > 0) == (step.value > 0);
  int64_t whole = span / step.value + (span % step.value != 0);
  return set({Dim::number(span == 0 || !isForward ? 0 : whole)});
}
