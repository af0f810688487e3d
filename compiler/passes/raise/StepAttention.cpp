//===- StepAttention.cpp - Attention and its cache ----------------------------------===//

#include "compiler/passes/raise/Match.h"
#include "compiler/passes/raise/Step.h"
#include "dialects/graph/NodeLocation.h"

#include <cmath>

using namespace mlir;
using namespace llmc;
using namespace llmc::graph;
using namespace llmc::raise;

std::optional<Step::Projection> Step::readProjection(Lifted &value, int64_t headsIfFolded,
                                                     AxisKind sequence, std::string &problem) {
  Projection result;
  const Axes &axes = value.axes;
  bool isBatch = !axes.empty() && (axes[0].empty() || isOnly(axes[0], AxisKind::Batch));
  if (axes.size() == 3 && headsIfFolded > 0 && isBatch && isOnly(axes[1], sequence) &&
      isOnly(axes[2], AxisKind::Feature)) {
    // [batch, sequence, heads * size]
    if (axes[2][0].size % headsIfFolded != 0) {
      problem = "the number of heads does not divide the number of features";
      return std::nullopt;
    }
    result.heads = headsIfFolded;
    result.size = axes[2][0].size / headsIfFolded;
  } else if (axes.size() == 4 && isBatch && isOnly(axes[2], sequence) &&
             (axes[3].empty() || isOnly(axes[3], AxisKind::Feature))) {
    // [batch, heads, sequence, size]; heads may be repeated, each several times in a row.
    result.size = axes[3].empty() ? 1 : axes[3][0].size;
    bool sawRepeat = false;
    for (const Axis &axis : axes[1]) {
      if (axis.kind == AxisKind::Feature && !sawRepeat) {
        result.heads *= axis.size;
      } else if (axis.kind == AxisKind::Repeat) {
        result.repeat *= axis.size;
        sawRepeat = true;
      } else {
        problem = "heads are repeated in an order other than each one several times in a row";
        return std::nullopt;
      }
    }
  } else {
    problem = "queries, keys and values must be [batch, heads, sequence, size]";
    return std::nullopt;
  }
  result.rows = materialize(value, problem);
  result.layer = value.kind == Lifted::Cache ? value.layer : -1;
  return result.rows ? std::optional(result) : std::nullopt;
}

Lifted Step::cacheOf(Value rows, int64_t layer, bool isKey, int64_t heads, int64_t size) {
  Lifted result;
  result.kind = Lifted::Cache;
  result.rows = rows;
  result.layer = layer;
  result.isKey = isKey;
  result.axes = {batch,
                 {{AxisKind::Feature, heads, size}},
                 {{AxisKind::Keys}},
                 {{AxisKind::Feature, size, 1}}};
  return result;
}

Value Step::attend(Operation *op, const Projection &q, const Projection &k, const Projection &v,
                   double scale, double softcap, const MaskMeaning &mask, std::string &problem,
                   Value sinks) {
  Value scores = sinks ? weight(sinks, nodeName(op->getLoc()), problem) : Value();
  if (sinks && !scores)
    return {};
  if (scores && llm::tensorType(scores).getShape() != ArrayRef<int64_t>{q.heads}) {
    problem = llvm::formatv("{0} heads need as many sinks", q.heads);
    return {};
  }
  if (k.heads != v.heads || k.layer != v.layer || k.repeat != v.repeat) {
    problem = "keys and values must have the same heads and come from the cache of one layer";
    return {};
  }
  if (q.repeat != 1 || q.size != k.size || q.heads % k.heads != 0 ||
      (k.repeat != 1 && k.heads * k.repeat != q.heads)) {
    problem = llvm::formatv("{0} query heads of size {1} do not fit {2} key heads of size {3}",
                            q.heads, q.size, k.heads * k.repeat, k.size);
    return {};
  }
  int64_t number = k.layer;
  if (number < 0) // A graph without a cache: its layers are numbered as they come.
    number = layers.empty() ? 0 : layers.rbegin()->first + 1;
  auto [found, isNew] = layers.try_emplace(number);
  Layer &layer = found->second;
  if (!isNew) {
    problem = llvm::formatv("the cache of layer {0} is used by two attentions", number);
    return {};
  }
  Location loc = op->getLoc();
  auto kv = llm::KvType::get(builder.getContext(), k.heads, k.size, v.size, llm::Element::F32,
                             /*paged=*/false);
  Value cache = llm::KvCacheOp::create(builder, loc, kv, builder.getI64IntegerAttr(number));
  Value appended = llm::KvAppendOp::create(builder, loc, kv, cache, k.rows, v.rows);
  layer = {q.heads, k.heads, k.size, v.size, mask.window, appended};
  auto type = RankedTensorType::get({ShapedType::kDynamic, q.heads * v.size}, builder.getF32Type());
  Value slopes;
  if (!mask.slopes.empty()) {
    std::vector<float> all = mask.slopes;
    if (all.size() == 1)
      all.resize(q.heads, all.front());
    if (static_cast<int64_t>(all.size()) != q.heads) {
      problem =
          llvm::formatv("the position bias has {0} heads, the queries {1}", all.size(), q.heads);
      return {};
    }
    auto values = DenseElementsAttr::get(RankedTensorType::get({q.heads}, builder.getF32Type()),
                                         ArrayRef<float>(all));
    slopes = llm::WeightConstantOp::create(builder, loc, values.getType(), values);
  }
  auto attention =
      llm::AttentionOp::create(builder, loc, type, q.rows, appended, slopes, q.heads, scale);
  if (scores)
    attention.getSinksMutable().assign(scores);
  if (mask.window)
    attention.setWindow(*mask.window);
  if (softcap > 0)
    attention.setSoftcapAttr(builder.getF64FloatAttr(softcap));
  return attention;
}

