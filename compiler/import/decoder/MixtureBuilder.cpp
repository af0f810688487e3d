//===- MixtureBuilder.cpp - a mixture of experts ----------------------------------===//

#include "compiler/import/decoder/StepBuilder.h"

using namespace mlir;
using namespace llmc;

static_assert(static_cast<int>(RouterScoring::Sigmoid) == static_cast<int>(llm::Scoring::Sigmoid) &&
                  static_cast<int>(RouterScoring::SoftmaxOfChosen) ==
                      static_cast<int>(llm::Scoring::SoftmaxChosen),
              "the two enums have the same numbers");

/// Each expert's matrices, however the checkpoint stores them.
std::vector<llm::ExpertWeights> StepBuilder::experts(uint64_t layer, int64_t hidden) {
  const MixtureForm &form = config.mixture;
  const int64_t count = form.experts, inner = form.intermediate;
  llm::WeightViews views(builder, loc);
  const auto tensor = [&](DecoderPart part, ArrayRef<int64_t> shape, uint64_t expert = 0) {
    return take(names.of(part, layer, expert), shape);
  };
  std::vector<llm::ExpertWeights> result(form.experts);
  if (form.storage == ExpertStorage::Separate) {
    for (int64_t e = 0; e != count && !failed; ++e) {
      result[e].gate = tensor(DecoderPart::ExpertGate, {inner, hidden}, e);
      result[e].up = tensor(DecoderPart::ExpertUp, {inner, hidden}, e);
      result[e].down = tensor(DecoderPart::ExpertDown, {hidden, inner}, e);
    }
    return result;
  }
  const bool isStacked = form.storage == ExpertStorage::Stacked;
  const bool isTurned = form.storage == ExpertStorage::Turned;
  Value gate, up, down;
  if (isStacked) {
    gate = tensor(DecoderPart::ExpertGate, {count, inner, hidden});
    up = tensor(DecoderPart::ExpertUp, {count, inner, hidden});
  } else if (isTurned) {
    gate = tensor(DecoderPart::ExpertGate, {count, hidden, 2 * inner});
  } else {
    gate = tensor(DecoderPart::ExpertGate, {count, 2 * inner, hidden});
  }
  down = isTurned ? tensor(DecoderPart::ExpertDown, {count, inner, hidden})
                  : tensor(DecoderPart::ExpertDown, {count, hidden, inner});
  Value gateBias, upBias, downBias;
  if (form.expertBias) {
    gateBias = tensor(DecoderPart::ExpertGateBias, {count, isStacked ? inner : 2 * inner});
    if (isStacked)
      upBias = tensor(DecoderPart::ExpertUpBias, {count, inner});
    downBias = tensor(DecoderPart::ExpertDownBias, {count, hidden});
  }
  if (failed)
    return result;
  for (int64_t e = 0; e != count; ++e) {
    llm::ExpertWeights &expert = result[e];
    Value first = views.part(gate, e), last = views.part(down, e);
    Value firstBias = gateBias ? views.part(gateBias, e) : Value();
    if (isStacked) {
      expert.gate = first;
      expert.up = views.part(up, e);
      expert.gateBias = firstBias;
      expert.upBias = upBias ? views.part(upBias, e) : Value();
    } else {
      if (isTurned) {
        first = views.transpose(first);
        last = views.transpose(last);
      }
      if (isTurned || form.storage == ExpertStorage::InTurn) { // every other row is gate
        first = views.deinterleave(first);
        firstBias = firstBias ? views.deinterleave(firstBias) : Value();
      }
      expert.gate = views.rows(first, 0, inner);
      expert.up = views.rows(first, inner, inner);
      expert.gateBias = firstBias ? views.rows(firstBias, 0, inner) : Value();
      expert.upBias = firstBias ? views.rows(firstBias, inner, inner) : Value();
    }
    expert.down = last;
    expert.downBias = downBias ? views.part(downBias, e) : Value();
  }
  return result;
}

/// What a mixture adds: the chosen experts, and the shared one where there is one.
Value StepBuilder::mixture(Value x, uint64_t layer) {
  const MixtureForm &form = config.mixture;
  const int64_t count = form.experts, hidden = llm::dim(x, 1);
  Value logits = linear(x, DecoderPart::Router, layer, count, form.routerBias);
  Value correction = form.correction && !failed
                         ? take(names.of(DecoderPart::RouterCorrection, layer), {count})
                         : Value();
  std::vector<llm::ExpertWeights> weights =
      failed ? std::vector<llm::ExpertWeights>() : experts(layer, hidden);
  if (failed)
    return {};
  llm::RouteForm route;
  route.scoring = static_cast<llm::Scoring>(form.scoring);
  route.chosen = form.chosen;
  route.normalize = form.normalize;
  route.groups = form.groups;
  route.topGroups = form.topGroups;
  route.groupBestTwo = form.groupBestTwo;
  route.scale = form.scale;
  llm::ExpertForm unit{static_cast<llm::Activation>(config.mlp.activation), form.alpha, form.limit};
  Value y = llm::buildMixture(builder, loc, x, logits, correction, route, unit, weights);
  if (!form.sharedIntermediate)
    return y;
  Value shared = gatedMlp(x, layer, DecoderPart::SharedGate, DecoderPart::SharedUp,
                          DecoderPart::SharedDown, form.sharedIntermediate, false, false);
  if (form.sharedGate && !failed) {
    Value gate = linear(x, DecoderPart::SharedWeight, layer, 1, false);
    if (failed)
      return {};
    auto sigmoid = llm::ActivationAttr::get(builder.getContext(), llm::Activation::Sigmoid);
    gate = llm::ActivateOp::create(builder, loc, gate.getType(), sigmoid, gate);
    shared = llm::CombineOp::create(builder, loc, shared.getType(), shared, gate, Value());
  }
  return failed ? Value() : add(y, shared);
}
