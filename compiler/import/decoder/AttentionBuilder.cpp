//===- AttentionBuilder.cpp - the attention block of a decoder layer --------------===//

#include "compiler/import/decoder/StepBuilder.h"

#include <cmath>

using namespace mlir;
using namespace llmc;

Value StepBuilder::unpermuted(Value weight, int64_t heads) {
  return weight
             ? llm::WeightUnpermuteOp::create(builder, loc, weight.getType(), weight, number(heads))
                   .getResult()
             : Value();
}

/// Q, K and V of each key-value head in turn (H/G heads of Q, one of K, one of V) taken apart by
/// rows of the weight: [G, (H/G + 2) * d, hidden].
StepBuilder::Qkv StepBuilder::projectGrouped(Value x, uint64_t layer) {
  const AttentionForm &form = config.attention;
  const int64_t size = form.headSize, group = form.heads / form.kvHeads;
  const int64_t block = (group + 2) * size, total = block * static_cast<int64_t>(form.kvHeads);
  Value all = matrix(DecoderPart::QueryKeyValue, layer, total, llm::dim(x, 1));
  Value shift = form.qkvBias ? bias(DecoderPart::QueryKeyValue, layer, total) : Value();
  if (failed)
    return {};
  const auto pick = [&](Value weight, int64_t offset, int64_t count) -> Value {
    if (!weight)
      return {};
    RankedTensorType type = llm::tensorType(weight);
    SmallVector<int64_t> shape(type.getShape());
    SmallVector<Value> parts;
    shape[0] = count;
    for (uint64_t g = 0; g != form.kvHeads; ++g)
      parts.push_back(llm::WeightRowsOp::create(
          builder, loc, RankedTensorType::get(shape, type.getElementType()), weight,
          number(static_cast<int64_t>(g) * block + offset)));
    shape[0] = count * static_cast<int64_t>(form.kvHeads);
    return llm::WeightConcatOp::create(builder, loc,
                                       RankedTensorType::get(shape, type.getElementType()), parts);
  };
  const auto project = [&](int64_t offset, int64_t count) -> Value {
    Value weight = pick(all, offset, count);
    return llm::LinearOp::create(builder, loc, rows(llm::dim(weight, 0)), x, weight,
                                 pick(shift, offset, count));
  };
  return {project(0, group * size), project(group * size, size), project((group + 1) * size, size)};
}

StepBuilder::Qkv StepBuilder::projectQkv(Value x, uint64_t layer) {
  const AttentionForm &form = config.attention;
  const int64_t qSize = form.heads * form.headSize, kSize = form.kvHeads * form.headSize;
  if (form.qkv == QkvForm::Grouped && form.kvHeads != 1)
    return projectGrouped(x, layer);
  if (form.qkv != QkvForm::Separate) { // one group is Q, K, V as well
    Value all = linear(x, DecoderPart::QueryKeyValue, layer, qSize + 2 * kSize, form.qkvBias);
    return {columns(all, 0, qSize), columns(all, qSize, kSize), columns(all, qSize + kSize, kSize)};
  }
  const auto project = [&](DecoderPart part, int64_t outputs, uint64_t permuted) -> Value {
    Value weight = matrix(part, layer, outputs, llm::dim(x, 1));
    Value shift = form.qkvBias ? bias(part, layer, outputs) : Value();
    if (failed)
      return {};
    if (form.permutedHeads && permuted) {
      weight = unpermuted(weight, permuted);
      shift = unpermuted(shift, permuted);
    }
    return llm::LinearOp::create(builder, loc, rows(outputs), x, weight, shift);
  };
  Qkv result;
  result.q = project(DecoderPart::Query, qSize, form.heads);
  result.k = project(DecoderPart::Key, kSize, form.kvHeads);
  result.v = project(DecoderPart::Value, kSize, 0);
  return result;
}

Value StepBuilder::headNorm(Value x, DecoderPart part, uint64_t layer) {
  const int64_t size =
      config.attention.qkNorm == QkNorm::Head ? config.attention.headSize : llm::dim(x, 1);
  Value factor = weight(part, layer, {size});
  if (failed)
    return {};
  return llm::RmsNormOp::create(builder, loc, x.getType(), x, factor, real(config.norm.eps),
                                config.norm.plusOne ? builder.getUnitAttr() : UnitAttr(),
                                size == llm::dim(x, 1) ? IntegerAttr() : number(size));
}

/// What attention adds, but for the norm after it and the multiplier.
Value StepBuilder::attention(Value x, uint64_t layer) {
  if (config.attention.latent.rank)
    return latentAttention(x, layer);
  const AttentionForm &form = config.attention;
  const DecoderLayer &own = config.layers[layer];
  const int64_t heads = form.heads, kvHeads = form.kvHeads, size = form.headSize;
  Qkv p = failed ? Qkv() : projectQkv(x, layer);
  if (!failed && form.qkNorm != QkNorm::None) {
    p.q = headNorm(p.q, DecoderPart::QueryNorm, layer);
    p.k = failed ? Value() : headNorm(p.k, DecoderPart::KeyNorm, layer);
  }
  Value table = own.rope >= 0 && !failed ? angles(own.rope) : Value();
  if (failed)
    return {};
  if (table) {
    auto interleaved = form.interleavedRope ? builder.getUnitAttr() : UnitAttr();
    const auto rotate = [&](Value v, int64_t count) -> Value {
      return llm::RopeOp::create(builder, loc, v.getType(), v, table, number(count), interleaved);
    };
    p.q = rotate(p.q, heads);
    p.k = rotate(p.k, kvHeads);
  }
  auto kvType = llm::KvType::get(builder.getContext(), kvHeads, size, size, llm::Element::F32,
                                 /*paged=*/false);
  Value cache = llm::KvCacheOp::create(builder, loc, kvType, number(layer));
  cache = llm::KvAppendOp::create(builder, loc, kvType, cache, p.k, p.v);
  double scale = own.attentionScale ? own.attentionScale : form.scale;
  if (scale == 0)
    scale = 1.0 / std::sqrt(static_cast<double>(size));
  Value slopes;
  if (form.alibi) {
    std::vector<float> values = alibiSlopes(heads);
    for (float &value : values)
      value = static_cast<float>(value * form.alibiScale);
    slopes = llm::WeightConstantOp::create(
        builder, loc, RankedTensorType::get({heads}, builder.getF32Type()),
        DenseElementsAttr::get(RankedTensorType::get({heads}, builder.getF32Type()),
                               ArrayRef<float>(values)));
  }
  auto mixed =
      llm::AttentionOp::create(builder, loc, rows(heads * size), p.q, cache, slopes, heads, scale);
  if (form.sinks) {
    Value sinks = take(names.of(DecoderPart::Sinks, layer), {heads});
    if (failed)
      return {};
    mixed.getSinksMutable().assign(sinks);
    sinks.getDefiningOp()->moveBefore(mixed);
  }
  if (own.window)
    mixed.setWindow(own.window);
  if (form.softcap > 0)
    mixed.setSoftcapAttr(real(form.softcap));
  return linear(mixed, DecoderPart::Output, layer, config.hidden, form.outputBias);
}
