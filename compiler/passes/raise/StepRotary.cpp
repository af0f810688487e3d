//===- StepRotary.cpp - Rotary embedding: heads and angles -------------------------===//

#include "compiler/passes/raise/Match.h"
#include "compiler/passes/raise/Step.h"
#include "dialects/graph/NodeLocation.h"

#include <cmath>
#include <utility>

using namespace mlir;
using namespace llmc;
using namespace llmc::graph;
using namespace llmc::raise;

std::optional<int64_t> Step::positionOffset(Value value) {
  std::optional<int64_t> offset;
  for (auto [index, sample] : llvm::enumerate(samples.samples())) {
    HostArrayRef data = samples.data(value, index);
    if (!data || data->isFloat() || data->size() == 0 || data->size() % sample.fresh != 0)
      return std::nullopt;
    for (int64_t i = 0; i < data->size(); ++i) {
      int64_t difference = data->ints[i] - (sample.past + i % sample.fresh);
      if (offset && *offset != difference)
        return std::nullopt;
      offset = difference;
    }
  }
  return offset;
}

/// Columns from one head to the next in a view whose last dimension is (part of) a head.
static int64_t headStride(const Lifted &view) {
  AxisGroup features = featuresOf(view.axes);
  if (features.size() > 1)
    return features[features.size() - 2].stride;
  // One head: the rows themselves, if the view starts at their first column, else just what is
  // seen.
  return view.offset == 0 ? llm::dim(view.rows, 1) : features.back().size;
}

Lifted Step::liftRotary(RotaryEmbeddingOp op) {
  Lifted lifted = of(op.getX());
  if (lifted.kind != Lifted::Rows)
    return lifted.culprit
               ? lifted
               : fail(op, lifted.kind == Lifted::Unknown ? lifted.reason : "its input is not rows");
  if (auto part = liftPartRotation(op, lifted))
    return *part;
  if (lifted.axes.empty() || !isOnly(lifted.axes.back(), AxisKind::Feature) ||
      lifted.axes.back()[0].stride != 1)
    return fail(op, "the last dimension must hold the elements of a head");
  std::string problem;
  bool isFolded = lifted.axes.size() == 3 && op.getNumHeads() > 0;
  if (headStride(lifted) <= 0)
    return fail(op, "the heads of its input are empty");
  // Part of a head is rotated where it stands if the rest is put back behind it; else it is a head
  // of its own.
  bool isPartOfHead = llvm::any_of(op->getUsers(), [&](Operation *user) {
    auto concat = dyn_cast<ConcatOp>(user);
    return concat && concat.getParts().front() == op.getY();
  });
  bool isWhole = lifted.offset % headStride(lifted) == 0 && isPartOfHead;
  if (!isFolded && !isWhole && !materialize(lifted, problem))
    return fail(op, problem);
  // The view of whole heads; the rotated part starts each.
  Lifted whole = lifted;
  int64_t last = lifted.axes.back()[0].size, headSize, rotated;
  if (isFolded) {
    int64_t heads = op.getNumHeads();
    if (last % heads != 0)
      return fail(op, "num_heads does not divide the number of features");
    headSize = last / heads;
    rotated = op.getRotaryDim() ? static_cast<int64_t>(op.getRotaryDim()) : headSize;
  } else {
    headSize = headStride(lifted);
    whole.axes.back()[0].size = headSize;
    rotated = op.getRotaryDim() ? static_cast<int64_t>(op.getRotaryDim()) : last;
    if (op.getRotaryDim())
      lifted = whole;
  }
  if (lifted.offset % headSize != 0 || rotated > headSize)
    return fail(op, "the rotated elements must be the first of each head");
  Value origin = whole.rows;
  int64_t originOffset = whole.offset;
  Value rows = materialize(whole, problem);
  if (!rows)
    return fail(op, problem);
  if (whole.axes.back()[0].size != headSize && lifted.axes.size() != 3)
    return fail(op, "heads are not stored one after the other");
  Value table = angles(op, op.getCos(), op.getSin(), op.getPositionIds(), rotated,
                       op.getInterleaved(), problem);
  if (!table)
    return fail(op, problem);
  Lifted result = whole;
  result.rows = rotate(op, rows, table, llm::dim(rows, 1) / headSize, op.getInterleaved());
  result.axes.back()[0].size = lifted.axes.back()[0].size;
  ropeOrigins[result.rows] = {origin, originOffset};
  return result;
}

