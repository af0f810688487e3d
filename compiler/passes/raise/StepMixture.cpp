//===- StepMixture.cpp - Mixtures of experts ---------------------------------------===//

#include "compiler/passes/raise/Match.h"
#include "compiler/passes/raise/Step.h"
#include "dialects/graph/NodeLocation.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::graph;
using namespace llmc::raise;

Value Step::projection(const ProductMatch &product, std::string &problem) {
  Value matrix = weight(product.weight, nodeName(product.op->getLoc()), problem);
  if (matrix && llm::tensorType(matrix).getRank() != 2) {
    problem = "the weight of an expert is not a matrix";
    return {};
  }
  if (!matrix || product.isTransposed)
    return matrix;
  return llm::WeightViews(builder, product.op->getLoc()).transpose(matrix);
}

Value Step::projectionBias(const ProductMatch &product, std::string &problem) {
  Value bias =
      product.bias ? weight(product.bias, nodeName(product.op->getLoc()), problem) : Value();
  return bias ? llm::WeightViews(builder, product.op->getLoc())
                    .reshape(bias, {llm::tensorType(bias).getNumElements()})
              : Value();
}

/// Each expert's matrices; false, with a problem, where they do not fit each other.
bool Step::expertWeights(const MixtureMatch &mixture, SmallVectorImpl<llm::ExpertWeights> &experts,
                         std::string &problem) {
  for (const ExpertMatch &match : mixture.experts) {
    llm::ExpertWeights expert;
    expert.gate = projection(match.gate, problem);
    expert.up = expert.gate ? projection(match.up, problem) : Value();
    expert.down = expert.up ? projection(match.down, problem) : Value();
    if (!expert.down)
      return false;
    if (match.gate.bias || match.up.bias || match.down.bias) {
      problem = "experts with biases are understood in their batched form only";
      return false;
    }
    experts.push_back(expert);
  }
  if (experts.empty()) { // batched: [experts, in, out], gate and up in every other column
    const int64_t count = mixture.router.experts;
    Value both = weight(mixture.gateUp.weight, nodeName(mixture.gateUp.op->getLoc()), problem);
    Value down =
        both ? weight(mixture.down.weight, nodeName(mixture.down.op->getLoc()), problem) : Value();
    Value bothBias = down ? projectionBias(mixture.gateUp, problem) : Value();
    Value downBias = down ? projectionBias(mixture.down, problem) : Value();
    bool areBiased = mixture.gateUp.bias && mixture.down.bias;
    if (!down || bool(mixture.gateUp.bias) != bool(mixture.down.bias) ||
        (areBiased && (!bothBias || !downBias)))
      return false;
    llm::WeightViews views(builder, mixture.down.op->getLoc());
    const int64_t inner = llm::dim(both, 2) / 2, outer = llm::dim(down, 2);
    if (areBiased) {
      if (llm::dim(bothBias, 0) != count * 2 * inner || llm::dim(downBias, 0) != count * outer) {
        problem = "the experts' biases do not fit their matrices";
        return false;
      }
      bothBias = views.reshape(bothBias, {count, 2 * inner});
      downBias = views.reshape(downBias, {count, outer});
    }
    for (int64_t e = 0; e < count; ++e) {
      llm::ExpertWeights expert;
      Value rows = views.deinterleave(views.transpose(views.part(both, e)));
      expert.gate = views.rows(rows, 0, inner);
      expert.up = views.rows(rows, inner, inner);
      expert.down = views.transpose(views.part(down, e));
      if (areBiased) {
        Value shift = views.deinterleave(views.part(bothBias, e));
        expert.gateBias = views.rows(shift, 0, inner);
        expert.upBias = views.rows(shift, inner, inner);
        expert.downBias = views.part(downBias, e);
      }
      experts.push_back(expert);
    }
  }
  for (const llm::ExpertWeights &expert : experts)
    if (expert.gate.getType() != experts[0].gate.getType() ||
        expert.up.getType() != experts[0].gate.getType() ||
        expert.down.getType() != experts[0].down.getType() ||
        llm::dim(expert.down, 1) != llm::dim(expert.gate, 0)) {
      problem = "the experts of a layer have different shapes";
      return false;
    }
  return true;
}

Lifted Step::liftMixture(Operation *op, Value sum) {
  auto match = matchMixture(sum, samples);
  if (!match)
    return {};
  Lifted x = of(match->x), logits = of(match->router.logits);
  if (x.kind != Lifted::Rows || logits.kind != Lifted::Rows)
    return x.culprit ? x : logits;
  std::string problem;
  Value rows = tokenRows(x, problem), scores = rows ? tokenRows(logits, problem) : Value();
  if (!scores)
    return fail(op, problem);
  SmallVector<llm::ExpertWeights> experts;
  if (!expertWeights(*match, experts, problem))
    return fail(op, problem);
  if (llm::dim(experts[0].gate, 1) != llm::dim(rows, 1) ||
      llm::dim(experts[0].down, 0) != llm::dim(rows, 1) ||
      llm::dim(scores, 1) != match->router.experts)
    return fail(op, "the experts do not fit the rows that they get");
  const RouterMatch &router = match->router;
  Value correction;
  if (router.correction) {
    correction = weight(router.correction, nodeName(op->getLoc()), problem);
    if (!correction || llm::tensorType(correction).getNumElements() != router.experts)
      return fail(op,
                  problem.empty() ? "the router's correction needs one number an expert" : problem);
    correction = llm::WeightViews(builder, op->getLoc()).reshape(correction, {router.experts});
  }
  llm::RouteForm form{router.scoring,   router.chosen,       router.normalize, router.groups,
                      router.topGroups, router.groupBestTwo, router.scale};
  intermediateSize = std::max(intermediateSize, llm::dim(experts[0].gate, 0));
  Value y = llm::buildMixture(builder, op->getLoc(), rows, scores, correction, form,
                              {match->activation, match->alpha, match->limit}, experts);
  Lifted result = x;
  result.rows = y;
  result.offset = 0;
  result.axes.back() = {{AxisKind::Feature, llm::dim(y, 1), 1}};
  if (isa<ReduceOp>(op)) { // the batched form has its result as [batch, tokens, features]
    auto shapes = shapesOf(sum);
    auto axes = shapes ? regroup(result.axes, *shapes, samples.samples()) : std::nullopt;
    if (!axes)
      return fail(op, "the sum over the experts has an unknown shape");
    result.axes = *axes;
  }
  return result;
}

std::optional<Lifted> Step::liftRowWeight(BinaryOp op, Lifted &a, Lifted &b) {
  auto columns = [](const Lifted &lifted) {
    return lifted.kind == Lifted::Rows && !lifted.axes.empty() &&
                   !contains(lifted.axes, AxisKind::Repeat)
               ? featureCount(lifted.axes)
               : 0;
  };
  Lifted *narrow = columns(a) == 1 ? &a : &b, *wide = narrow == &a ? &b : &a;
  if (columns(*narrow) != 1 || columns(*wide) < 2 || narrow->axes.size() != wide->axes.size() ||
      Axes(ArrayRef(narrow->axes).drop_back()) != Axes(ArrayRef(wide->axes).drop_back()))
    return std::nullopt;
  std::string problem;
  Value factor = tokenRows(*narrow, problem), rows = factor ? tokenRows(*wide, problem) : Value();
  if (!rows)
    return std::nullopt;
  Lifted result = *wide;
  result.rows = llm::CombineOp::create(builder, op.getLoc(), rows.getType(), rows, factor, Value());
  return result;
}
