//===- MixtureMatch.cpp - A mixture of experts in its exporters' spellings -----------===//

#include "compiler/passes/raise/MixtureMatch.h"
#include "compiler/passes/raise/Match.h"
#include "compiler/passes/raise/RouterMatch.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::graph;
using namespace llmc::raise;

namespace {

/// Both operands of a product or sum, in either order.
using Pair = std::pair<Value, Value>;
SmallVector<Pair, 2> bothOrders(BinaryOp op) {
  return {{op.getA(), op.getB()}, {op.getB(), op.getA()}};
}

/// What one term of the sum is: the MLP of an expert, for the tokens that chose it.
struct Term {
  TopKOp topK;
  Value weights; ///< of the router, [tokens, chosen]
  int64_t expert = -1;
  Value result; ///< of the expert's MLP
  Value tokens; ///< by choice: the numbers of the tokens; null: all of them
};

class Matcher {
public:
  explicit Matcher(SampleEvaluation &samples) : samples(samples) {}

  std::optional<MixtureMatch> match(Value sum);

private:
  std::optional<MixtureMatch> matchBatched(ReduceOp sum);
  bool matchBatchedExperts(Value y, MixtureMatch &mixture);
  bool matchTerm(Value value, Term &term);
  bool matchScattered(ScatterElementsOp scatter, Term &term);
  bool matchDense(BinaryOp product, Term &term);
  /// Column `part` of the indices of the ones in an expert's plane of the one-hot choices:
  /// [chosen, tokens] -> its slot (0) or its token (1).
  bool matchSelection(Value value, int64_t part, Term &term);
  bool matchSelectedWeights(Value value, Term &term);
  /// [tokens, experts]: the weight of each chosen expert, zeros elsewhere.
  bool matchDenseWeights(Value value, Term &term);
  bool matchExpert(const Term &term, ExpertMatch &expert, MixtureMatch &mixture);
  std::optional<ProductMatch> matchProduct(Value value);

  std::optional<int64_t> constantIndex(Value value) const {
    HostArrayRef array = samples.constant(value);
    return array && array->size() == 1 && !array->isFloat() ? std::optional(array->ints[0])
                                                            : std::nullopt;
  }
  std::optional<int64_t> axisOf(Value axes) const {
    return axes ? constantIndex(axes) : std::nullopt;
  }

  SampleEvaluation &samples;
};

} // namespace

std::optional<ProductMatch> Matcher::matchProduct(Value value) {
  value = peelCasts(value);
  ProductMatch product;
  if (auto sum = asBinary(value, BinaryKind::Add))
    for (auto [inner, bias] : bothOrders(sum))
      if (isWeightLike(bias) && peelCasts(inner).getDefiningOp<MatMulOp>()) {
        product.bias = bias;
        value = peelCasts(inner);
        break;
      }
  if (auto matmul = value.getDefiningOp<MatMulOp>()) {
    product.op = matmul;
    product.x = matmul.getA();
    product.weight = matmul.getB();
  } else if (auto gemm = value.getDefiningOp<GemmOp>();
             gemm && !gemm.getTransposeA() && gemm.getAlpha().convertToFloat() == 1 &&
             (!gemm.getC() || gemm.getBeta().convertToFloat() == 1)) {
    product.op = gemm;
    product.x = gemm.getA();
    product.weight = gemm.getB();
    product.bias = gemm.getC();
    product.isTransposed = gemm.getTransposeB();
  }
  bool isLinear = product.op && isWeightLike(product.weight) && !isWeightLike(product.x) &&
                  (!product.bias || isWeightLike(product.bias));
  return isLinear ? std::optional(product) : std::nullopt;
}

