//===- RouterMatch.cpp - The router of a mixture, from the weights it gives ----------===//

#include "compiler/passes/raise/RouterMatch.h"
#include "compiler/passes/raise/Match.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::graph;
using namespace llmc::raise;

Value llmc::raise::peelAnyCasts(Value value) {
  while (auto cast = value.getDefiningOp<CastOp>())
    value = cast.getX();
  return value;
}

bool llmc::raise::isFilledWith(Value value, double number) {
  value = peelAnyCasts(value);
  if (auto expand = value.getDefiningOp<ExpandOp>())
    value = peelAnyCasts(expand.getX());
  if (auto fill = value.getDefiningOp<FillOp>()) {
    HostArrayRef array = fromElements(fill.getValue());
    return array && array->size() > 0 && array->number(0) == number;
  }
  return scalarConstant(value) == number;
}

int64_t llmc::raise::lastSize(Value value, SampleEvaluation &samples) {
  int64_t size = 0;
  for (unsigned i = 0; i < samples.samples().size(); ++i) {
    const Shape *shape = samples.shape(value, i);
    if (!shape || shape->empty() || (i > 0 && shape->back() != size))
      return 0;
    size = shape->back();
  }
  return size;
}

static int64_t rankOf(Value value, SampleEvaluation &samples) {
  const Shape *shape = samples.shape(value, 0);
  return shape ? static_cast<int64_t>(shape->size()) : -1;
}

static bool isLastAxis(int64_t axis, Value value, SampleEvaluation &samples) {
  int64_t rank = rankOf(value, samples);
  return rank > 0 && (axis == -1 || axis == rank - 1);
}

ReduceOp llmc::raise::matchLastReduce(Value value, ReduceKind kind, SampleEvaluation &samples) {
  auto reduce = peelCasts(value).getDefiningOp<ReduceOp>();
  if (!reduce || reduce.getKind() != kind || !reduce.getAxes())
    return nullptr;
  HostArrayRef axes = samples.constant(reduce.getAxes());
  return axes && axes->size() == 1 && isLastAxis(axes->ints[0], reduce.getX(), samples) ? reduce
                                                                                        : nullptr;
}

/// The number of a top-k over the last axis that keeps the largest, or 0.
static int64_t topCount(TopKOp topK, SampleEvaluation &samples) {
  HostArrayRef k = topK ? samples.constant(topK.getK()) : nullptr;
  return k && k->size() == 1 && topK.getLargest() &&
                 isLastAxis(topK.getAxis(), topK.getX(), samples)
             ? k->ints[0]
             : 0;
}

/// The same elements [tokens, experts], or [tokens, groups, experts a group].
static Value peelReshape(Value value) {
  value = peelCasts(value);
  while (auto reshape = value.getDefiningOp<ReshapeOp>())
    value = peelCasts(reshape.getX());
  return value;
}

namespace {

/// Experts are chosen from the best groups only:
/// select(not(mask), 0, choices), where mask is 1 for the experts of the chosen groups.
struct GroupMatch {
  SampleEvaluation &samples;
  RouterMatch &router;

  /// The choices before the groups were masked out; null where this is something else.
  Value match(SelectOp select) {
    if (scalarConstant(select.getA()) != 0.0)
      return {};
    auto inverted = peelAnyCasts(select.getCondition()).getDefiningOp<UnaryOp>();
    if (!inverted || inverted.getKind() != UnaryKind::Not)
      return {};
    // [tokens, groups] -> [tokens, groups, 1] -> [tokens, groups, size] -> [tokens, experts]
    auto folded = peelAnyCasts(inverted.getX()).getDefiningOp<ReshapeOp>();
    auto expand = folded ? folded.getX().getDefiningOp<ExpandOp>() : nullptr;
    auto inserted = expand ? expand.getX().getDefiningOp<UnsqueezeOp>() : nullptr;
    auto scatter = inserted ? inserted.getX().getDefiningOp<ScatterElementsOp>() : nullptr;
    if (!scatter || scatter.getKind() != ScatterKind::None || !isFilledWith(scatter.getX(), 0) ||
        !isFilledWith(scatter.getUpdates(), 1) ||
        !isLastAxis(scatter.getAxis(), scatter.getX(), samples) ||
        rankOf(inserted.getY(), samples) != 3 || lastSize(inserted.getY(), samples) != 1)
      return {};
    auto top = scatter.getIndices().getDefiningOp<TopKOp>();
    router.topGroups = topCount(top, samples);
    if (router.topGroups == 0 || scatter.getIndices() != top.getIndices())
      return {};
    router.groups = lastSize(top.getX(), samples);
    Value grouped = groupScores(top.getX());
    int64_t size = grouped ? lastSize(grouped, samples) : 0;
    if (router.groups == 0 || size * router.groups != router.experts ||
        lastSize(expand.getY(), samples) != size || rankOf(grouped, samples) != 3)
      return {};
    Value choices = peelCasts(select.getB());
    return peelReshape(grouped) == peelReshape(choices) ? choices : Value();
  }

