//===- PagedAttention.cpp - attention over a cache in blocks --------------------------===//
#include "codegen/cpu/graph/CachedAttention.h"

namespace llmc::graphcode {

static int32_t pagedAttention(Graph *g, Value *const *in, Value **out, const int64_t *attrs,
                              int64_t type) {
  Value *keys = in[3], *values = in[4], *starts = in[5], *pasts = in[6], *table = in[7];
  Value *cosines = attrs[5] ? in[8] : nullptr, *sines = in[9], *slots = in[10], *sinks = in[11];
  double scale = realAttr(attrs[0]), softcap = realAttr(attrs[1]);
  int64_t heads = attrs[2], kvHeads = attrs[3], window = attrs[4];
  if (in[0]->rank != 2 || keys->rank != 4 || table->rank != 2)
    return fail(g, LLMRT_GRAPH_RANK, in[0]->rank, 2);
  int64_t tokens = in[0]->dims[0], size = keys->dims[3], width = heads * size;
  int64_t blocks = keys->dims[0], block = keys->dims[1], batch = table->dims[0];
  int64_t kvWidth = kvHeads * size, packed = width + 2 * kvWidth;
  if (keys->dims[2] != kvHeads || in[0]->dims[1] != (in[1] ? width : packed))
    return fail(g, LLMRT_GRAPH_SHAPE, in[0]->dims[1], in[1] ? width : packed);
  for (int i = 1; i < 3 && in[1]; ++i)
    if (in[i]->rank != 2 || in[i]->dims[0] != tokens || in[i]->dims[1] != kvWidth)
      return fail(g, LLMRT_GRAPH_SHAPE, in[i]->count, tokens * kvWidth);
  if (values->count != keys->count || values->rank != 4 || block == 0)
    return fail(g, LLMRT_GRAPH_SHAPE, values->count, keys->count);
  if (starts->count != batch + 1 || pasts->count != batch || (slots && slots->count != tokens) ||
      (sinks && sinks->count != heads))
    return fail(g, LLMRT_GRAPH_SHAPE, starts->count, batch + 1);
  GRAPH_TRY(checkTables(g, cosines, sines, size));
  int64_t dims[2] = {tokens, width}, most = table->dims[1] * block;
  GRAPH_TRY(newTensor(g, type, 2, dims, out[0]));
  for (int i = 0; i < 2; ++i) {
    const Value *cache = i == 0 ? keys : values;
    GRAPH_TRY(newTensor(g, type, 4, cache->dims, out[1 + i]));
    copyBytes(out[1 + i]->data, cache->data, cache->count * elementBytes(type));
  }
  if (scale == 0)
    scale = 1 / rootOf(double(size));
  double *head, *scores, *sums;
  GRAPH_TRY(scratch(g, 2 * size + most, head));
  sums = head + size;
  scores = sums + size;
  for (int64_t b = 0; b < batch; ++b) {
    int64_t begin = indexAt(starts, b), end = indexAt(starts, b + 1), past = indexAt(pasts, b);
    if (begin < 0 || end < begin || end > tokens || past < 0 || past > most - (end - begin))
      return fail(g, LLMRT_GRAPH_ARGUMENT, past);
    int64_t length = past + end - begin;
    // The first element of a place's row in the cache.
    auto rowOf = [&](int64_t place, int64_t h, int64_t &row) -> int32_t {
      int64_t at = indexAt(table, b * table->dims[1] + place / block);
      if (at < 0 || at >= blocks)
        return fail(g, LLMRT_GRAPH_INDEX, at, blocks);
      row = ((at * block + place % block) * kvHeads + h) * size;
      return 0;
    };
    for (int64_t t = begin; t < end; ++t)
      for (int64_t h = 0; h < kvHeads; ++h) {
        int64_t row = 0, place = past + t - begin, slot = slots ? indexAt(slots, t) : 0;
        if (slots && slot == -1)
          continue;
        if (slots && (slot < 0 || slot >= blocks * block))
          return fail(g, LLMRT_GRAPH_INDEX, slot, blocks * block);
        if (slots)
          row = (slot * kvHeads + h) * size;
        else
          GRAPH_TRY(rowOf(place, h, row));
        auto part = [&](int i, int64_t d) {
          return in[1] ? realAt(in[i], t * kvWidth + h * size + d)
                       : realAt(in[0], t * packed + width + (i - 1) * kvWidth + h * size + d);
        };
        GRAPH_TRY(rotateHead(g, cosines, sines, place, attrs[6], size, head,
                             [&](int64_t d) { return part(1, d); }));
        for (int64_t d = 0; d < size; ++d) {
          storeReal(out[1], row + d, head[d]);
          storeReal(out[2], row + d, part(2, d));
        }
      }
    for (int64_t t = begin; t < end; ++t)
      for (int64_t h = 0; h < heads; ++h) {
        int64_t place = past + t - begin, seen = attrs[7] ? place + 1 : length;
        int64_t first = window > 0 && place >= window ? place - window + 1 : 0;
        int64_t stride = in[1] ? width : packed;
        GRAPH_TRY(rotateHead(g, cosines, sines, place, attrs[6], size, head,
                             [&](int64_t d) { return realAt(in[0], t * stride + h * size + d); }));
        for (int64_t j = 0; j < seen; ++j) {
          scores[j] = -__builtin_inf();
          if (j < first)
            continue;
          int64_t row;
          GRAPH_TRY(rowOf(j, h / (heads / kvHeads), row));
          double score = 0;
          for (int64_t d = 0; d < size; ++d)
            score += head[d] * realAt(out[1], row + d);
          score *= scale;
          scores[j] = softcap > 0 ? softcap * mathOf(g, LLMRT_MATH_TANH, score / softcap) : score;
        }
        softmaxWithSink(g, scores, seen, sinks ? realAt(sinks, h) : -__builtin_inf());
        for (int64_t d = 0; d < size; ++d)
          sums[d] = 0;
        for (int64_t j = first; j < seen; ++j) {
          int64_t row;
          GRAPH_TRY(rowOf(j, h / (heads / kvHeads), row));
          for (int64_t d = 0; d < size; ++d)
            sums[d] += scores[j] * realAt(out[2], row + d);
        }
        for (int64_t d = 0; d < size; ++d)
          storeReal(out[0], t * width + h * size + d, sums[d]);
      }
  }
  // Rows that belong to no sequence give zeros.
  int64_t used = batch > 0 ? indexAt(starts, batch) : 0;
  for (int64_t i = used * width; i < tokens * width; ++i)
    storeReal(out[0], i, 0);
  g->release(g, head);
  return 0;
}

} // namespace llmc::graphcode

using namespace llmc::graphcode;

/// query, key, value [tokens, heads * size] (or all in the first), the caches [blocks, places,
/// heads, size], where each sequence's tokens begin [batch + 1], places that it has in the cache
/// [batch], its blocks [batch, most], cos, sin, slots, sinks (key, value and the last four may be
/// null); attrs: scale (0: 1 / sqrt(size)), softcap, query heads, key heads, window, whether to
/// rotate, interleaved, causal. Gives the result and both caches.
LLMC_GRAPH_KERNEL(paged_attention) {
  return computed(g, in, out, type, 12, 3, [&](Value *const *in, Value **out) {
    return pagedAttention(g, in, out, attrs, computeType(type));
  });
}