bool Matcher::matchSelection(Value value, int64_t part, Term &term) {
  auto squeeze = peelAnyCasts(value).getDefiningOp<SqueezeOp>();
  auto split = squeeze ? squeeze.getX().getDefiningOp<SplitOp>() : nullptr;
  if (!split || axisOf(squeeze.getAxes()) != 1 || split.getParts().size() != 2 ||
      split.getAxis() != 1 || split.getParts()[part] != squeeze.getX())
    return false;
  auto turned = split.getX().getDefiningOp<TransposeOp>();
  static constexpr int64_t swap[] = {1, 0}, planes[] = {2, 1, 0};
  if (!turned || turned.getPerm() != ArrayRef<int64_t>(swap))
    return false;
  auto nonzero = turned.getX().getDefiningOp<NonZeroOp>();
  auto plane = nonzero ? peelAnyCasts(nonzero.getX()).getDefiningOp<GatherOp>() : nullptr;
  auto stacked = plane && plane.getAxis() == 0
                     ? peelAnyCasts(plane.getX()).getDefiningOp<TransposeOp>()
                     : nullptr;
  if (!stacked || stacked.getPerm() != ArrayRef<int64_t>(planes))
    return false;
  // [tokens, chosen, experts]
  auto hot = stacked.getX().getDefiningOp<OneHotOp>();
  auto topK = hot ? peelAnyCasts(hot.getIndices()).getDefiningOp<TopKOp>() : nullptr;
  auto expert = constantIndex(plane.getIndices());
  HostArrayRef values = hot ? samples.constant(hot.getValues()) : nullptr;
  const Shape *planeShape = samples.shape(plane.getY(), 0);
  if (!topK || peelAnyCasts(hot.getIndices()) != topK.getIndices() || !expert || !values ||
      values->size() != 2 || values->number(0) != 0 || values->number(1) != 1 ||
      (static_cast<int64_t>(hot.getAxis()) != -1 && hot.getAxis() != 2) || !planeShape ||
      planeShape->size() != 2 || constantIndex(hot.getDepth()) != lastSize(topK.getX(), samples))
    return false;
  if ((term.topK && term.topK != topK) || (term.expert >= 0 && term.expert != *expert))
    return false;
  term.topK = topK;
  term.expert = *expert;
  return true;
}

/// The weights [tokens, chosen] as one column, at slot + token * chosen.
bool Matcher::matchSelectedWeights(Value value, Term &term) {
  value = peelCasts(value);
  while (auto reshape = value.getDefiningOp<ReshapeOp>()) // [count] or [count, 1]
    value = peelCasts(reshape.getX());
  auto gather = value.getDefiningOp<GatherOp>();
  if (!gather || gather.getAxis() != 0 || lastSize(gather.getX(), samples) != 1)
    return false;
  Value column = peelCasts(gather.getX());
  while (column.getDefiningOp() && isa<FlattenOp, UnsqueezeOp, ReshapeOp>(column.getDefiningOp()))
    column = peelCasts(column.getDefiningOp()->getOperand(0));
  auto index = peelAnyCasts(gather.getIndices()).getDefiningOp<BinaryOp>();
  int64_t chosen = lastSize(column, samples);
  if (!index || index.getKind() != BinaryKind::Add || chosen == 0)
    return false;
  for (auto [slot, offset] : bothOrders(index)) {
    auto product = peelAnyCasts(offset).getDefiningOp<BinaryOp>();
    if (!product || product.getKind() != BinaryKind::Mul)
      continue;
    for (auto [token, stride] : bothOrders(product))
      if (constantIndex(stride) == chosen && matchSelection(slot, 0, term) &&
          matchSelection(token, 1, term)) {
        term.weights = column;
        return true;
      }
  }
  return false;
}

bool Matcher::matchScattered(ScatterElementsOp scatter, Term &term) {
  // Each token chooses an expert once at most: replacing zeros and adding to them are the same.
  bool isSum = scatter.getKind() == ScatterKind::None || scatter.getKind() == ScatterKind::Add;
  if (!isSum || scatter.getAxis() != 0 || !isFilledWith(scatter.getX(), 0))
    return false;
  Value tokens = peelAnyCasts(scatter.getIndices());
  while (tokens.getDefiningOp() && isa<ExpandOp, UnsqueezeOp>(tokens.getDefiningOp()))
    tokens = peelAnyCasts(tokens.getDefiningOp()->getOperand(0));
  if (!matchSelection(tokens, 1, term))
    return false;
  term.tokens = tokens;
  Value updates = peelCasts(scatter.getUpdates());
  if (auto expand = updates.getDefiningOp<ExpandOp>())
    updates = peelCasts(expand.getX());
  auto product = asBinary(updates, BinaryKind::Mul);
  if (!product)
    return false;
  for (auto [result, weights] : bothOrders(product))
    if (matchSelectedWeights(weights, term)) {
      term.result = result;
      return true;
    }
  return false;
}

