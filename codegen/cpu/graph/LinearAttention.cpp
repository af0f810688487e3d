//===- LinearAttention.cpp - attention by a state, and the convolution before it ----===//
#include "codegen/cpu/graph/Heads.h"

using namespace llmc::graphcode;

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