Value Step::rotate(Operation *op, Value rows, Value table, int64_t heads, bool isInterleaved) {
  rotarySize = 2 * llm::dim(table, 2);
  return llm::RopeOp::create(builder, op->getLoc(), rows.getType(), rows, table,
                             builder.getI64IntegerAttr(heads),
                             isInterleaved ? builder.getUnitAttr() : UnitAttr());
}

Value Step::angles(Operation *op, Value cos, Value sin, Value positionIds, int64_t rotary,
                   bool isInterleaved, std::string &problem) {
  if (rotary <= 0 || rotary % 2 != 0) {
    problem = llvm::formatv("{0} elements of a head cannot be rotated in pairs", rotary);
    return {};
  }
  if (positionIds) {
    if (positionOffset(positionIds) != 0) {
      problem = "its position_ids are not the tokens' positions";
      return {};
    }
    return anglesFromTables(op, cos, sin, rotary, problem);
  }
  // Rows of a table, chosen by position, perhaps behind a few views.
  auto table = [&](Value value) -> Value {
    while (Operation *producer = value.getDefiningOp()) {
      if (auto gather = dyn_cast<GatherOp>(producer))
        return gather.getAxis() == 0 && isWeightLike(gather.getX()) &&
                       positionOffset(gather.getIndices()) == 0
                   ? gather.getX()
                   : Value();
      if (!isa<CastOp, UnsqueezeOp, SqueezeOp, ReshapeOp>(producer))
        return {};
      value = producer->getOperand(0);
    }
    return {};
  };
  if (Value cosTable = table(cos), sinTable = cosTable ? table(sin) : Value(); sinTable)
    return anglesFromTables(op, cosTable, sinTable, rotary, problem);
  return anglesFromFrequencies(op, cos, sin, rotary, isInterleaved, problem);
}

/// What the branch gives for \p value, a result of an If; 0 is the one of a true condition.
static Value fromBranch(Value value, unsigned branch) {
  auto choice = value.getDefiningOp<IfOp>();
  return choice ? choice->getRegion(branch).front().getTerminator()->getOperand(
                      cast<OpResult>(value).getResultNumber())
                : value;
}

int64_t Step::tableColumns(Value table) {
  auto type = dyn_cast<RankedTensorType>(fromBranch(table, 0).getType());
  return type && type.getRank() == 2 ? type.getDimSize(1) : 0;
}

std::optional<int64_t> Step::lengthLimit(Value condition, unsigned &longBranch) {
  auto compare = condition.getDefiningOp<CompareOp>();
  if (!compare)
    return std::nullopt;
  // total > n, total >= n + 1, n < total, ... of the context with the new tokens.
  auto isTotal = [&](Value value) {
    for (auto [index, sample] : llvm::enumerate(samples.samples())) {
      HostArrayRef total = samples.data(value, index);
      if (!total || total->isFloat() || total->size() != 1 || total->ints[0] != sample.total())
        return false;
    }
    return true;
  };
  Value a = compare.getA(), b = compare.getB();
  CompareKind kind = compare.getKind();
  if (isTotal(b)) {
    std::swap(a, b);
    kind = kind == CompareKind::Gt   ? CompareKind::Lt
           : kind == CompareKind::Ge ? CompareKind::Le
           : kind == CompareKind::Lt ? CompareKind::Gt
           : kind == CompareKind::Le ? CompareKind::Ge
                                     : kind;
  }
  HostArrayRef number = samples.constant(b);
  if (!isTotal(a) || !number || number->isFloat() || number->size() != 1)
    return std::nullopt;
  longBranch = kind == CompareKind::Gt || kind == CompareKind::Ge ? 0 : 1;
  const int64_t n = number->ints[0];
  if (n < 2 || n > INT32_MAX)
    return std::nullopt;
  switch (kind) {
  case CompareKind::Gt:
  case CompareKind::Le:
    return n;
  case CompareKind::Ge:
  case CompareKind::Lt:
    return n - 1;
  default:
    return std::nullopt;
  }
}