Lifted Step::liftAttention(graph::AttentionOp op) {
  Lifted q = of(op.getQ()), k = of(op.getK()), v = of(op.getV());
  if (const Lifted *unknown = firstUnknown({op.getQ(), op.getK(), op.getV()}))
    return unknown->culprit ? *unknown : fail(op, unknown->reason);
  if (op.getNonpadKvSeqlen() || op.getQk())
    return fail(op, "nonpad_kv_seqlen and the output of the scores are not supported");
  if (q.kind == Lifted::Pair && k.kind == Lifted::Cache && k.tail)
    return liftLatentAttention(op, q, k, v);
  std::string problem;
  int64_t pastLayer = -1;
  if (op.getPastKey()) {
    // The cache is joined by the operation itself.
    pastLayer = of(op.getPastKey()).layer;
    if (pastLayer < 0 || of(op.getPastValue()).layer != pastLayer || !of(op.getPastKey()).isKey ||
        of(op.getPastValue()).isKey)
      return fail(op, "past_key and past_value must be the graph's inputs of one layer");
  }
  auto sequenceOf = [](const Lifted &value) {
    return value.kind == Lifted::Cache ? AxisKind::Keys : AxisKind::Fresh;
  };
  auto pq = readProjection(q, op.getQNumHeads(), AxisKind::Fresh, problem);
  auto pk = pq ? readProjection(k, op.getKvNumHeads(), sequenceOf(k), problem) : std::nullopt;
  auto pv = pk ? readProjection(v, op.getKvNumHeads(), sequenceOf(v), problem) : std::nullopt;
  if (!pv)
    return fail(op, problem);
  if (op.getPastKey()) {
    if (pk->layer >= 0 || pv->layer >= 0 || pk->repeat != 1)
      return fail(op, "keys are joined with a cache twice");
    pk->layer = pv->layer = pastLayer;
  }
  // Without a past input the operation counts positions from its first key: right only if there is
  // no cache.
  bool isCausal = op.getIsCausal() && (op.getPastKey() || pk->layer < 0);
  MaskMeaning meaning = readMask(samples, op.getMask(), isCausal);
  if (!meaning.problem.empty())
    return fail(op, meaning.problem);
  double scale = op.getScale() ? op.getScale()->convertToFloat()
                               : 1.0 / std::sqrt(static_cast<double>(pq->size));
  Value rows = attend(op, *pq, *pk, *pv, scale, op.getSoftcap().convertToFloat(), meaning, problem,
                      op.getSinks());
  if (!rows)
    return fail(op, problem);
  int64_t layer = pk->layer;
  if (op.getPresentKey())
    of(op.getPresentKey()) = cacheOf(pk->rows, layer, true, pk->heads, pk->size);
  if (op.getPresentValue())
    of(op.getPresentValue()) = cacheOf(pv->rows, layer, false, pv->heads, pv->size);
  if (q.axes.size() == 3)
    return rowsLike({batch, {{AxisKind::Fresh}}, {{AxisKind::Feature, pq->heads * pv->size, 1}}},
                    rows);
  return rowsLike({batch,
                   {{AxisKind::Feature, pq->heads, pv->size}},
                   {{AxisKind::Fresh}},
                   {{AxisKind::Feature, pv->size, 1}}},
                  rows);
}