  /// [tokens, groups, size], of which the value is each group's largest, or the sum of its two
  /// largest.
  Value groupScores(Value value) {
    if (auto largest = matchLastReduce(value, ReduceKind::Max, samples)) {
      router.groupBestTwo = false;
      return largest.getX();
    }
    auto sum = matchLastReduce(value, ReduceKind::Sum, samples);
    auto best = sum ? peelCasts(sum.getX()).getDefiningOp<TopKOp>() : nullptr;
    if (!best || topCount(best, samples) != 2 || peelCasts(sum.getX()) != best.getValues())
      return {};
    router.groupBestTwo = true;
    return best.getX();
  }
};

} // namespace

/// A softmax over the last axis, or a sigmoid: its input and which of the two.
static Value matchScores(Value scores, llm::Scoring &scoring, SampleEvaluation &samples) {
  if (auto softmax = scores.getDefiningOp<SoftmaxOp>();
      softmax && !softmax.getLog() && isLastAxis(softmax.getAxis(), softmax.getX(), samples)) {
    scoring = llm::Scoring::Softmax;
    return softmax.getX();
  }
  if (auto sigmoid = asUnary(scores, UnaryKind::Sigmoid)) {
    scoring = llm::Scoring::Sigmoid;
    return sigmoid.getX();
  }
  return {};
}

std::optional<RouterMatch> llmc::raise::matchRouter(Value weights, TopKOp topK,
                                                    SampleEvaluation &samples) {
  RouterMatch router;
  router.topK = topK;
  router.chosen = topCount(topK, samples);
  router.experts = topK ? lastSize(topK.getX(), samples) : 0;
  if (router.chosen == 0 || router.experts == 0 || rankOf(topK.getX(), samples) != 2)
    return std::nullopt;

  // From the weights back to the chosen scores.
  Value value = peelCasts(weights), scores;
  bool isSoftmaxOfChosen = false;
  WithScalar scaled = peelScale(value);
  router.scale = scaled.scalar;
  value = peelCasts(scaled.value);
  if (auto quotient = asBinary(value, BinaryKind::Div)) {
    // v / sum(v), or v / (sum(v) + 1e-20)
    Value total = peelCasts(quotient.getB());
    if (auto guarded = splitScalar(total, BinaryKind::Add);
        guarded && guarded->scalar >= 0 && guarded->scalar <= 1e-6)
      total = peelCasts(guarded->value);
    auto sum = matchLastReduce(total, ReduceKind::Sum, samples);
    if (!sum || !sum.getKeepdims() || peelCasts(sum.getX()) != peelCasts(quotient.getA()))
      return std::nullopt;
    router.normalize = true;
    value = peelCasts(quotient.getA());
  }
  if (auto softmax = value.getDefiningOp<SoftmaxOp>();
      softmax && !softmax.getLog() && isLastAxis(softmax.getAxis(), softmax.getX(), samples)) {
    isSoftmaxOfChosen = true;
    value = peelCasts(softmax.getX());
  }
  if (auto gather = value.getDefiningOp<GatherElementsOp>()) {
    if (isSoftmaxOfChosen || peelAnyCasts(gather.getIndices()) != topK.getIndices() ||
        !isLastAxis(gather.getAxis(), gather.getX(), samples))
      return std::nullopt;
    scores = peelReshape(gather.getX());
  } else if (value != topK.getValues()) {
    return std::nullopt;
  }

  // From what is chosen by back to the logits.
  Value choices = peelCasts(topK.getX());
  if (auto select = choices.getDefiningOp<SelectOp>()) {
    choices = GroupMatch{samples, router}.match(select);
    if (!choices)
      return std::nullopt;
  }
  choices = peelReshape(choices);
  if (auto sum = asBinary(choices, BinaryKind::Add))
    for (auto [base, shift] :
         {std::pair(sum.getA(), sum.getB()), std::pair(sum.getB(), sum.getA())})
      if (isWeightLike(shift) && !isWeightLike(base)) {
        router.correction = shift;
        choices = peelReshape(base);
        break;
      }
  // The correction decides who is chosen and has no part in the weights.
  if (scores ? scores != choices : bool(router.correction))
    return std::nullopt;
  if (isSoftmaxOfChosen) {
    if (router.correction)
      return std::nullopt;
    router.scoring = llm::Scoring::SoftmaxChosen;
    router.logits = choices;
  } else {
    router.logits = matchScores(choices, router.scoring, samples);
  }
  if (!router.logits || lastSize(router.logits, samples) != router.experts)
    return std::nullopt;
  router.logits = peelCasts(router.logits);
  return router;
}