Value Step::anglesByLength(Operation *op, Value cos, Value sin, int64_t rotary,
                           std::string &problem) {
  auto choice = cos.getDefiningOp<IfOp>();
  unsigned longBranch = 0;
  std::optional<int64_t> limit = sin.getDefiningOp<IfOp>() == choice
                                     ? lengthLimit(choice.getCondition(), longBranch)
                                     : std::nullopt;
  if (!limit || (originalContext && originalContext != *limit)) {
    problem = "its cosines and sines are chosen by a condition that is not one length of the "
              "context which all layers share";
    return {};
  }
  const int64_t rows = std::exchange(tableRows, 0);
  Value brief = anglesFromTables(op, fromBranch(cos, 1 - longBranch),
                                 fromBranch(sin, 1 - longBranch), rotary, problem);
  if (!brief)
    return {};
  if (tableRows < *limit) {
    problem = llvm::formatv("its tables for contexts of up to {0} tokens have {1} rows", *limit,
                            tableRows);
    return {};
  }
  tableRows = rows; // longer contexts never read that table
  Value extended = anglesFromTables(op, fromBranch(cos, longBranch), fromBranch(sin, longBranch),
                                    rotary, problem);
  if (!extended)
    return {};
  originalContext = *limit;
  Value &known = selectedAngles[{brief, extended}];
  if (!known)
    known = llm::RopeSelectOp::create(builder, op->getLoc(), brief.getType(), brief, extended);
  return known;
}

Value Step::anglesFromTables(Operation *op, Value cos, Value sin, int64_t rotary,
                             std::string &problem) {
  if (cos.getDefiningOp<IfOp>())
    return anglesByLength(op, cos, sin, rotary, problem);
  StringRef name = nodeName(op->getLoc());
  Value cosTable = weight(cos, name, problem),
        sinTable = cosTable ? weight(sin, name, problem) : Value();
  if (!sinTable)
    return {};
  auto type = llm::tensorType(cosTable);
  if (type.getRank() != 2 || type.getDimSize(1) != rotary / 2 || sinTable.getType() != type) {
    problem = llvm::formatv("the tables of cosines and sines must be [positions, {0}]", rotary / 2);
    return {};
  }
  Value &known = tableAngles[{cosTable, sinTable}];
  tableRows = tableRows ? std::min(tableRows, type.getDimSize(0)) : type.getDimSize(0);
  if (!known)
    known = llm::RopeGatherOp::create(
        builder, op->getLoc(),
        RankedTensorType::get({ShapedType::kDynamic, 2, rotary / 2}, builder.getF32Type()),
        positions, cosTable, sinTable);
  return known;
}

namespace {

/// Cosines and sines at all samples, as functions of the position.
struct AngleData {
  SmallVector<HostArrayRef> cos, sin;
  int64_t half;
  bool isInterleaved;

  /// Calls f(position, i, cos, sin) for every element that was computed; false as soon as f is.
  bool forEach(ArrayRef<Sample> samples,
               llvm::function_ref<bool(int64_t, int64_t, double, double)> f) const {
    for (auto [sample, c, s] : llvm::zip(samples, cos, sin)) {
      int64_t width = c->shape.back();
      for (int64_t k = 0; k < c->size(); ++k) {
        int64_t column = k % width;
        int64_t i = width == half ? column : isInterleaved ? column / 2 : column % half;
        if (!f(sample.past + k / width % sample.fresh, i, c->floats[k], s->floats[k]))
          return false;
      }
    }
    return true;
  }
};

} // namespace

