//===- StepValues.cpp - Views, linear layers, norms, element by element -----------===//

#include "compiler/passes/raise/Match.h"
#include "compiler/passes/raise/Step.h"
#include "dialects/graph/NodeLocation.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::graph;
using namespace llmc::raise;

Lifted Step::rowsLike(const Axes &axes, Value rows) {
  Lifted result;
  result.kind = Lifted::Rows;
  result.rows = rows;
  result.axes = axes;
  return result;
}

Value Step::materialize(Lifted &view, std::string &problem) {
  AxisGroup features = featuresOf(view.axes);
  mergeNeighbours(features);
  int64_t total = llm::dim(view.rows, 1), count = 1;
  for (const Axis &axis : features)
    count *= axis.size;
  bool isContiguous = features.empty() || (features.size() == 1 && features[0].stride == 1);
  if (isContiguous && count == total)
    return view.rows;
  Location loc = view.rows.getLoc();
  auto type = RankedTensorType::get({ShapedType::kDynamic, count}, builder.getF32Type());
  Value rows;
  if (isContiguous) {
    rows = llm::ColumnsOp::create(builder, loc, type, view.rows,
                                  builder.getI64IntegerAttr(view.offset));
  } else {
    // Runs of columns that a projection writes apart (Q, K and V of each head in turn): take its
    // weight's rows apart instead of its result.
    auto linear = view.rows.getDefiningOp<llm::LinearOp>();
    bool isPlain =
        linear && !linear.getResidual() && features.size() == 2 && features[1].stride == 1;
    if (!isPlain || features[0].size > 256) {
      problem = "features are read in an order other than the one they are stored in";
      return {};
    }
    auto pick = [&](Value weight) -> Value {
      auto own = llm::tensorType(weight);
      SmallVector<int64_t> part(own.getShape()), all(own.getShape());
      part[0] = features[1].size;
      all[0] = count;
      SmallVector<Value> parts;
      for (int64_t i = 0; i < features[0].size; ++i)
        parts.push_back(llm::WeightRowsOp::create(
            builder, loc, RankedTensorType::get(part, own.getElementType()), weight,
            builder.getI64IntegerAttr(view.offset + i * features[0].stride)));
      return llm::WeightConcatOp::create(builder, loc,
                                         RankedTensorType::get(all, own.getElementType()), parts);
    };
    Value bias = linear.getBias() ? pick(linear.getBias()) : Value();
    rows = llm::LinearOp::create(builder, loc, type, linear.getInput(), pick(linear.getWeight()),
                                 bias);
  }
  // The view now is of the new rows, with the strides that its features have there.
  int64_t stride = count;
  for (AxisGroup &group : view.axes)
    for (Axis &axis : group)
      if (axis.kind == AxisKind::Feature) {
        stride /= axis.size;
        axis.stride = stride;
      }
  view.rows = rows;
  view.offset = 0;
  return rows;
}

Value Step::tokenRows(Lifted &view, std::string &problem) {
  if (view.kind != Lifted::Rows || view.axes.empty()) {
    problem = "rows of features, one a token, are expected here";
    return {};
  }
  for (const AxisGroup &group : ArrayRef(view.axes).drop_back())
    for (const Axis &axis : group)
      if (axis.kind != AxisKind::Batch && axis.kind != AxisKind::Fresh) {
        problem = "the last dimension must hold all features of a token";
        return {};
      }
  if (contains({view.axes.back()}, AxisKind::Repeat) ||
      contains({view.axes.back()}, AxisKind::Fresh)) {
    problem = "the last dimension must hold features only";
    return {};
  }
  return materialize(view, problem);
}

Lifted Step::liftView(Operation *op, Value x) {
  Lifted lifted = of(x);
  if (lifted.kind == Lifted::Unknown)
    return lifted.culprit ? lifted : fail(op, lifted.reason);
  auto shapes = shapesOf(op->getResult(0));
  auto axes = shapes ? regroup(lifted.axes, *shapes, samples.samples()) : std::nullopt;
  if (!axes)
    return fail(op,
                "the new shape mixes tokens, heads and features in a way that cannot be followed");
  lifted.axes = *axes;
  return lifted;
}

Lifted Step::liftTranspose(TransposeOp op) {
  Lifted lifted = of(op.getX());
  if (lifted.kind == Lifted::Unknown)
    return lifted.culprit ? lifted : fail(op, lifted.reason);
  if (op.getPerm().size() != lifted.axes.size())
    return fail(op, "perm does not fit the rank of its input");
  Axes axes;
  for (int64_t dim : op.getPerm())
    axes.push_back(lifted.axes[dim]);
  lifted.axes = axes;
  return lifted;
}

