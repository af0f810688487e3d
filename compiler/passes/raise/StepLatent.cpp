//===- StepLatent.cpp - Multi-head latent attention -----------------------------------===//
//
// Exports of DeepSeek's models cache what its up projections make of the latent rows: keys
// [not rotated, rotated] and values of every head. Both come from one product, W c, so the cache
// needs c alone (and the rotated part of the key, which the heads share):
//
//   keys = concat(past, concat(view of W c, expand(rotate(key part))))
//   values = concat(past, view of W c)
//
// is llm.latent_append of c, and W goes to the queries and the results (see buildLatentAttention).
//
//===----------------------------------------------------------------------------------===//

#include "compiler/passes/raise/Match.h"
#include "compiler/passes/raise/Step.h"
#include "dialects/graph/NodeLocation.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::graph;
using namespace llmc::raise;

/// A rotation of the last values of each head, or of pairs (2i, 2i+1) that are put in order first
/// ([size / 2, 2] -> [2, size / 2], then halves are rotated). The order of a head's values in the
/// result has no meaning where queries and keys have the same.
std::optional<Lifted> Step::liftPartRotation(RotaryEmbeddingOp op, const Lifted &x) {
  if (op.getPositionIds() || op.getRotaryDim() || x.axes.size() != 4)
    return std::nullopt;
  Lifted part = x;
  AxisGroup &last = part.axes.back();
  bool isOrdered = last.size() == 2 && last[0].kind == AxisKind::Feature &&
                   last[1].kind == AxisKind::Feature && last[0].size == 2 && last[0].stride == 1 &&
                   last[1].stride == 2 && !op.getInterleaved();
  if (isOrdered) {
    last = {{AxisKind::Feature, 2 * last[1].size, 1}};
  } else {
    AxisGroup features = featuresOf(x.axes);
    // The end of each head; a whole head amid those of a fused projection (Falcon's keys) is not.
    bool isLater = isOnly(last, AxisKind::Feature) && last[0].stride == 1 && features.size() == 2 &&
                   features[0].stride > last[0].size &&
                   x.offset % features[0].stride + last[0].size == features[0].stride;
    if (!isLater)
      return std::nullopt;
  }
  std::string problem;
  Value table =
      angles(op, op.getCos(), op.getSin(), Value(), last[0].size, op.getInterleaved(), problem);
  if (!table)
    return fail(op, problem);
  part.kind = Lifted::Rotated;
  part.angles = table;
  part.interleaved = isOrdered || op.getInterleaved();
  return part;
}

/// A head's first values, as they are, and the rotated ones behind them.
std::optional<Lifted> Step::liftPair(const Lifted &first, const Lifted &second, int64_t axis) {
  bool isRotated = second.kind == Lifted::Rotated ||
                   (second.kind == Lifted::Rows && second.rows.getDefiningOp<llm::RopeOp>());
  if (first.kind != Lifted::Rows || !isRotated || first.axes.size() != 4 ||
      second.axes.size() != 4 || axis != 3)
    return std::nullopt;
  if (!isOnly(first.axes[3], AxisKind::Feature) || !isOnly(second.axes[3], AxisKind::Feature) ||
      first.axes[0] != second.axes[0] || first.axes[2] != second.axes[2])
    return std::nullopt;
  Lifted pair = first;
  pair.kind = Lifted::Pair;
  pair.tail = std::make_shared<Lifted>(second);
  return pair;
}

std::optional<Step::Rotation> Step::rotationOf(Lifted tail, std::string &problem) {
  if (tail.kind == Lifted::Rows) {
    auto rope = tail.rows.getDefiningOp<llm::RopeOp>();
    return Rotation{rope.getInput(), rope.getAngles(), rope.getInterleaved()};
  }
  Value table = tail.angles;
  tail.kind = Lifted::Rows;
  for (AxisGroup &group : tail.axes)
    llvm::erase_if(group, [](const Axis &axis) { return axis.kind == AxisKind::Repeat; });
  Value rows = materialize(tail, problem);
  return rows ? std::optional(Rotation{rows, table, tail.interleaved}) : std::nullopt;
}

