//===- LatentBuilder.cpp - multi-head latent attention ----------------------------===//

#include "compiler/import/decoder/StepBuilder.h"

#include <cmath>

using namespace mlir;
using namespace llmc;

/// The norms inside of latent attention are RMS norms of their own rows.
Value StepBuilder::rmsNorm(Value x, DecoderPart part, uint64_t layer) {
  Value factor = failed ? Value() : weight(part, layer, {llm::dim(x, 1)});
  return failed ? Value()
                : llm::RmsNormOp::create(builder, loc, x.getType(), x, factor,
                                         real(config.norm.eps), UnitAttr(), IntegerAttr())
                      .getResult();
}

Value StepBuilder::latentAttention(Value x, uint64_t layer) {
  const AttentionForm &form = config.attention;
  const LatentForm &latent = form.latent;
  const DecoderLayer &own = config.layers[layer];
  const int64_t heads = form.heads, nope = latent.nopeSize, rope = latent.ropeSize;
  const int64_t rank = latent.rank, value = latent.valueSize;
  Value query = x;
  if (latent.queryRank) {
    query = linear(query, DecoderPart::QueryDown, layer, latent.queryRank, false);
    query = rmsNorm(query, DecoderPart::QueryDownNorm, layer);
  }
  query = linear(query, latent.queryRank ? DecoderPart::QueryUp : DecoderPart::Query, layer,
                 heads * (nope + rope), false);
  Value both = linear(x, DecoderPart::LatentDown, layer, rank + rope, form.qkvBias);
  Value row = rmsNorm(columns(both, 0, rank), DecoderPart::LatentNorm, layer);
  Value key = columns(both, rank, rope);

  llm::LatentAttention parts;
  llm::WeightViews views(builder, loc);
  if (const std::string keys = names.of(DecoderPart::KeyUp, layer); tensors.has(keys)) {
    // Taken apart, and turned for the queries, by the converter.
    Value keyUp = take(keys, {heads, rank, nope});
    Value valueUp = take(names.of(DecoderPart::ValueUp, layer), {heads, value, rank});
    for (int64_t head = 0; head != heads && !failed; ++head) {
      parts.keyUp.push_back(views.transpose(views.part(keyUp, head)));
      parts.valueUp.push_back(views.part(valueUp, head));
    }
  } else {
    Value up = weight(DecoderPart::LatentUp, layer, {heads * (nope + value), rank});
    for (int64_t head = 0; head != heads && !failed; ++head) {
      parts.keyUp.push_back(views.rows(up, head * (nope + value), nope));
      parts.valueUp.push_back(views.rows(up, head * (nope + value) + nope, value));
    }
  }
  Value table = failed ? Value() : angles(own.rope);
  if (failed)
    return {};
  parts.layer = static_cast<int64_t>(layer);
  parts.heads = heads;
  parts.nope = nope;
  parts.value = value;
  parts.query = parts.rotated = query;
  parts.latent = row;
  parts.key = key;
  parts.angles = table;
  parts.interleaved = form.interleavedRope;
  parts.scale = own.attentionScale ? own.attentionScale : form.scale;
  if (parts.scale == 0)
    parts.scale = 1.0 / std::sqrt(static_cast<double>(nope + rope));
  Value mixed = llm::buildLatentAttention(builder, loc, parts);
  return linear(mixed, DecoderPart::Output, layer, config.hidden, form.outputBias);
}
