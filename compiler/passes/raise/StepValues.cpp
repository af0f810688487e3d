//===- StepValues.cpp - Embeddings, caches, norms ---------------------------------------===//

#include "compiler/passes/raise/Match.h"
#include "compiler/passes/raise/Step.h"
#include "dialects/graph/NodeLocation.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::graph;
using namespace llmc::raise;

/// One head or feature, chosen by a constant: a slice of size 1, whose dimension goes if the index
/// is a scalar.
Lifted Step::liftPick(GatherOp op, int64_t axis) {
  Lifted lifted = of(op.getX());
  std::optional<int64_t> index;
  const Shape *indexShape = samples.shape(op.getIndices(), 0);
  for (unsigned i = 0; i < samples.samples().size(); ++i) {
    HostArrayRef data = samples.data(op.getIndices(), i);
    const Shape *shape = samples.shape(op.getX(), i);
    if (!data || !shape || data->size() != 1 || !indexShape)
      return fail(op, "only one head or feature, chosen by a constant, can be picked out of rows");
    int64_t at = data->ints[0] < 0 ? data->ints[0] + (*shape)[axis] : data->ints[0];
    if (index && *index != at)
      return fail(op, "only one head or feature, chosen by a constant, can be picked out of rows");
    index = at;
  }
  std::string problem = cut(lifted, axis, *index, 1);
  if (!problem.empty())
    return fail(op, problem);
  if (indexShape->empty())
    lifted.axes.erase(lifted.axes.begin() + axis);
  return lifted;
}

Lifted Step::liftGather(GatherOp op) {
  auto axis = shapesOf(op.getX()) ? placeAxis(op.getAxis(), shapesOf(op.getX())->front().size())
                                  : std::nullopt;
  Lifted &indices = of(op.getIndices());
  if (axis && of(op.getX()).kind == Lifted::Rows)
    return liftPick(op, *axis);
  if (!axis || *axis != 0 || !isWeightLike(op.getX())) {
    if (const Lifted *unknown = firstUnknown(op->getOperands()); unknown && unknown->culprit)
      return *unknown;
    return fail(
        op, "a gather is understood as an embedding only: rows of a weight, by token or position");
  }
  std::string problem;
  Value table = weight(op.getX(), nodeName(op.getLoc()), problem);
  if (!table || llm::tensorType(table).getRank() != 2)
    return fail(op, problem.empty() ? "an embedding's table is a matrix" : problem);
  Value ids = tokens;
  Axes axes = indices.axes;
  if (indices.kind != Lifted::Tokens) {
    auto offset = positionOffset(op.getIndices());
    if (!offset || *offset < 0 || *offset >= llm::dim(table, 0))
      return fail(
          op, "the rows of the table are chosen by something other than token ids or positions");
    ids = positions;
    axes = {batch, {{AxisKind::Fresh}}};
    tableRows = llm::dim(table, 0) - *offset;
    auto shapes = shapesOf(op.getIndices());
    auto grouped = shapes ? regroup(axes, *shapes, samples.samples()) : std::nullopt;
    if (!grouped) // Positions that are the same for the whole batch.
      grouped = shapes && shapes->front().size() == 1
                    ? std::optional<Axes>(Axes{{{AxisKind::Fresh}}})
                    : std::nullopt;
    axes = grouped.value_or(Axes{{}, {{AxisKind::Fresh}}});
    if (*offset > 0) {
      auto type = llm::tensorType(table);
      table = llm::WeightRowsOp::create(
          builder, op.getLoc(),
          RankedTensorType::get({type.getDimSize(0) - *offset, type.getDimSize(1)},
                                type.getElementType()),
          table, builder.getI64IntegerAttr(*offset));
    }
  } else {
    hiddenSize = llm::dim(table, 1);
  }
  auto type =
      RankedTensorType::get({ShapedType::kDynamic, llm::dim(table, 1)}, builder.getF32Type());
  Value rows = llm::EmbeddingOp::create(builder, op.getLoc(), type, ids, table, llm::FormatAttr());
  axes.push_back({{AxisKind::Feature, llm::dim(table, 1), 1}});
  return rowsLike(axes, rows);
}

