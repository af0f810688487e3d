//===- Blocks.cpp - the blocks of a decoder in their one form ------------------===//

#include "dialects/llm/Blocks.h"

using namespace mlir;
using namespace llmc::llm;

static RankedTensorType rowType(OpBuilder &b, int64_t columns, Type element) {
  return RankedTensorType::get({ShapedType::kDynamic, columns}, element);
}

Value llmc::llm::buildMixture(OpBuilder &b, Location loc, Value x, Value logits, Value correction,
                              const RouteForm &form, const ExpertForm &unit,
                              ArrayRef<ExpertWeights> experts) {
  auto number = [&](int64_t value) { return value ? b.getI64IntegerAttr(value) : IntegerAttr(); };
  auto real = [&](double value) { return value ? b.getF64FloatAttr(value) : FloatAttr(); };
  auto flag = [&](bool value) { return value ? b.getUnitAttr() : UnitAttr(); };
  auto rows = [&](int64_t columns) { return rowType(b, columns, b.getF32Type()); };
  auto route =
      RouteOp::create(b, loc, rowType(b, form.chosen, b.getI32Type()), rows(form.chosen),
                      ScoringAttr::get(b.getContext(), form.scoring), logits, correction,
                      b.getI64IntegerAttr(form.chosen), flag(form.normalize), number(form.groups),
                      number(form.groups ? form.topGroups : 0),
                      flag(form.groups && form.groupBestTwo), b.getF64FloatAttr(form.scale));

  WeightViews views(b, loc);
  SmallVector<Value> ups, downs, upBiases, downBiases;
  for (const ExpertWeights &expert : experts) {
    ups.push_back(views.interleave(expert.gate, expert.up));
    downs.push_back(expert.down);
    if (expert.gateBias)
      upBiases.push_back(views.interleave(expert.gateBias, expert.upBias));
    if (expert.downBias)
      downBiases.push_back(expert.downBias);
  }
  Value upBias = upBiases.empty() ? Value() : views.stack(upBiases);
  Value downBias = downBiases.empty() ? Value() : views.stack(downBiases);
  const int64_t count = static_cast<int64_t>(experts.size());
  const int64_t inner = dim(experts[0].gate, 0), outer = dim(experts[0].down, 0);
  auto activation =
      ActivationAttr::get(b.getContext(), unit.alpha != 0 ? Activation::None : unit.activation);
  auto plain = ActivationAttr::get(b.getContext(), Activation::None);
  Value hidden =
      ExpertLinearOp::create(b, loc, rows(form.chosen * inner), x, views.stack(ups),
                             route.getExperts(), upBias, b.getI64IntegerAttr(count), activation,
                             b.getUnitAttr(), real(unit.alpha), real(unit.limit), FormatAttr());
  Value values = ExpertLinearOp::create(
      b, loc, rows(form.chosen * outer), hidden, views.stack(downs), route.getExperts(), downBias,
      b.getI64IntegerAttr(count), plain, UnitAttr(), FloatAttr(), FloatAttr(), FormatAttr());
  return CombineOp::create(b, loc, rows(outer), values, route.getWeights(), Value());
}

Value llmc::llm::buildLatentAttention(OpBuilder &b, Location loc, const LatentAttention &p) {
  auto rows = [&](int64_t columns) { return rowType(b, columns, b.getF32Type()); };
  WeightViews views(b, loc);
  const int64_t latent = dim(p.latent, 1), rotated = dim(p.key, 1);
  // q . (W c) = (W^T q) . c
  SmallVector<Value> keyUp;
  for (Value weight : p.keyUp)
    keyUp.push_back(views.transpose(weight));
  auto heads = b.getI64IntegerAttr(p.heads);
  Value absorbed = HeadLinearOp::create(b, loc, rows(p.heads * latent), p.query, views.stack(keyUp),
                                        heads, FormatAttr());
  auto kv = KvType::get(b.getContext(), 1, latent + rotated, latent, Element::F32, /*paged=*/false,
                        /*latent=*/true);
  Value cache = KvCacheOp::create(b, loc, kv, b.getI64IntegerAttr(p.layer));
  auto append = LatentAppendOp::create(b, loc, rows(p.heads * (latent + rotated)), kv, absorbed,
                                       p.rotated, p.latent, p.key, cache, p.angles, heads,
                                       p.interleaved ? b.getUnitAttr() : UnitAttr());
  Value mixed = AttentionOp::create(b, loc, rows(p.heads * latent), append.getQueries(),
                                    append.getResult(), /*alibi=*/Value(), p.heads, p.scale);
  return HeadLinearOp::create(b, loc, rows(p.heads * p.value), mixed, views.stack(p.valueUp), heads,
                              FormatAttr());
}