/// The base of which the frequencies are the powers base^(-2i / rotary), or 0.
static double baseOf(ArrayRef<float> frequencies) {
  size_t half = frequencies.size();
  if (half < 2 || !(frequencies[half - 1] > 0))
    return 0;
  double base = std::pow(frequencies[half - 1], -static_cast<double>(half) / (half - 1));
  for (size_t i = 0; i < half; ++i)
    if (!isNear(frequencies[i], std::pow(base, -static_cast<double>(i) / half), 1e-4))
      return 0;
  // Bases are round numbers; the last frequency gives them to some seven digits.
  return isNear(base, std::round(base), 1e-5) ? std::round(base) : base;
}

Value Step::anglesFromFrequencies(Operation *op, Value cos, Value sin, int64_t rotary,
                                  bool isInterleaved, std::string &problem) {
  AngleData data{{}, {}, rotary / 2, isInterleaved};
  for (auto [index, sample] : llvm::enumerate(samples.samples())) {
    HostArrayRef c = samples.data(cos, index), s = samples.data(sin, index);
    if (!c || !s || !c->isFloat() || !s->isFloat() || c->shape.empty() || c->shape != s->shape) {
      problem = "its cosines and sines depend on more than the tokens' positions";
      return {};
    }
    int64_t width = c->shape.back();
    if ((width != rotary && width != rotary / 2) || c->size() % (width * sample.fresh) != 0) {
      problem = "its cosines and sines do not have one row a token";
      return {};
    }
    data.cos.push_back(c);
    data.sin.push_back(s);
  }
  double scale = 0;
  data.forEach(samples.samples(), [&](int64_t position, int64_t, double c, double s) {
    scale = std::hypot(c, s);
    return false;
  });
  Type element = data.cos.front()->type;
  // An f32 cosine of the same f32 angle has the same bits but for its rounding; half types keep 3
  // digits.
  double tolerance = element.isF32() || element.isF64() ? 2e-6 * std::max(scale, 1.0)
                                                        : 1e-2 * std::max(scale, 1.0);
  bool isHalf = !element.isF32() && !element.isF64();
  scale = isNear(scale, 1.0, isHalf ? 2e-3 : 1e-6) ? 1.0 : scale;
  auto fits = [&](ArrayRef<float> f) {
    return data.forEach(samples.samples(), [&](int64_t position, int64_t i, double c, double s) {
      float angle = static_cast<float>(position) * f[i];
      return std::fabs(std::cos(angle) * scale - c) <= tolerance &&
             std::fabs(std::sin(angle) * scale - s) <= tolerance;
    });
  };
  // The frequencies stand somewhere in what the cosines are computed from: as a constant, or
  // computed from constants.
  llvm::SmallPtrSet<Operation *, 32> seen;
  SmallVector<Value> work{cos};
  while (!work.empty()) {
    Value value = work.pop_back_val();
    Operation *producer = value.getDefiningOp();
    if (!producer || !seen.insert(producer).second || seen.size() > 256)
      continue;
    llvm::append_range(work, producer->getOperands());
    auto type = dyn_cast<TensorType>(value.getType());
    const Shape *shape = samples.shape(value, 0);
    if (!type || !isa<FloatType>(type.getElementType()) || !shape ||
        countElements(*shape) != data.half || !isWeightLike(value))
      continue;
    HostArrayRef numbers = samples.data(value, 0);
    if (!numbers)
      continue;
    SmallVector<float> frequencies(numbers->floats.begin(), numbers->floats.end());
    if (!fits(frequencies))
      continue;
    auto values = DenseElementsAttr::get(RankedTensorType::get({data.half}, builder.getF32Type()),
                                         ArrayRef<float>(frequencies));
    Value &known = frequencyAngles[builder.getArrayAttr({values, builder.getF64FloatAttr(scale)})];
    if (!known) {
      Value weight = llm::WeightConstantOp::create(builder, op->getLoc(), values.getType(), values);
      known = llm::RopeAnglesOp::create(
          builder, op->getLoc(),
          RankedTensorType::get({ShapedType::kDynamic, 2, data.half}, builder.getF32Type()),
          positions, weight, builder.getF64FloatAttr(scale));
      ropeTheta = ropeTheta ? ropeTheta : baseOf(frequencies);
    }
    return known;
  }
  problem = "no frequencies were found of which its cosines and sines are those of position times "
            "frequency at every "
            "position";
  return {};
}