bool Matcher::matchDenseWeights(Value value, Term &term) {
  value = peelCasts(value);
  if (auto scatter = value.getDefiningOp<ScatterElementsOp>()) {
    const Shape *shape = samples.shape(scatter.getX(), 0);
    term.topK = peelAnyCasts(scatter.getIndices()).getDefiningOp<TopKOp>();
    term.weights = scatter.getUpdates();
    bool isSum = scatter.getKind() == ScatterKind::None || scatter.getKind() == ScatterKind::Add;
    return isSum && shape && shape->size() == 2 &&
           (scatter.getAxis() == 1 || static_cast<int64_t>(scatter.getAxis()) == -1) &&
           isFilledWith(scatter.getX(), 0) && term.topK &&
           peelAnyCasts(scatter.getIndices()) == term.topK.getIndices();
  }
  // sum over the choices of (index == expert) * weight: [tokens, chosen, experts]
  auto sum = value.getDefiningOp<ReduceOp>();
  auto product =
      sum && sum.getKind() == ReduceKind::Sum && !sum.getKeepdims() && axisOf(sum.getAxes()) == 1
          ? asBinary(sum.getX(), BinaryKind::Mul)
          : nullptr;
  if (!product)
    return false;
  for (auto [hot, weights] : bothOrders(product)) {
    auto equal = peelAnyCasts(hot).getDefiningOp<CompareOp>();
    auto inserted = peelCasts(weights).getDefiningOp<UnsqueezeOp>();
    if (!equal || equal.getKind() != CompareKind::Eq || !inserted ||
        lastSize(inserted.getY(), samples) != 1)
      continue;
    for (auto [index, numbers] :
         {Pair(equal.getA(), equal.getB()), Pair(equal.getB(), equal.getA())}) {
      auto column = peelAnyCasts(index).getDefiningOp<UnsqueezeOp>();
      auto topK = column ? peelAnyCasts(column.getX()).getDefiningOp<TopKOp>() : nullptr;
      HostArrayRef range = samples.constant(numbers);
      if (!topK || peelAnyCasts(column.getX()) != topK.getIndices() ||
          lastSize(column.getY(), samples) != 1 || !range || range->isFloat() ||
          range->size() != lastSize(topK.getX(), samples))
        continue;
      bool isRange = true;
      for (int64_t i = 0; i < range->size(); ++i)
        isRange &= range->ints[i] == i;
      if (!isRange)
        continue;
      term.topK = topK;
      term.weights = inserted.getX();
      return true;
    }
  }
  return false;
}

/// A column of the dense weights times an expert's result.
bool Matcher::matchDense(BinaryOp product, Term &term) {
  for (auto [column, result] : bothOrders(product)) {
    auto slice = peelCasts(column).getDefiningOp<SliceOp>();
    if (!slice || lastSize(slice.getY(), samples) != 1 || axisOf(slice.getAxes()) != 1)
      continue;
    auto start = constantIndex(slice.getStarts()), end = constantIndex(slice.getEnds());
    auto step = slice.getSteps() ? constantIndex(slice.getSteps()) : std::optional<int64_t>(1);
    if (!start || !end || step != 1 || *start < 0 || *end != *start + 1 ||
        !matchDenseWeights(slice.getX(), term))
      continue;
    term.expert = *start;
    term.result = result;
    return true;
  }
  return false;
}

bool Matcher::matchTerm(Value value, Term &term) {
  value = peelCasts(value);
  if (auto scatter = value.getDefiningOp<ScatterElementsOp>())
    return matchScattered(scatter, term);
  auto product = asBinary(value, BinaryKind::Mul);
  return product && matchDense(product, term);
}

