//===- GroupQueryAttention.cpp - attention with its cache, contiguous and sparse ----===//
#include "codegen/cpu/graph/CachedAttention.h"

namespace llmc::graphcode {

/// Where a token's query, key and value begin, and how far apart two tokens' are.
struct Projections {
  const Value *values[3];
  int64_t first[3], stride[3];
};

/// The cache with the new keys (or values) in it, as the kernel reads it: \p wide of \p type
/// (f32 or f64), and as it is given back, \p stored: the same tensor, or one of the cache's type.
struct Cache {
  Value *wide, *stored;
};

/// past [batch, heads, places, size] or null grows to \p total places. An int8 cache has one scale,
/// or one a channel [1, heads, 1, size].
static int32_t openCache(Graph *g, const Value *past, const Value *scales, int64_t type,
                         int64_t batch, int64_t heads, int64_t total, int64_t size, Cache &cache) {
  int64_t before = past ? past->dims[2] : 0, dims[4] = {batch, heads, total, size};
  if (past && (past->rank != 4 || past->dims[0] != batch || past->dims[1] != heads ||
               past->dims[3] != size))
    return fail(g, LLMRT_GRAPH_SHAPE, past->rank == 4 ? past->dims[3] : past->rank, size);
  if (scales && scales->count != 1 && scales->count != heads * size)
    return fail(g, LLMRT_GRAPH_SHAPE, scales->count, heads * size);
  GRAPH_TRY(newTensor(g, type, 4, dims, cache.wide));
  cache.stored = retain(cache.wide);
  if (scales) {
    release(g, cache.stored);
    GRAPH_TRY(newTensor(g, LLMRT_TYPE_I8, 4, dims, cache.stored));
  }
  for (int64_t r = 0; r < batch * heads; ++r)
    for (int64_t p = 0; p < total; ++p)
      for (int64_t d = 0; d < size; ++d) {
        int64_t to = (r * total + p) * size + d, from = (r * before + p) * size + d;
        if (!scales) {
          storeReal(cache.wide, to, p < before ? realAt(past, from) : 0);
          continue;
        }
        int8_t code = p < before ? data<int8_t>(past)[from] : int8_t(0);
        data<int8_t>(cache.stored)[to] = code;
        int64_t at = scales->count == 1 ? 0 : r % heads * size + d;
        storeReal(cache.wide, to, double(code) * realAt(scales, at));
      }
  return 0;
}

/// Sets an element of the cache; what is read is what is stored.
GRAPH_INLINE void storeCache(Cache &cache, const Value *scales, int64_t channel, int64_t to,
                             double x) {
  if (scales) {
    double scale = realAt(scales, scales->count == 1 ? 0 : channel);
    double code = __builtin_elementwise_roundeven(x / scale);
    code = code < -128 ? -128 : code > 127 ? 127 : code == code ? code : 0;
    data<int8_t>(cache.stored)[to] = int8_t(code);
    x = code * scale;
  }
  storeReal(cache.wide, to, x);
}

/// Whether a layout in compressed sparse rows, rows [layouts, blocks + 1] and columns [layouts,
/// most], lets a block of queries see a block of keys.
GRAPH_INLINE bool seesBlock(const Value *rows, const Value *columns, int64_t layout, int64_t query,
                            int64_t key) {
  int64_t most = columns->dims[1], base = layout * rows->dims[1] + query;
  int64_t begin = max<int64_t>(indexAt(rows, base), 0), end = min(indexAt(rows, base + 1), most);
  for (int64_t i = begin; i < end; ++i)
    if (indexAt(columns, layout * most + i) == key)
      return true;
  return false;
}

static int32_t groupQueryAttention(Graph *g, Value *const *in, Value **out, const int64_t *attrs,
                                   int64_t type) {
  Value *past = in[3], *pastValue = in[4], *lengths = in[5], *places = in[9], *bias = in[10];
  Value *cosines = attrs[5] ? in[7] : nullptr, *sines = in[8], *sinks = in[11];
  Value *rows = in[14], *columns = in[15];
  int64_t heads = attrs[2], kvHeads = attrs[3], window = attrs[4], mode = attrs[10];
  int64_t block = attrs[11];
  double scale = realAttr(attrs[0]), softcap = realAttr(attrs[1]);
  if (in[0]->rank != 3 || (in[1] && (in[1]->rank != 3 || in[2]->rank != 3)))
    return fail(g, LLMRT_GRAPH_RANK, in[0]->rank, 3);
  int64_t batch = in[0]->dims[0], S = in[0]->dims[1];
  int64_t parts = in[1] ? heads : heads + 2 * kvHeads, size = in[0]->dims[2] / parts;
  if (in[0]->dims[2] % parts != 0 || size == 0)
    return fail(g, LLMRT_GRAPH_SHAPE, in[0]->dims[2], parts);
  for (int i = 1; i < 3 && in[1]; ++i)
    if (in[i]->dims[0] != batch || in[i]->dims[1] != S || in[i]->dims[2] != kvHeads * size)
      return fail(g, LLMRT_GRAPH_SHAPE, in[i]->dims[2], kvHeads * size);
  int64_t kvWidth = kvHeads * size, width = heads * size;
  Projections p = {{in[0], in[1], in[2]}, {0, 0, 0}, {width, kvWidth, kvWidth}};
  if (!in[1])
    p = {{in[0], in[0], in[0]},
         {0, width, width + kvWidth},
         {width + 2 * kvWidth, width + 2 * kvWidth, width + 2 * kvWidth}};
  if (in[6]->count != 1 || lengths->count != batch)
    return fail(g, LLMRT_GRAPH_SHAPE, lengths->count, batch);
  int64_t longest = indexAt(in[6], 0), total = max(longest, past ? past->dims[2] : int64_t(0));
  if (longest < S)
    return fail(g, LLMRT_GRAPH_ARGUMENT, longest);
  GRAPH_TRY(checkTables(g, cosines, sines, size));
  if ((places && places->count != batch * S) || (sinks && sinks->count != heads))
    return fail(g, LLMRT_GRAPH_SHAPE, places ? places->count : sinks->count, batch * S);
  int64_t strides[4] = {}, biasWidth = total;
  if (bias) {
    int64_t dims[4] = {batch, heads, S, 0};
    if (bias->rank != 4)
      return fail(g, LLMRT_GRAPH_RANK, bias->rank, 4);
    biasWidth = dims[3] = bias->dims[3];
    for (int d = 0; d < 3; ++d)
      if (bias->dims[d] != 1 && bias->dims[d] != dims[d])
        return fail(g, LLMRT_GRAPH_BROADCAST, bias->dims[d], dims[d]);
    broadcastStrides(bias, 4, dims, strides);
  }
  if (rows && (!columns || rows->rank != 2 || columns->rank != 2 || rows->dims[0] == 0 ||
               rows->dims[0] != columns->dims[0] || block < 1 ||
               (longest - 1) / block >= rows->dims[1] - 1))
    return fail(g, LLMRT_GRAPH_SHAPE, rows->count, longest);
  Cache keys, values;
  GRAPH_TRY(openCache(g, past, in[12], type, batch, kvHeads, total, size, keys));
  GRAPH_TRY(openCache(g, pastValue, in[13], type, batch, kvHeads, total, size, values));
  int64_t dims[3] = {batch, S, width}, scoreDims[4] = {batch, heads, S, longest};
  GRAPH_TRY(newTensor(g, type, 3, dims, out[0]));
  Value *shown = nullptr;
  if (mode != 0)
    GRAPH_TRY(newTensor(g, type, 4, scoreDims, shown));
  if (scale == 0)
    scale = 1 / rootOf(double(size));
  double *head, *scores;
  GRAPH_TRY(scratch(g, 2 * size + total, head));
  double *sums = head + size;
  scores = sums + size;
  for (int64_t b = 0; b < batch; ++b) {
    int64_t length = indexAt(lengths, b) + 1, before = S == longest ? 0 : length - S;
    if (length < 0 || length > longest || before < 0 || before + S > total ||
        before > (past ? past->dims[2] : 0))
      return fail(g, LLMRT_GRAPH_ARGUMENT, length - 1);
    auto placeOf = [&](int64_t s) { return places ? indexAt(places, b * S + s) : before + s; };
    for (int64_t s = 0; s < S; ++s)
      for (int64_t h = 0; h < kvHeads; ++h) {
        int64_t to = ((b * kvHeads + h) * total + before + s) * size;
        auto part = [&](int i, int64_t d) {
          return realAt(p.values[i], (b * S + s) * p.stride[i] + p.first[i] + h * size + d);
        };
        // Behind a sequence's end are tokens that only fill the batch: their places may be none.
        bool isFiller = before + s >= length;
        GRAPH_TRY(rotateHead(g, isFiller ? nullptr : cosines, sines, placeOf(s), attrs[6], size,
                             head, [&](int64_t d) { return part(1, d); }));
        for (int64_t d = 0; d < size; ++d) {
          storeCache(keys, in[12], h * size + d, to + d, head[d]);
          storeCache(values, in[13], h * size + d, to + d, part(2, d));
        }
      }
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t s = 0; s < S; ++s) {
        int64_t place = before + s, kvHead = b * kvHeads + h / (heads / kvHeads);
        int64_t seen = attrs[9] ? length : min(place + 1, length);
        int64_t first = window > 0 && place >= window ? place - window + 1 : 0;
        GRAPH_TRY(rotateHead(
            g, place < length ? cosines : nullptr, sines, placeOf(s), attrs[6], size, head,
            [&](int64_t d) { return realAt(in[0], (b * S + s) * p.stride[0] + h * size + d); }));
        int64_t layout = rows ? h % rows->dims[0] : 0;
        int64_t row = ((b * heads + h) * S + s) * longest;
        for (int64_t j = 0; j < longest; ++j) {
          scores[j] = -__builtin_inf();
          if (mode == 1)
            storeReal(shown, row + j, 0); // of a key that isn't seen, as ONNX Runtime gives it
          if (j < first || j >= seen || j >= biasWidth ||
              (rows && !seesBlock(rows, columns, layout, place / block, j / block)))
            continue;
          double score = 0;
          for (int64_t d = 0; d < size; ++d)
            score += head[d] * realAt(keys.wide, (kvHead * total + j) * size + d);
          score *= scale;
          if (softcap > 0)
            score = softcap * mathOf(g, LLMRT_MATH_TANH, score / softcap);
          if (bias)
            score +=
                realAt(bias, b * strides[0] + h * strides[1] + s * strides[2] + j * strides[3]);
          scores[j] = score;
          if (mode == 1)
            storeReal(shown, row + j, score);
        }
        double sink = sinks ? realAt(sinks, h) : attrs[7] ? 0 : -__builtin_inf();
        softmaxWithSink(g, scores, longest, sink);
        for (int64_t j = 0; mode == 2 && j < longest; ++j)
          storeReal(shown, row + j, scores[j]);
        for (int64_t d = 0; d < size; ++d)
          sums[d] = 0;
        for (int64_t j = 0; j < longest; ++j)
          for (int64_t d = 0; scores[j] != 0 && d < size; ++d)
            sums[d] += scores[j] * realAt(values.wide, (kvHead * total + j) * size + d);
        for (int64_t d = 0; d < size; ++d)
          storeReal(out[0], (b * S + s) * width + h * size + d, sums[d]);
      }
  }
  g->release(g, head);
  release(g, keys.wide);
  release(g, values.wide);
  int next = 1;
  if (attrs[8]) {
    out[next++] = keys.stored;
    out[next++] = values.stored;
  } else {
    release(g, keys.stored);
    release(g, values.stored);
  }
  if (shown)
    out[next] = shown;
  return 0;
}

} // namespace llmc::graphcode

using namespace llmc::graphcode;

/// query, key, value, past key, past value, lengths less 1, longest length, cos, sin, positions,
/// bias, sinks, scales of keys and values in an int8 cache, and of a block-sparse layout its rows
/// and columns (all but query, lengths and longest may be null); attrs: scale (0: 1 / sqrt(size)),
/// softcap, query heads, key heads, window, whether to rotate, interleaved, a sink of 0, whether
/// the cache is given back, not causal, which scores are given (0 none, 1 before the softmax, 2
/// behind it), places a block
LLMC_GRAPH_KERNEL(group_query_attention) {
  int results = 1 + (attrs[8] ? 2 : 0) + (attrs[10] ? 1 : 0);
  return computed(g, in, out, type, 16, results, [&](Value *const *in, Value **out) {
    return groupQueryAttention(g, in, out, attrs, computeType(type));
  });
}
