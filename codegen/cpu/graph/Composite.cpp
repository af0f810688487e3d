//===- Composite.cpp - norms, rotary embedding, attention, recurrences ---------===//
#include "codegen/cpu/graph/Real.h"

namespace llmc::graphcode {

__attribute__((noinline)) double realAt(const Value *v, int64_t i) {
  if (v->type == LLMRT_TYPE_F32)
    return double(data<float>(v)[i]);
  if (v->type == LLMRT_TYPE_F64)
    return data<double>(v)[i];
  return double(loadSmall(v->type, v->data, i));
}
__attribute__((noinline)) void storeReal(Value *v, int64_t i, double x) {
  if (v->type == LLMRT_TYPE_F32)
    data<float>(v)[i] = float(x);
  else if (v->type == LLMRT_TYPE_F64)
    data<double>(v)[i] = x;
  else
    storeSmall(v->type, v->data, i, float(x), true, RoundNearest);
}
__attribute__((noinline)) double sigmoidOf(Graph *g, double x) {
  double e = mathOf(g, LLMRT_MATH_EXP, x > 0 ? -x : x);
  return x > 0 ? 1 / (1 + e) : e / (1 + e);
}

/// A tensor [batch, heads, length, size], or [batch, length, heads * size] with its strides.
struct Heads {
  int64_t batch, heads, length, size;
  int64_t strides[3]; ///< of batch, head, place
};
__attribute__((noinline)) static int32_t headsOf(Graph *g, const Value *v, int64_t heads,
                                                 Heads &h) {
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

/// x, scale, bias or null; attrs: epsilon, axis, whether the mean is taken away
LLMC_GRAPH_KERNEL(layer_norm) {
  Value *x = in[0];
  int64_t axis;
  GRAPH_TRY(normalAxis(g, attrs[1], x->rank, axis));
  int64_t n = product(x, axis, x->rank), rank = x->rank - axis, strides[2][kMaxRank];
  for (int i = 1; i < 3; ++i) {
    if (!in[i])
      continue;
    int64_t r = rank, dims[kMaxRank];
    for (int64_t d = 0; d < rank; ++d)
      dims[d] = x->dims[axis + d];
    GRAPH_TRY(broadcastInto(g, in[i], r, dims));
    if (r != rank)
      return fail(g, LLMRT_GRAPH_RANK, r, rank);
    for (int64_t d = 0; d < rank; ++d)
      if (dims[d] != x->dims[axis + d])
        return fail(g, LLMRT_GRAPH_BROADCAST, dims[d], x->dims[axis + d]);
    broadcastStrides(in[i], rank, dims, strides[i - 1]);
  }
  GRAPH_TRY(newTensor(g, type, x->rank, x->dims, out[0]));
  double epsilon = realAttr(attrs[0]);
  for (int64_t row = 0; n > 0 && row < x->count; row += n) {
    double mean = 0, square = 0;
    if (attrs[2]) {
      for (int64_t i = 0; i < n; ++i)
        mean += realAt(x, row + i);
      mean /= double(n);
    }
    for (int64_t i = 0; i < n; ++i) {
      double d = realAt(x, row + i) - mean;
      square += d * d;
    }
    double factor = 1 / rootOf(square / double(n) + epsilon);
    int64_t index[kMaxRank] = {};
    for (int64_t i = 0; i < n; ++i) {
      int64_t at[2] = {0, 0};
      for (int64_t d = 0; d < rank; ++d)
        for (int o = 0; o < 2; ++o)
          at[o] += in[o + 1] ? index[d] * strides[o][d] : 0;
      double y = (realAt(x, row + i) - mean) * factor * realAt(in[1], at[0]);
      storeReal(out[0], row + i, in[2] ? y + realAt(in[2], at[1]) : y);
      for (int64_t d = rank - 1; d >= 0 && ++index[d] == x->dims[axis + d]; --d)
        index[d] = 0;
    }
  }
  return 0;
}

/// x, cos, sin, position ids or null; attrs: interleaved, heads, rotary size (0: all)
LLMC_GRAPH_KERNEL(rotary_embedding) {
  Value *x = in[0], *cosines = in[1], *sines = in[2], *places = in[3];
  Heads h;
  GRAPH_TRY(headsOf(g, x, attrs[1], h));
  int64_t rotated = attrs[2] > 0 ? attrs[2] : h.size, half = rotated / 2;
  int64_t tableRank = places ? 2 : 3;
  if (cosines->rank != tableRank || cosines->dims[tableRank - 1] != half || rotated > h.size ||
      sines->count != cosines->count)
    return fail(g, LLMRT_GRAPH_SHAPE, cosines->rank ? cosines->dims[cosines->rank - 1] : 0, half);
  int64_t rows = places ? cosines->dims[0] : cosines->dims[1];
  if (!places && (rows < h.length || (cosines->dims[0] != h.batch && cosines->dims[0] != 1)))
    return fail(g, LLMRT_GRAPH_SHAPE, rows, h.length);
  if (places && places->count != h.batch * h.length)
    return fail(g, LLMRT_GRAPH_SHAPE, places->count, h.batch * h.length);
  GRAPH_TRY(newTensor(g, type, x->rank, x->dims, out[0]));
  for (int64_t b = 0; b < h.batch; ++b)
    for (int64_t s = 0; s < h.length; ++s) {
      int64_t row = (cosines->dims[0] == 1 ? 0 : b) * rows + s;
      if (places)
        GRAPH_TRY(normalIndex(g, indexAt(places, b * h.length + s), rows, row));
      for (int64_t n = 0; n < h.heads; ++n) {
        int64_t base = b * h.strides[0] + n * h.strides[1] + s * h.strides[2];
        for (int64_t i = 0; i < half; ++i) {
          int64_t first = base + (attrs[0] ? 2 * i : i),
                  second = attrs[0] ? first + 1 : first + half;
          double c = realAt(cosines, row * half + i), d = realAt(sines, row * half + i);
          double p = realAt(x, first), q = realAt(x, second);
          storeReal(out[0], first, c * p - d * q);
          storeReal(out[0], second, d * p + c * q);
        }
        for (int64_t i = 2 * half; i < h.size; ++i)
          storeReal(out[0], base + i, realAt(x, base + i));
      }
    }
  return 0;
}

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

/// query, key, value [batch, length, heads * size], state [batch, kv heads, key size, value size]
/// or null, decay or null, beta or null; attrs: scale (0: 1 / sqrt(key size)), query heads, kv
/// heads. Gives the output and the state after it, of the state's type.
LLMC_GRAPH_KERNEL(linear_attention) {
  Value *state = in[3], *decay = in[4], *beta = in[5];
  Heads q, k, v;
  GRAPH_TRY(headsOf(g, in[0], attrs[1], q));
  GRAPH_TRY(headsOf(g, in[1], attrs[2], k));
  GRAPH_TRY(headsOf(g, in[2], attrs[2], v));
  if (k.size != q.size || k.length != q.length || v.length != q.length || q.heads % k.heads != 0)
    return fail(g, LLMRT_GRAPH_SHAPE, k.size, q.size);
  int64_t stateDims[4] = {q.batch, k.heads, k.size, v.size};
  int64_t dims[3] = {q.batch, q.length, q.heads * v.size}, cells = k.size * v.size;
  int64_t perHead = 1;
  if (state && state->count != q.batch * k.heads * cells)
    return fail(g, LLMRT_GRAPH_SHAPE, state->count, q.batch * k.heads * cells);
  if (decay) {
    perHead = decay->rank == 3 ? decay->dims[2] / k.heads : 0;
    if ((perHead != 1 && perHead != k.size) ||
        decay->count != q.batch * q.length * perHead * k.heads)
      return fail(g, LLMRT_GRAPH_SHAPE, decay->count, k.heads);
  }
  int64_t betas = beta && beta->rank == 3 ? beta->dims[2] : 1;
  if (beta && ((betas != 1 && betas != k.heads) || beta->count != q.batch * q.length * betas))
    return fail(g, LLMRT_GRAPH_SHAPE, beta->count, k.heads);
  GRAPH_TRY(newTensor(g, type, 3, dims, out[0]));
  GRAPH_TRY(newTensor(g, state ? state->type : type, 4, stateDims, out[1]));
  double scale = realAttr(attrs[0]);
  if (scale == 0)
    scale = 1 / rootOf(double(k.size));
  double *cell, *value;
  GRAPH_TRY(scratch(g, cells + v.size, cell));
  value = cell + cells;
  int64_t group = q.heads / k.heads;
  for (int64_t b = 0; b < q.batch; ++b)
    for (int64_t h = 0; h < k.heads; ++h) {
      int64_t base = (b * k.heads + h) * cells;
      for (int64_t i = 0; i < cells; ++i)
        cell[i] = state ? realAt(state, base + i) : 0;
      for (int64_t t = 0; t < q.length; ++t) {
        int64_t keyAt = b * k.strides[0] + h * k.strides[1] + t * k.strides[2];
        for (int64_t d = 0; decay && d < k.size; ++d) {
          int64_t at = ((b * q.length + t) * k.heads + h) * perHead + (perHead > 1 ? d : 0);
          double factor = mathOf(g, LLMRT_MATH_EXP, realAt(decay, at));
          for (int64_t m = 0; m < v.size; ++m)
            cell[d * v.size + m] *= factor;
        }
        for (int64_t m = 0; m < v.size; ++m) {
          value[m] = realAt(in[2], b * v.strides[0] + h * v.strides[1] + t * v.strides[2] + m);
          if (!beta)
            continue;
          double known = 0;
          for (int64_t d = 0; d < k.size; ++d)
            known += cell[d * v.size + m] * realAt(in[1], keyAt + d);
          value[m] =
              realAt(beta, (b * q.length + t) * betas + (betas > 1 ? h : 0)) * (value[m] - known);
        }
        for (int64_t d = 0; d < k.size; ++d)
          for (int64_t m = 0; m < v.size; ++m)
            cell[d * v.size + m] += realAt(in[1], keyAt + d) * value[m];
        for (int64_t n = h * group; n < (h + 1) * group; ++n)
          for (int64_t m = 0; m < v.size; ++m) {
            double sum = 0;
            for (int64_t d = 0; d < k.size; ++d)
              sum += realAt(in[0], b * q.strides[0] + n * q.strides[1] + t * q.strides[2] + d) *
                     cell[d * v.size + m];
            storeReal(out[0], ((b * q.length + t) * q.heads + n) * v.size + m, scale * sum);
          }
      }
      for (int64_t i = 0; i < cells; ++i)
        storeReal(out[1], base + i, cell[i]);
    }
  g->release(g, cell);
  return 0;
}

/// x [batch, channels, length], weight [channels, 1, k], bias or null, state [batch, channels,
/// k - 1] or null; attrs: whether silu follows. Gives y and the last k - 1 inputs.
LLMC_GRAPH_KERNEL(causal_conv) {
  Value *x = in[0], *weight = in[1], *bias = in[2], *state = in[3];
  if (x->rank != 3 || weight->rank != 3 || weight->dims[0] != x->dims[1] || weight->dims[1] != 1 ||
      weight->dims[2] < 1)
    return fail(g, LLMRT_GRAPH_SHAPE, weight->count, x->count);
  int64_t batch = x->dims[0], channels = x->dims[1], length = x->dims[2], k = weight->dims[2];
  int64_t dims[3] = {batch, channels, k - 1};
  if ((state && state->count != batch * channels * (k - 1)) || (bias && bias->count != channels))
    return fail(g, LLMRT_GRAPH_SHAPE, state ? state->count : bias->count, channels);
  GRAPH_TRY(newTensor(g, type, 3, x->dims, out[0]));
  GRAPH_TRY(newTensor(g, type, 3, dims, out[1]));
  for (int64_t row = 0; row < batch * channels; ++row) {
    auto at = [&](int64_t i) -> double { // of the input behind the state
      if (i >= k - 1)
        return realAt(x, row * length + i - (k - 1));
      return state ? realAt(state, row * (k - 1) + i) : 0;
    };
    for (int64_t i = 0; i < length; ++i) {
      double sum = bias ? realAt(bias, row % channels) : 0;
      for (int64_t j = 0; j < k; ++j)
        sum += at(i + j) * realAt(weight, row % channels * k + j);
      storeReal(out[0], row * length + i, sum);
      if (attrs[0]) {
        sum = realAt(out[0], row * length + i);
        storeReal(out[0], row * length + i, sum * sigmoidOf(g, sum));
      }
    }
    for (int64_t i = 0; i < k - 1; ++i)
      storeReal(out[1], row * (k - 1) + i, at(length + i));
  }
  return 0;
}

/// x (integers), scale, zero point or null; attrs: axis, block size; type: that of x | that of the
/// scale << 8
LLMC_GRAPH_KERNEL(dequantize) {
  Value *x = in[0], *scale = in[1], *zero = in[2];
  int64_t from = type & 0xFF, axis = 0, block = attrs[1], inner = 1, size = 1, scales = 1;
  if (scale->count != 1 || block > 0) {
    GRAPH_TRY(normalAxis(g, attrs[0], x->rank, axis));
    inner = product(x, axis + 1, x->rank);
    size = x->dims[axis];
    scales = block > 0 ? (size + block - 1) / block : size;
    int64_t wanted = block > 0 ? product(x, 0, axis) * scales * inner : size;
    if (scale->count != wanted)
      return fail(g, LLMRT_GRAPH_SHAPE, scale->count, wanted);
  }
  if (zero && zero->count != scale->count)
    return fail(g, LLMRT_GRAPH_SHAPE, zero->count, scale->count);
  GRAPH_TRY(newTensor(g, type >> 8, x->rank, x->dims, out[0]));
  auto integer = [&](const Value *v, int64_t i) -> double {
    if (isSmallFloat(from))
      return double(loadSmall(from, v->data, i));
    switch (from) {
    case LLMRT_TYPE_I8:
    case LLMRT_TYPE_I4:
    case LLMRT_TYPE_I2:
      return data<int8_t>(v)[i];
    case LLMRT_TYPE_I16:
      return data<int16_t>(v)[i];
    case LLMRT_TYPE_U16:
      return data<uint16_t>(v)[i];
    case LLMRT_TYPE_I32:
      return data<int32_t>(v)[i];
    default:
      return data<uint8_t>(v)[i];
    }
  };
  for (int64_t i = 0; i < x->count; ++i) {
    int64_t at = 0;
    if (block > 0)
      at = (i / inner / size * scales + i / inner % size / block) * inner + i % inner;
    else if (scale->count != 1)
      at = i / inner % size;
    storeReal(out[0], i, (integer(x, i) - (zero ? integer(zero, at) : 0)) * realAt(scale, at));
  }
  return 0;
}

/// a [..., K], b ui8 [N, blocks, block * bits / 8], scales [N * blocks], zero points or null,
/// groups of columns [K] or null, bias [N] or null; attrs: K, N, bits, block size
LLMC_GRAPH_KERNEL(matmul_nbits) {
  Value *a = in[0], *b = in[1], *scales = in[2], *zeros = in[3], *groups = in[4], *bias = in[5];
  int64_t K = attrs[0], N = attrs[1], bits = attrs[2], block = attrs[3];
  int64_t blocks = (K + block - 1) / block, rowBytes = blocks * (block * bits / 8);
  int64_t zeroBytes = (blocks * bits + 7) / 8, dims[kMaxRank];
  if (a->rank < 1 || a->dims[a->rank - 1] != K)
    return fail(g, LLMRT_GRAPH_SHAPE, a->rank ? a->dims[a->rank - 1] : 0, K);
  bool hasPackedZeros = zeros && !isFloat(zeros->type);
  if (b->count != N * rowBytes || scales->count != N * blocks || (bias && bias->count != N) ||
      (groups && groups->count < K) ||
      (zeros && zeros->count != N * (hasPackedZeros ? zeroBytes : blocks)))
    return fail(g, LLMRT_GRAPH_SHAPE, b->count, N * rowBytes);
  for (int64_t d = 0; d < a->rank; ++d)
    dims[d] = d == a->rank - 1 ? N : a->dims[d];
  GRAPH_TRY(newTensor(g, type, a->rank, dims, out[0]));
  double *row;
  GRAPH_TRY(scratch(g, K, row));
  int64_t perByte = 8 / bits, top = (int64_t(1) << bits) - 1;
  for (int64_t n = 0; n < N; ++n) {
    for (int64_t k = 0; k < K; ++k) {
      int64_t at = k / block;
      if (groups)
        GRAPH_TRY(normalIndex(g, indexAt(groups, k), blocks, at));
      double zero = double(int64_t(1) << (bits - 1));
      if (hasPackedZeros)
        zero = double(data<uint8_t>(zeros)[n * zeroBytes + at / perByte] >> (at % perByte * bits) &
                      top);
      else if (zeros)
        zero = realAt(zeros, n * blocks + at);
      int64_t code = data<uint8_t>(b)[n * rowBytes + k / perByte] >> (k % perByte * bits) & top;
      row[k] = (double(code) - zero) * realAt(scales, n * blocks + at);
    }
    for (int64_t m = 0; m < out[0]->count / max<int64_t>(N, 1); ++m) {
      double sum = bias ? realAt(bias, n) : 0;
      for (int64_t k = 0; k < K; ++k)
        sum += realAt(a, m * K + k) * row[k];
      storeReal(out[0], m * N + n, sum);
    }
  }
  g->release(g, row);
  return 0;
}