bool Matcher::matchExpert(const Term &term, ExpertMatch &expert, MixtureMatch &mixture) {
  auto down = matchProduct(term.result);
  auto product = down ? asBinary(down->x, BinaryKind::Mul) : nullptr;
  if (!product)
    return false;
  for (auto [activated, other] : bothOrders(product)) {
    auto activation = peelCasts(activated).getDefiningOp<UnaryOp>();
    auto gate = activation ? matchProduct(activation.getX()) : std::nullopt;
    auto up = gate ? matchProduct(other) : std::nullopt;
    if (!up || peelCasts(gate->x) != peelCasts(up->x))
      continue;
    llm::Activation kind;
    switch (activation.getKind()) {
    case UnaryKind::Silu:
      kind = llm::Activation::Silu;
      break;
    case UnaryKind::GeluErf:
      kind = llm::Activation::Gelu;
      break;
    case UnaryKind::GeluTanh:
      kind = llm::Activation::GeluTanh;
      break;
    case UnaryKind::Relu:
      kind = llm::Activation::Relu;
      break;
    default:
      continue;
    }
    Value x = peelCasts(gate->x);
    if (term.tokens) { // the rows of the tokens that chose the expert
      auto gather = x.getDefiningOp<GatherOp>();
      if (!gather || gather.getAxis() != 0 || peelAnyCasts(gather.getIndices()) != term.tokens)
        continue;
      x = peelCasts(gather.getX());
    }
    if (mixture.x && (mixture.x != x || mixture.activation != kind))
      return false;
    mixture.x = x;
    mixture.activation = kind;
    expert = {*gate, *up, *down};
    return true;
  }
  return false;
}

std::optional<MixtureMatch> Matcher::match(Value value) {
  if (auto reduce = peelCasts(value).getDefiningOp<ReduceOp>())
    return matchBatched(reduce);
  MixtureMatch mixture;
  TopKOp topK;
  Value weights;
  SmallVector<std::pair<int64_t, ExpertMatch>> found;
  for (value = peelCasts(value); !isFilledWith(value, 0);) {
    // The last term is one of the operands, the sum of those before it the other.
    auto sum = asBinary(value, BinaryKind::Add);
    Term term;
    ExpertMatch expert;
    Value rest;
    for (auto [before, last] : sum ? bothOrders(sum) : SmallVector<Pair, 2>()) {
      term = Term();
      if (matchTerm(last, term) && matchExpert(term, expert, mixture)) {
        rest = before;
        break;
      }
    }
    if (!rest || (topK && (topK != term.topK || weights != term.weights)))
      return std::nullopt;
    topK = term.topK;
    weights = term.weights;
    found.push_back({term.expert, expert});
    value = peelCasts(rest);
  }
  auto router = topK ? matchRouter(weights, topK, samples) : std::nullopt;
  if (!router || static_cast<int64_t>(found.size()) != router->experts)
    return std::nullopt;
  mixture.router = *router;
  mixture.experts.resize(found.size());
  for (auto &[number, expert] : found) {
    if (number < 0 || number >= router->experts || mixture.experts[number].down.op)
      return std::nullopt;
    mixture.experts[number] = expert;
  }
  return mixture;
}

//===----------------------------------------------------------------------===//
// The batched form
//===----------------------------------------------------------------------===//

/// Clip between -limit (or nothing, with `isAboveOnly`) and limit.
static Value matchClip(Value value, bool isAboveOnly, double &limit) {
  auto clip = peelCasts(value).getDefiningOp<ClipOp>();
  auto high = clip && clip.getHigh() ? scalarConstant(clip.getHigh()) : std::nullopt;
  auto low = clip && clip.getLow() ? scalarConstant(clip.getLow()) : std::nullopt;
  if (!high || *high <= 0 || bool(clip.getLow()) == isAboveOnly ||
      (!isAboveOnly && low != -*high) || (limit != 0 && limit != *high))
    return {};
  limit = *high;
  return clip.getX();
}