Lifted Step::liftExpand(ExpandOp op) {
  Lifted lifted = of(op.getX());
  if (lifted.kind == Lifted::Unknown)
    return lifted.culprit ? lifted : fail(op, lifted.reason);
  auto shapes = shapesOf(op.getY());
  auto axes = shapes ? expandAxes(lifted.axes, *shapes, samples.samples()) : std::nullopt;
  if (!axes)
    return fail(op, "the expansion repeats something other than whole heads");
  lifted.axes = *axes;
  return lifted;
}

Lifted Step::liftSlice(SliceOp op) {
  Lifted lifted = of(op.getX());
  if (lifted.kind == Lifted::Unknown)
    return lifted.culprit ? lifted : fail(op, lifted.reason);
  SmallVector<SmallVector<SliceRange>> ranges;
  auto shapes = shapesOf(op.getX());
  for (unsigned i = 0; shapes && i < samples.samples().size(); ++i) {
    SmallVector<Facts> facts;
    for (Value operand : op->getOperands()) {
      facts.emplace_back();
      facts.back().data = operand == op.getX() ? nullptr : samples.data(operand, i);
    }
    auto range = sliceRanges(op, facts, (*shapes)[i]);
    if (!range || range->size() != lifted.axes.size())
      return fail(op, "the bounds of the slice depend on more than sizes");
    ranges.push_back(*range);
  }
  if (!shapes)
    return fail(op, "the shape of its input is not known");
  for (auto [d, group] : llvm::enumerate(lifted.axes)) {
    bool isFull = true, isLastToken = true, isConstant = true;
    for (auto [sample, range] : llvm::enumerate(ranges)) {
      int64_t dim = (*shapes)[sample][d];
      isFull &= range[d].count == dim && range[d].step == 1;
      isLastToken &= range[d].count == 1 && range[d].start == dim - 1;
      isConstant &= range[d].start == ranges[0][d].start && range[d].count == ranges[0][d].count &&
                    range[d].step == 1;
    }
    if (isFull)
      continue;
    if (isOnly(group, AxisKind::Fresh) && isLastToken && lifted.kind == Lifted::Rows) {
      group.clear();
      lifted.isLast = true;
    } else if (isOnly(group, AxisKind::Feature) && isConstant && lifted.kind == Lifted::Rows) {
      lifted.offset += ranges[0][d].start * group[0].stride;
      group[0].size = ranges[0][d].count;
      if (group[0].size == 1)
        group.clear();
    } else {
      return fail(op, "only whole features, heads, or the last token can be cut out");
    }
  }
  return lifted;
}

Lifted Step::liftSplit(SplitOp op, unsigned index) {
  Lifted lifted = of(op.getX());
  if (lifted.kind != Lifted::Rows)
    return lifted.culprit ? lifted
                          : fail(op, lifted.kind == Lifted::Unknown ? lifted.reason
                                                                    : "only rows can be split");
  auto axis = placeAxis(op.getAxis(), lifted.axes.size());
  if (!axis || !isOnly(lifted.axes[*axis], AxisKind::Feature))
    return fail(op, "only features or heads can be split");
  int64_t start = 0;
  for (unsigned i = 0; i <= index; ++i) {
    auto shapes = shapesOf(op.getParts()[i]);
    if (!shapes)
      return fail(op, "the sizes of the parts depend on more than sizes");
    int64_t size = shapes->front()[*axis];
    if (i == index) {
      Axis &cut = lifted.axes[*axis][0];
      lifted.offset += start * cut.stride;
      cut.size = size;
    }
    start += size;
  }
  return lifted;
}

Lifted Step::liftGather(GatherOp op) {
  auto axis = shapesOf(op.getX()) ? placeAxis(op.getAxis(), shapesOf(op.getX())->front().size())
                                  : std::nullopt;
  Lifted &indices = of(op.getIndices());
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
    axes = {{{AxisKind::Batch}}, {{AxisKind::Fresh}}};
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
  auto axis = shapesOf(op.getY()) ? placeAxis(op.getAxis(), shapesOf(op.getY())->front().size())
                                  : std::nullopt;
  if (!axis || op.getParts().size() != 2)
    return fail(op, "only a cache with its new rows, or two parts of a head, can be joined");
  Lifted first = of(op.getParts()[0]), second = of(op.getParts()[1]);
  // Past and new keys or values.
  if (auto past = dyn_cast<BlockArgument>(op.getParts()[0]); past && first.layer >= 0) {
    if (second.kind != Lifted::Rows)
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
      return first;
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