Lifted Step::liftLatentAttention(graph::AttentionOp op, Lifted &q, Lifted &k, Lifted &v) {
  std::string problem;
  auto up = k.rows.getDefiningOp<llm::LinearOp>();
  // [batch][heads][keys][size], every head `stride` columns after the one before.
  auto isHeads = [&](const Lifted &view, AxisKind sequence) {
    return view.axes.size() == 4 && isOnly(view.axes[1], AxisKind::Feature) &&
           isOnly(view.axes[2], sequence) && isOnly(view.axes[3], AxisKind::Feature) &&
           view.axes[3][0].stride == 1;
  };
  if (v.kind != Lifted::Cache || v.tail || v.layer != k.layer || v.isKey || !k.isKey || !up ||
      v.rows != k.rows || up.getBias() || up.getResidual() || !isHeads(q, AxisKind::Fresh) ||
      !isHeads(k, AxisKind::Keys) || !isHeads(v, AxisKind::Keys) || k.axes[1] != v.axes[1] ||
      k.axes[1][0].size != q.axes[1][0].size)
    return fail(op, "keys with a part that all heads share must come, as the values do, from one "
                    "projection of a latent row (multi-head latent attention)");
  llm::LatentAttention parts;
  const int64_t heads = k.axes[1][0].size, stride = k.axes[1][0].stride;
  parts.layer = k.layer;
  parts.heads = heads;
  parts.nope = k.axes[3][0].size;
  parts.value = v.axes[3][0].size;
  const int64_t rotated = k.tail->axes[3][0].size;
  auto key = rotationOf(*k.tail, problem);
  if (!key)
    return fail(op, problem);
  // The queries: one projection, of which the rotation takes the last values of each head.
  const int64_t width = q.axes[1][0].stride;
  const Lifted &turned = *q.tail;
  Rotation query;
  if (turned.kind == Lifted::Rotated && turned.rows == q.rows &&
      turned.offset == q.offset + parts.nope && turned.axes[1] == q.axes[1] &&
      width == parts.nope + turned.axes[3][0].size) {
    query = {q.rows, turned.angles, turned.interleaved};
  } else if (auto own = rotationOf(turned, problem)) {
    query = *own;
  } else {
    return fail(op, problem);
  }
  if (q.offset != 0 || width * heads != llm::dim(q.rows, 1) || q.axes[3][0].size != parts.nope ||
      turned.axes[3][0].size != rotated || llm::dim(query.rows, 1) % heads != 0 ||
      llm::dim(key->rows, 1) != rotated || query.angles != key->angles ||
      query.interleaved != key->interleaved)
    return fail(op, "queries and keys of latent attention must be rotated alike");
  MaskMeaning meaning = readMask(samples, op.getMask(), false);
  if (!meaning.problem.empty())
    return fail(op, meaning.problem);
  if (meaning.window || !meaning.slopes.empty() || op.getSoftcap().convertToFloat() != 0 ||
      op.getPastKey() || op.getNonpadKvSeqlen() || op.getQk() || op.getSinks())
    return fail(op, "latent attention with a window, a cap or sinks is not supported");
  auto [found, isNew] = layers.try_emplace(k.layer);
  if (!isNew)
    return fail(op, llvm::formatv("the cache of layer {0} is used by two attentions", k.layer));
  parts.query = q.rows;
  parts.rotated = query.rows;
  parts.latent = up.getInput();
  parts.key = key->rows;
  parts.angles = key->angles;
  parts.interleaved = key->interleaved;
  parts.scale = op.getScale() ? op.getScale()->convertToFloat()
                              : 1.0 / std::sqrt(static_cast<double>(parts.nope + rotated));
  llm::WeightViews views(builder, op.getLoc());
  for (int64_t head = 0; head < heads; ++head) {
    parts.keyUp.push_back(views.rows(up.getWeight(), head * stride + k.offset, parts.nope));
    parts.valueUp.push_back(views.rows(up.getWeight(), head * stride + v.offset, parts.value));
  }
  Value rows = llm::buildLatentAttention(builder, op.getLoc(), parts);
  rotarySize = rotated;
  found->second = {heads, 1, parts.nope + rotated, parts.value, std::nullopt, Value()};
  return rowsLike({batch,
                   {{AxisKind::Feature, heads, parts.value}},
                   {{AxisKind::Fresh}},
                   {{AxisKind::Feature, parts.value, 1}}},
                  rows);
}
