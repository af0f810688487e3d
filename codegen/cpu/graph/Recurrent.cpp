//===- Recurrent.cpp - RNN, GRU, LSTM -------------------------------------------===//
#include "codegen/cpu/graph/Real.h"

namespace llmc::graphcode {

/// Activations by number; alpha and beta where a function has them.
__attribute__((noinline)) static double activate(Graph *g, int64_t kind, double alpha, double beta,
                                                 double x) {
  switch (kind) {
  case 1: // Tanh
    return mathOf(g, LLMRT_MATH_TANH, x);
  case 2: // Relu
    return max(x, 0.0);
  case 3: // Affine
    return alpha * x + beta;
  case 4: // LeakyRelu
    return x < 0 ? alpha * x : x;
  case 5: // ThresholdedRelu
    return x > alpha ? x : 0;
  case 6: // ScaledTanh
    return alpha * mathOf(g, LLMRT_MATH_TANH, beta * x);
  case 7: // HardSigmoid
    return max(0.0, min(1.0, alpha * x + beta));
  case 8: // Elu
    return x < 0 ? alpha * (mathOf(g, LLMRT_MATH_EXP, x) - 1) : x;
  case 9: // Softsign
    return x / (1 + absolute(x));
  case 10: // Softplus
    return max(x, 0.0) + mathOf(g, LLMRT_MATH_LOG1P, mathOf(g, LLMRT_MATH_EXP, -absolute(x)));
  default: // Sigmoid
    return sigmoidOf(g, x);
  }
}

} // namespace llmc::graphcode

using namespace llmc::graphcode;

