//===- StepViews.cpp - Reshapes, transposes, slices: the same rows seen otherwise -----===//

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
  std::vector<int64_t> place = {view.offset};
  for (const Axis &axis : features)
    place.insert(place.end(), {axis.size, axis.stride});
  Value &known = materialized[{view.rows.getAsOpaquePointer(), place}];
  Value rows = known;
  if (rows) {
    // The same view was asked for before.
  } else if (isContiguous) {
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
  known = rows;
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

/// The shapes that a pair's first part has where both parts have the given ones: the dimension that
/// holds both is the only one of its size.
static std::optional<SmallVector<Shape>> withoutTail(SmallVector<Shape> shapes,
                                                     const Lifted &pair) {
  auto sizeOf = [](const Lifted &part) {
    for (const AxisGroup &group : llvm::reverse(part.axes))
      if (isOnly(group, AxisKind::Feature) && group[0].stride == 1)
        return group[0].size;
    return int64_t(0);
  };
  const int64_t first = sizeOf(pair), both = first + sizeOf(*pair.tail);
  std::optional<size_t> found;
  for (size_t dim = 0; dim < shapes[0].size(); ++dim) {
    if (!llvm::all_of(shapes, [&](const Shape &shape) { return shape[dim] == both; }))
      continue;
    if (found)
      return std::nullopt;
    found = dim;
  }
  if (!found)
    return std::nullopt;
  for (Shape &shape : shapes)
    shape[*found] = first;
  return shapes;
}

Lifted Step::liftView(Operation *op, Value x) {
  Lifted lifted = of(x);
  if (lifted.kind == Lifted::Unknown)
    return lifted.culprit ? lifted : fail(op, lifted.reason);
  auto shapes = shapesOf(op->getResult(0));
  if (shapes && lifted.tail)
    shapes = withoutTail(*shapes, lifted);
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

std::string Step::cut(Lifted &lifted, size_t dim, int64_t start, int64_t count) {
  if (lifted.kind != Lifted::Rows || !isOnly(lifted.axes[dim], AxisKind::Feature))
    return "only features or heads of rows can be cut out";
  // Cutting a part out of a part: the outer one becomes rows of its own, so that a head is known as
  // such.
  std::string problem;
  if (featureCount(lifted.axes) != llm::dim(lifted.rows, 1) && !materialize(lifted, problem))
    return problem;
  Axis &axis = lifted.axes[dim][0];
  if (start < 0 || count < 0 || start + count > axis.size)
    return "the part lies outside of its input";
  lifted.offset += start * axis.stride;
  axis.size = count;
  if (count == 1)
    lifted.axes[dim].clear();
  return {};
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
  for (size_t d = 0; d < lifted.axes.size(); ++d) {
    AxisGroup &group = lifted.axes[d];
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
    } else if (isConstant) {
      std::string problem = cut(lifted, d, ranges[0][d].start, ranges[0][d].count);
      if (!problem.empty())
        return fail(op, problem);
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
  if (!axis)
    return fail(op, "its axis is out of range");
  int64_t start = 0;
  for (unsigned i = 0; i <= index; ++i) {
    auto shapes = shapesOf(op.getParts()[i]);
    if (!shapes)
      return fail(op, "the sizes of the parts depend on more than sizes");
    int64_t size = shapes->front()[*axis];
    if (i == index) {
      std::string problem = cut(lifted, *axis, start, size);
      if (!problem.empty())
        return fail(op, problem);
    }
    start += size;
  }
  return lifted;
}
