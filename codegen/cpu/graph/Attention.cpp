//===- Attention.cpp - attention with its mask and what comes before --------===//
#include "codegen/cpu/graph/Heads.h"

namespace llmc::graphcode {

__attribute__((noinline)) int32_t headsOf(Graph *g, const Value *v, int64_t heads, Heads &h) {
  if (v->rank == 4) {
    h = {v->dims[0], v->dims[1], v->dims[2], v->dims[3], {}};
    h.strides[2] = h.size;
    h.strides[1] = h.length * h.size;
    h.strides[0] = h.heads * h.strides[1];
    return 0;
  }
  if (v->rank != 3)
    return fail(g, LLMRT_GRAPH_RANK, v->rank, 4);
  if (heads <= 0 || v->dims[2] % heads != 0)
    return fail(g, LLMRT_GRAPH_SHAPE, v->dims[2], heads);
  h = {v->dims[0], heads, v->dims[1], v->dims[2] / heads, {}};
  h.strides[1] = h.size;
  h.strides[2] = heads * h.size;
  h.strides[0] = h.length * h.strides[2];
  return 0;
}

/// What attention adds to a score before the softmax; -inf where a key is not seen.
struct AttentionMask {
  const Value *mask;
  int64_t strides[4], width;

  GRAPH_INLINE double at(int64_t b, int64_t h, int64_t i, int64_t j) const {
    if (!mask)
      return 0;
    if (j >= width)
      return -__builtin_inf();
    int64_t place = b * strides[0] + h * strides[1] + i * strides[2] + j * strides[3];
    if (mask->type == LLMRT_TYPE_BOOL)
      return data<uint8_t>(mask)[place] ? 0.0 : -__builtin_inf();
    return realAt(mask, place);
  }
};

/// past and x one after the other, as [batch, heads, length, size].
template <class T>
GRAPH_INLINE int32_t joinCache(Graph *g, const Value *past, const Value *x, const Heads &h,
                               Value *&all) {
  int64_t before = past ? past->dims[2] : 0;
  if (past && (past->rank != 4 || past->dims[0] != h.batch || past->dims[1] != h.heads ||
               past->dims[3] != h.size))
    return fail(g, LLMRT_GRAPH_SHAPE, past->rank == 4 ? past->dims[3] : past->rank, h.size);
  int64_t dims[4] = {h.batch, h.heads, before + h.length, h.size};
  GRAPH_TRY(newTensor(g, x->type, 4, dims, all));
  T *to = data<T>(all);
  for (int64_t b = 0; b < h.batch; ++b)
    for (int64_t n = 0; n < h.heads; ++n) {
      if (past)
        copyBytes(to, data<T>(past) + (b * h.heads + n) * before * h.size,
                  before * h.size * int64_t(sizeof(T)));
      to += before * h.size;
      for (int64_t s = 0; s < h.length; ++s, to += h.size)
        copyBytes(to, data<T>(x) + b * h.strides[0] + n * h.strides[1] + s * h.strides[2],
                  h.size * int64_t(sizeof(T)));
    }
  return 0;
}

template <class T>
GRAPH_INLINE int32_t attention(Graph *g, Value *const *in, Value **out, const int64_t *attrs) {
  double scale = realAttr(attrs[0]), softcap = realAttr(attrs[1]);
  bool hasScale = attrs[2], isCausal = attrs[3], givesPresent = attrs[7], givesScores = attrs[8];
  int64_t mode = attrs[6], left = attrs[9], right = attrs[10];
  Value *mask = in[3], *past = in[4], *pastValue = in[5], *valid = in[6];
  Heads q, k, v;
  GRAPH_TRY(headsOf(g, in[0], attrs[4], q));
  GRAPH_TRY(headsOf(g, in[1], attrs[5], k));
  GRAPH_TRY(headsOf(g, in[2], attrs[5], v));
  if (k.batch != q.batch || v.batch != q.batch || k.size != q.size || v.length != k.length ||
      v.heads != k.heads)
    return fail(g, LLMRT_GRAPH_SHAPE, k.size, q.size);
  if (k.heads == 0 || q.heads % k.heads != 0)
    return fail(g, LLMRT_GRAPH_SHAPE, q.heads, k.heads);
  Value *keys, *values, *scores = nullptr;
  GRAPH_TRY(joinCache<T>(g, past, in[1], k, keys));
  GRAPH_TRY(joinCache<T>(g, pastValue, in[2], v, values));
  int64_t total = keys->dims[2], before = past ? past->dims[2] : 0;
  if (values->dims[2] != total)
    return fail(g, LLMRT_GRAPH_SHAPE, values->dims[2], total);
  if (valid && valid->count != q.batch)
    return fail(g, LLMRT_GRAPH_SHAPE, valid->count, q.batch);
  AttentionMask bias{mask, {}, 0};
  if (mask) {
    int64_t dims[4] = {q.batch, q.heads, q.length, total}, rank = mask->rank;
    if (rank < 1 || rank > 4)
      return fail(g, LLMRT_GRAPH_RANK, rank, 4);
    bias.width = mask->dims[rank - 1];
    if (bias.width == 1)
      bias.width = total;
    dims[3] = mask->dims[rank - 1];
    for (int64_t d = 0; d < rank; ++d)
      if (mask->dims[d] != 1 && mask->dims[d] != dims[4 - rank + d])
        return fail(g, LLMRT_GRAPH_BROADCAST, mask->dims[d], dims[4 - rank + d]);
    broadcastStrides(mask, 4, dims, bias.strides);
  }
  if (!hasScale)
    scale = 1 / rootOf(double(q.size));
  if (in[0]->rank == 4) {
    int64_t dims[4] = {q.batch, q.heads, q.length, v.size};
    GRAPH_TRY(newTensor(g, in[0]->type, 4, dims, out[0]));
  } else {
    int64_t dims[3] = {q.batch, q.length, q.heads * v.size};
    GRAPH_TRY(newTensor(g, in[0]->type, 3, dims, out[0]));
  }
  if (givesScores) {
    int64_t dims[4] = {q.batch, q.heads, q.length, total};
    GRAPH_TRY(newTensor(g, in[0]->type, 4, dims, scores));
  }
  Heads y = q;
  y.size = v.size;
  if (in[0]->rank == 4)
    y.strides[2] = v.size, y.strides[1] = q.length * v.size, y.strides[0] = q.heads * y.strides[1];
  else
    y.strides[1] = v.size, y.strides[2] = q.heads * v.size, y.strides[0] = q.length * y.strides[2];
  double *row, *sums;
  GRAPH_TRY(scratch(g, total + v.size, row));
  sums = row + total;
  int64_t group = q.heads / k.heads;
  for (int64_t b = 0; b < q.batch; ++b) {
    int64_t known = valid ? indexAt(valid, b) : total;
    int64_t offset = valid ? known - q.length : before;
    for (int64_t h = 0; h < q.heads; ++h)
      for (int64_t i = 0; i < q.length; ++i) {
        const T *query =
            data<const T>(in[0]) + b * q.strides[0] + h * q.strides[1] + i * q.strides[2];
        const T *keyRows = data<const T>(keys) + (b * k.heads + h / group) * total * q.size;
        const T *valueRows = data<const T>(values) + (b * k.heads + h / group) * total * v.size;
        T *shown = scores ? data<T>(scores) + ((b * q.heads + h) * q.length + i) * total : nullptr;
        double largest = -__builtin_inf(), sum = 0;
        for (int64_t j = 0; j < total; ++j) {
          double score = 0;
          for (int64_t d = 0; d < q.size; ++d)
            score += double(query[d]) * double(keyRows[j * q.size + d]);
          score *= scale;
          if (shown && mode == 0)
            shown[j] = T(score);
          if (softcap > 0)
            score = softcap * mathOf(g, LLMRT_MATH_TANH, score / softcap);
          if (shown && mode == 1)
            shown[j] = T(score);
          bool isSeen = j < known && !(isCausal && j > i + offset) &&
                        !(left >= 0 && j < i + offset - left) &&
                        !(right >= 0 && j > i + offset + right);
          double more = isSeen ? bias.at(b, h, i, j) : -__builtin_inf();
          score = more == -__builtin_inf() ? more : score + more;
          if (shown && mode == 2)
            shown[j] = T(score);
          row[j] = score;
          largest = max(largest, score);
        }
        for (int64_t j = 0; j < total; ++j) {
          // A row that sees no key gives zeros.
          row[j] = largest == -__builtin_inf() ? 0 : mathOf(g, LLMRT_MATH_EXP, row[j] - largest);
          sum += row[j];
        }
        for (int64_t d = 0; d < v.size; ++d)
          sums[d] = 0;
        for (int64_t j = 0; j < total; ++j) {
          double p = sum > 0 ? row[j] / sum : 0;
          if (shown && mode == 3)
            shown[j] = T(p);
          if (p != 0)
            for (int64_t d = 0; d < v.size; ++d)
              sums[d] += p * double(valueRows[j * v.size + d]);
        }
        T *to = data<T>(out[0]) + b * y.strides[0] + h * y.strides[1] + i * y.strides[2];
        for (int64_t d = 0; d < v.size; ++d)
          to[d] = T(sums[d]);
      }
  }
  g->release(g, row);
  int next = 1;
  if (givesPresent) {
    out[next++] = keys;
    out[next++] = values;
  } else {
    release(g, keys);
    release(g, values);
  }
  if (givesScores)
    out[next] = scores;
  return 0;
}

} // namespace llmc::graphcode

using namespace llmc::graphcode;

/// q, k, v, mask, past key, past value, valid lengths (all from mask on may be null); attrs: scale,
/// softcap, whether there is a scale, causal, query heads, key heads, what the scores show, whether
/// present keys and values are given, whether scores are, window to the left and right (-1: none)
LLMC_GRAPH_KERNEL(attention) {
  int results = 1 + (attrs[7] ? 2 : 0) + (attrs[8] ? 1 : 0);
  return computed(g, in, out, type, 7, results, [&](Value *const *in, Value **out) {
    return withFloatType(
        type, [&](auto sample) { return attention<decltype(sample)>(g, in, out, attrs); });
  });
}