/// X, W [directions, gates * hidden, input], R [directions, gates * hidden, hidden], B or null,
/// sequence lengths or null, first h or null, first c or null, P (peepholes) or null. attrs: clip
/// (0: none), alpha and beta of 6 activations (12 reals), gates (1 RNN, 3 GRU, 4 LSTM), direction
/// (0 forward, 1 reverse, 2 both), layout, linear before reset, input forget, 6 activations. Gives
/// Y, Y_h and (LSTM) Y_c.
LLMC_GRAPH_KERNEL(recurrent) {
  Value *x = in[0], *w = in[1], *r = in[2], *bias = in[3], *lengths = in[4];
  const int64_t *ints = attrs + 13;
  int64_t gates = ints[0], direction = ints[1], hiddenAt = 5;
  bool isBatchFirst = ints[2] != 0;
  if (x->rank != 3 || w->rank != 3 || r->rank != 3)
    return fail(g, LLMRT_GRAPH_RANK, x->rank, 3);
  int64_t steps = x->dims[isBatchFirst], batch = x->dims[!isBatchFirst], input = x->dims[2];
  int64_t directions = direction == 2 ? 2 : 1, hidden = r->dims[2], rows = gates * hidden;
  if (w->dims[0] != directions || w->dims[1] != rows || w->dims[2] != input ||
      r->dims[0] != directions || r->dims[1] != rows)
    return fail(g, LLMRT_GRAPH_SHAPE, w->dims[1], rows);
  if ((bias && bias->count != directions * 2 * rows) || (lengths && lengths->count != batch))
    return fail(g, LLMRT_GRAPH_SHAPE, bias ? bias->count : lengths->count, batch);
  for (int64_t i = hiddenAt; i < 7; ++i)
    if (in[i] && in[i]->count != directions * batch * hidden)
      return fail(g, LLMRT_GRAPH_SHAPE, in[i]->count, directions * batch * hidden);
  if (in[7] && in[7]->count != directions * 3 * hidden)
    return fail(g, LLMRT_GRAPH_SHAPE, in[7]->count, directions * 3 * hidden);
  int64_t yDims[4] = {steps, directions, batch, hidden}, lastDims[3] = {directions, batch, hidden};
  if (isBatchFirst) {
    yDims[0] = batch, yDims[1] = steps, yDims[2] = directions;
    lastDims[0] = batch, lastDims[1] = directions;
  }
  int results = gates == 4 ? 3 : 2;
  GRAPH_TRY(newTensor(g, type, 4, yDims, out[0]));
  for (int i = 1; i < results; ++i)
    GRAPH_TRY(newTensor(g, type, 3, lastDims, out[i]));
  for (int64_t i = 0; i < out[0]->count; ++i)
    storeReal(out[0], i, 0);
  double clip = realAttr(attrs[0]);
  double *memory;
  GRAPH_TRY(scratch(g, 2 * rows + 4 * hidden, memory));
  double *fromX = memory, *fromH = memory + rows, *h = fromH + rows, *c = h + hidden,
         *next = c + hidden, *reset = next + hidden;
  for (int64_t d = 0; d < directions; ++d) {
    auto f = [&](int which, double v) {
      if (clip > 0)
        v = max(-clip, min(v, clip));
      int64_t at = d * (gates == 1 ? 1 : gates == 3 ? 2 : 3) + which;
      return activate(g, ints[5 + at], realAttr(attrs[1 + 2 * at]), realAttr(attrs[2 + 2 * at]),
                      v);
    };
    auto row = [&](const Value *m, int64_t gate, int64_t k, const double *v, int64_t n) {
      double sum = 0;
      for (int64_t i = 0; i < n; ++i)
        sum += realAt(m, ((d * gates + gate) * hidden + k) * n + i) * v[i];
      return sum;
    };
    auto biasOf = [&](int64_t part, int64_t gate, int64_t k) {
      return bias ? realAt(bias, d * 2 * rows + part * rows + gate * hidden + k) : 0.0;
    };
    auto peephole = [&](int64_t gate, int64_t k) {
      return in[7] ? realAt(in[7], (d * 3 + gate) * hidden + k) : 0.0;
    };
    bool isReverse = direction == 1 || d == 1;
    for (int64_t b = 0; b < batch; ++b) {
      int64_t state = isBatchFirst ? (b * directions + d) * hidden : (d * batch + b) * hidden;
      for (int64_t k = 0; k < hidden; ++k) {
        h[k] = in[5] ? realAt(in[5], state + k) : 0;
        c[k] = in[6] ? realAt(in[6], state + k) : 0;
      }
      int64_t length = lengths ? max<int64_t>(0, min(indexAt(lengths, b), steps)) : steps;
      for (int64_t s = 0; s < length; ++s) {
        int64_t t = isReverse ? length - 1 - s : s;
        int64_t xAt = (isBatchFirst ? b * steps + t : t * batch + b) * input;
        for (int64_t j = 0; j < rows; ++j) {
          double sum = 0;
          for (int64_t i = 0; i < input; ++i)
            sum += realAt(w, (d * rows + j) * input + i) * realAt(x, xAt + i);
          fromX[j] = sum;
          fromH[j] = row(r, j / hidden, j % hidden, h, hidden);
        }
        auto gate = [&](int64_t n, int64_t k) {
          return fromX[n * hidden + k] + fromH[n * hidden + k] + biasOf(0, n, k) + biasOf(1, n, k);
        };
        if (gates == 1) {
          for (int64_t k = 0; k < hidden; ++k)
            next[k] = f(0, gate(0, k));
        } else if (gates == 3) { // z, r, h
          for (int64_t k = 0; k < hidden; ++k)
            reset[k] = f(0, gate(1, k)) * h[k];
          for (int64_t k = 0; k < hidden; ++k) {
            double z = f(0, gate(0, k));
            double candidate =
                ints[3] ? fromX[2 * hidden + k] + biasOf(0, 2, k) +
                              f(0, gate(1, k)) * (fromH[2 * hidden + k] + biasOf(1, 2, k))
                        : fromX[2 * hidden + k] + biasOf(0, 2, k) + biasOf(1, 2, k) +
                              row(r, 2, k, reset, hidden);
            next[k] = (1 - z) * f(1, candidate) + z * h[k];
          }
        } else { // i, o, f, c; peepholes of i, o, f
          for (int64_t k = 0; k < hidden; ++k) {
            double i = f(0, gate(0, k) + peephole(0, k) * c[k]);
            double forget = ints[4] ? 1 - i : f(0, gate(2, k) + peephole(2, k) * c[k]);
            c[k] = forget * c[k] + i * f(1, gate(3, k));
            double o = f(0, gate(1, k) + peephole(1, k) * c[k]);
            next[k] = o * f(2, c[k]);
          }
        }
        int64_t yAt = isBatchFirst ? ((b * steps + t) * directions + d) * hidden
                                   : ((t * directions + d) * batch + b) * hidden;
        for (int64_t k = 0; k < hidden; ++k) {
          h[k] = next[k];
          storeReal(out[0], yAt + k, h[k]);
        }
      }
      for (int64_t k = 0; k < hidden; ++k) {
        storeReal(out[1], state + k, h[k]);
        if (gates == 4)
          storeReal(out[2], state + k, c[k]);
      }
    }
  }
  g->release(g, memory);
  return 0;
}