Lifted Step::liftGroupQueryAttention(GroupQueryAttentionOp op) {
  Lifted q = of(op.getQuery());
  if (q.kind != Lifted::Rows)
    return q.culprit ? q : fail(op, q.kind == Lifted::Unknown ? q.reason : "its query is not rows");
  if (op.getAttentionBias() || op.getSmoothSoftmax())
    return fail(op, "attention_bias and smooth_softmax are not supported");
  int64_t heads = op.getNumHeads(), kvHeads = op.getKvNumHeads();
  std::string problem;
  // Lengths: seqlens_k is each sequence's length minus 1, total_sequence_length the longest.
  for (auto [index, sample] : llvm::enumerate(samples.samples())) {
    HostArrayRef lengths = samples.data(op.getSeqlensK(), index),
                 total = samples.data(op.getTotalSequenceLength(), index);
    bool isPlain =
        lengths && total && total->size() == 1 && total->ints[0] == sample.total() &&
        llvm::all_of(lengths->ints, [&](int64_t length) { return length == sample.total() - 1; });
    if (!isPlain)
      return fail(
          op,
          "seqlens_k and total_sequence_length must be the lengths that the attention mask says");
  }
  Lifted k, v;
  if (op.getKey()) {
    k = of(op.getKey());
    v = of(op.getValue());
    if (const Lifted *unknown = firstUnknown({op.getKey(), op.getValue()}))
      return unknown->culprit ? *unknown : fail(op, unknown->reason);
  } else {
    // query, key and value one after the other in the columns of one matrix
    if (q.axes.size() != 3 || !isOnly(q.axes[2], AxisKind::Feature) ||
        q.axes[2][0].size % (heads + 2 * kvHeads) != 0)
      return fail(op, "a packed query must hold num_heads + 2 * kv_num_heads heads of one size");
    int64_t size = q.axes[2][0].size / (heads + 2 * kvHeads);
    k = v = q;
    q.axes[2][0].size = heads * size;
    k.axes[2][0].size = v.axes[2][0].size = kvHeads * size;
    k.offset += heads * size;
    v.offset += (heads + kvHeads) * size;
  }
  auto pq = readProjection(q, heads, AxisKind::Fresh, problem);
  auto pk = pq ? readProjection(k, kvHeads, AxisKind::Fresh, problem) : std::nullopt;
  auto pv = pk ? readProjection(v, kvHeads, AxisKind::Fresh, problem) : std::nullopt;
  if (!pv)
    return fail(op, problem);
  if (op.getPastKey()) {
    Lifted &pastKey = of(op.getPastKey()), &pastValue = of(op.getPastValue());
    if (pastKey.layer < 0 || pastKey.layer != pastValue.layer || !pastKey.isKey || pastValue.isKey)
      return fail(op, "past_key and past_value must be the graph's inputs of one layer");
    pk->layer = pv->layer = pastKey.layer;
  }
  if (op.getDoRotary()) {
    if (op.getPositionIds() && positionOffset(op.getPositionIds()) != 0)
      return fail(op, "its position_ids are not the tokens' positions");
    int64_t rotary = 2 * tableColumns(op.getCosCache());
    if (rotary <= 0 || rotary > pq->size)
      return fail(op, "cos_cache must be [positions, rotated / 2]");
    Value table = anglesFromTables(op, op.getCosCache(), op.getSinCache(), rotary, problem);
    if (!table)
      return fail(op, problem);
    pq->rows = rotate(op, pq->rows, table, heads, op.getRotaryInterleaved());
    pk->rows = rotate(op, pk->rows, table, kvHeads, op.getRotaryInterleaved());
  }
  double scale = op.getScale().convertToFloat();
  if (scale == 0)
    scale = 1.0 / std::sqrt(static_cast<double>(pq->size));
  // The query's own key counts, as in Hugging Face's models: ONNX Runtime before 1.23 saw one more.
  MaskMeaning mask;
  if (static_cast<int64_t>(op.getLocalWindowSize()) > 0)
    mask.window = static_cast<int64_t>(op.getLocalWindowSize());
  Value rows = attend(op, *pq, *pk, *pv, scale, op.getSoftcap().convertToFloat(), mask, problem,
                      op.getHeadSink());
  if (!rows)
    return fail(op, problem);
  if (op.getPresentKey())
    of(op.getPresentKey()) = cacheOf(pk->rows, pk->layer, true, kvHeads, pk->size);
  if (op.getPresentValue())
    of(op.getPresentValue()) = cacheOf(pv->rows, pv->layer, false, kvHeads, pv->size);
  return rowsLike({batch, {{AxisKind::Fresh}}, {{AxisKind::Feature, heads * pv->size, 1}}}, rows);
}