/// y [experts, tokens, features] of the two batched products around GPT-OSS's gate.
bool Matcher::matchBatchedExperts(Value y, MixtureMatch &mixture) {
  auto down = matchProduct(y);
  auto product = down ? asBinary(down->x, BinaryKind::Mul) : nullptr;
  if (!product)
    return false;
  for (auto [first, second] : bothOrders(product)) {
    // (up + 1) * (gate * sigmoid(alpha * gate))
    auto shifted = splitScalar(first, BinaryKind::Add);
    auto gated = asBinary(second, BinaryKind::Mul);
    if (!shifted || shifted->scalar != 1 || !gated)
      continue;
    for (auto [gate, sigmoid] : bothOrders(gated)) {
      auto inner = asUnary(sigmoid, UnaryKind::Sigmoid);
      WithScalar scaled = inner ? peelScale(inner.getX()) : WithScalar{Value(), 0};
      if (!inner || peelCasts(scaled.value) != peelCasts(gate))
        continue;
      double limit = 0;
      Value gateColumns = matchClip(gate, true, limit),
            upColumns = gateColumns ? matchClip(shifted->value, false, limit) : Value();
      if (!upColumns)
        continue;
      // Every other column, from 0 for the gate and from 1 for up.
      auto isColumns = [&](Value value, int64_t start) -> Value {
        auto slice = peelCasts(value).getDefiningOp<SliceOp>();
        bool fits = slice && constantIndex(slice.getStarts()) == start && slice.getSteps() &&
                    constantIndex(slice.getSteps()) == 2 && axisOf(slice.getAxes()) &&
                    (*axisOf(slice.getAxes()) == 2 || *axisOf(slice.getAxes()) == -1) &&
                    2 * lastSize(slice.getY(), samples) == lastSize(slice.getX(), samples);
        return fits ? slice.getX() : Value();
      };
      Value both = isColumns(gateColumns, 0);
      auto gateUp = both && both == isColumns(upColumns, 1) ? matchProduct(both) : std::nullopt;
      if (!gateUp || gateUp->isTransposed || down->isTransposed)
        continue;
      // x once an expert: tiled (or expanded) along a new first dimension.
      Value x = peelCasts(gateUp->x);
      while (x.getDefiningOp() &&
             isa<ReshapeOp, TileOp, ExpandOp, UnsqueezeOp>(x.getDefiningOp())) {
        const Shape *own = samples.shape(x, 0);
        if (own && own->size() == 2 && lastSize(x, samples) != 0 &&
            !isa<TileOp, ExpandOp>(x.getDefiningOp()))
          break;
        x = peelCasts(x.getDefiningOp()->getOperand(0));
      }
      mixture.x = x;
      mixture.gateUp = *gateUp;
      mixture.down = *down;
      mixture.alpha = scaled.scalar;
      mixture.limit = limit;
      return true;
    }
  }
  return false;
}

std::optional<MixtureMatch> Matcher::matchBatched(ReduceOp sum) {
  if (sum.getKind() != ReduceKind::Sum || sum.getKeepdims() || axisOf(sum.getAxes()) != 0)
    return std::nullopt;
  auto product = asBinary(sum.getX(), BinaryKind::Mul);
  if (!product)
    return std::nullopt;
  for (auto [result, weights] : bothOrders(product)) {
    // [experts, batch, tokens, 1], of [tokens, experts] turned around
    Value dense = peelCasts(weights);
    while (dense.getDefiningOp() && isa<UnsqueezeOp, ReshapeOp>(dense.getDefiningOp()))
      dense = peelCasts(dense.getDefiningOp()->getOperand(0));
    auto turned = dense.getDefiningOp<TransposeOp>();
    static constexpr int64_t swap[] = {1, 0};
    Term term;
    MixtureMatch mixture;
    Value y = peelCasts(result);
    while (auto reshape = y.getDefiningOp<ReshapeOp>())
      y = peelCasts(reshape.getX());
    if (!turned || turned.getPerm() != ArrayRef<int64_t>(swap) || lastSize(weights, samples) != 1 ||
        !matchDenseWeights(turned.getX(), term) || !matchBatchedExperts(y, mixture))
      continue;
    auto router = matchRouter(term.weights, term.topK, samples);
    // Rows are the tokens in their order: x is [tokens, features] under the router as well.
    if (!router || samples.shape(mixture.x, 0) == nullptr ||
        samples.shape(mixture.x, 0)->size() != 2)
      continue;
    for (Value weight : {mixture.gateUp.weight, mixture.down.weight}) {
      const Shape *shape = samples.shape(weight, 0);
      if (!shape || shape->size() != 3 || (*shape)[0] != router->experts)
        return std::nullopt;
    }
    mixture.router = *router;
    return mixture;
  }
  return std::nullopt;
}

std::optional<MixtureMatch> llmc::raise::matchMixture(Value sum, SampleEvaluation &samples) {
  return Matcher(samples).match(sum);
}