Lifted Step::liftConcat(ConcatOp op) {
  auto shapes = shapesOf(op.getY());
  auto axis = shapes ? placeAxis(op.getAxis(), shapes->front().size()) : std::nullopt;
  // Parts that are always empty (the rest of a head that is rotated in full) do not count.
  SmallVector<Value> parts;
  for (Value part : op.getParts()) {
    auto own = axis ? shapesOf(part) : std::nullopt;
    if (!own || llvm::any_of(*own, [&](const Shape &shape) { return shape[*axis] != 0; }))
      parts.push_back(part);
  }
  if (axis && parts.size() == 1 && of(parts[0]).kind != Lifted::Unknown)
    return of(parts[0]);
  if (!axis || parts.size() != 2)
    return fail(op, "only a cache with its new rows, or two parts of a head, can be joined");
  Lifted first = of(parts[0]), second = of(parts[1]);
  // Past and new keys or values.
  if (auto past = dyn_cast<BlockArgument>(parts[0]); past && first.layer >= 0) {
    if (second.kind != Lifted::Rows && second.kind != Lifted::Pair)
      return second.culprit ? second
                            : fail(op, "the cache is joined with something that is not rows");
    if (second.axes.size() <= static_cast<size_t>(*axis) ||
        !isOnly(second.axes[*axis], AxisKind::Fresh))
      return fail(op, "the cache must be joined with the new tokens along the sequence");
    Lifted cache = second;
    cache.kind = Lifted::Cache;
    cache.layer = first.layer;
    cache.isKey = first.isKey;
    cache.axes[*axis][0].kind = AxisKind::Keys;
    return cache;
  }
  if (auto pair = liftPair(first, second, *axis))
    return *pair;
  if (first.kind != Lifted::Rows || second.kind != Lifted::Rows) {
    if (const Lifted *unknown = firstUnknown(op->getOperands()); unknown && unknown->culprit)
      return *unknown;
    return fail(op, "only a cache with its new rows, or two parts of a head, can be joined");
  }
  // The rotated part of a head and the rest: llm.rope keeps the rest, so that both are views of its
  // result.
  auto origin = ropeOrigins.find(first.rows);
  bool isRestOfRope = origin != ropeOrigins.end() && second.rows == origin->second.first;
  if (isRestOfRope && first.axes.size() == second.axes.size() &&
      isOnly(first.axes[*axis], AxisKind::Feature) &&
      isOnly(second.axes[*axis], AxisKind::Feature)) {
    Axis &rotated = first.axes[*axis][0];
    Axis rest = second.axes[*axis][0];
    second.axes[*axis] = first.axes[*axis];
    if (second.axes == first.axes && rest.stride == rotated.stride &&
        second.offset == origin->second.second + rotated.size * rotated.stride) {
      rotated.size += rest.size;
      bool fits = first.offset + rotated.size * rotated.stride <= llm::dim(first.rows, 1);
      return fits ? first
                  : fail(op,
                         "the part of a head that is not rotated does not follow the rotated one");
    }
  }
  return fail(op, "only a cache with its new rows, or the two parts of a head around rotary "
                  "embedding, can be joined");
}

Lifted Step::liftNorm(Operation *op, Value x, Value scale, Value bias, int64_t axis,
                      double epsilon) {
  Lifted lifted = of(x);
  if (lifted.kind != Lifted::Rows)
    return lifted.culprit
               ? lifted
               : fail(op, lifted.kind == Lifted::Unknown ? lifted.reason
                                                         : "a norm of something that is not rows");
  int64_t rank = lifted.axes.size();
  if (placeAxis(axis, rank) != rank - 1 || !isOnly(lifted.axes.back(), AxisKind::Feature))
    return fail(op, "a norm must be over the features of the last dimension");
  std::string problem;
  StringRef name = nodeName(op->getLoc());
  Value rows = materialize(lifted, problem);
  Value factor = rows ? weight(scale, name, problem) : Value();
  Value shift = factor && bias ? weight(bias, name, problem) : Value();
  if (!factor || (bias && !shift))
    return fail(op, problem);
  int64_t size = lifted.axes.back()[0].size, total = llm::dim(rows, 1);
  if (lifted.axes.back()[0].stride != 1 ||
      llm::tensorType(factor).getShape() != ArrayRef<int64_t>{size})
    return fail(op, "the scale of a norm must have one element a feature");
  Value result;
  FloatAttr eps = builder.getF64FloatAttr(epsilon);
  if (isa<RmsNormOp>(op)) {
    auto group = size == total ? IntegerAttr() : builder.getI64IntegerAttr(size);
    result = llm::RmsNormOp::create(builder, op->getLoc(), rows.getType(), rows, factor, eps,
                                    UnitAttr(), group);
  } else {
    if (size != total)
      return fail(op, "a layer norm of each head is not supported");
    result =
        llm::LayerNormOp::create(builder, op->getLoc(), rows.getType(), rows, factor, shift, eps);
  }
  lifted.rows = result;
  return lifted;
}
