//===- Mixture.cpp - a mixture of experts --------------------------------------------===//
#include "codegen/cpu/graph/Real.h"

namespace llmc::graphcode {

/// The weights of one matrix of every expert, [experts, rows, columns]: floats, or codes packed
/// along the columns with scales [experts, rows(, blocks)].
struct ExpertMatrix {
  const Value *weights, *scales, *bias, *zeros;
  int64_t rows, columns, bits, block; ///< block 0: a scale a row

  int32_t check(Graph *g, int64_t experts) const {
    int64_t perRow = bits == 0 ? columns : columns * bits / 8;
    if (weights->count != experts * rows * perRow || (bias && bias->count != experts * rows))
      return fail(g, LLMRT_GRAPH_SHAPE, weights->count, experts * rows * perRow);
    int64_t blocks = block ? (columns + block - 1) / block : 1;
    if (bits != 0 && scales->count != experts * rows * blocks)
      return fail(g, LLMRT_GRAPH_SHAPE, scales->count, experts * rows * blocks);
    if (zeros && zeros->count != experts * rows * ((blocks * bits + 7) / 8))
      return fail(g, LLMRT_GRAPH_SHAPE, zeros->count, experts * rows);
    return 0;
  }
  /// Row \p r, counted over all experts.
  void row(int64_t r, double *to) const {
    if (bits == 0) {
      for (int64_t c = 0; c < columns; ++c)
        to[c] = realAt(weights, r * columns + c);
      return;
    }
    int64_t size = block ? block : columns, blocks = (columns + size - 1) / size;
    int64_t perByte = 8 / bits, mask = (int64_t(1) << bits) - 1;
    const uint8_t *codes = data<uint8_t>(weights) + r * (columns * bits / 8);
    for (int64_t c = 0; c < columns; ++c) {
      int64_t b = c / size, code = codes[c / perByte] >> (c % perByte * bits) & mask;
      int64_t zero = int64_t(1) << (bits - 1);
      if (zeros)
        zero = data<uint8_t>(zeros)[r * ((blocks * bits + 7) / 8) + b / perByte] >>
                   (b % perByte * bits) &
               mask;
      to[c] = double(code - zero) * realAt(scales, r * blocks + b);
    }
  }
  double biasOf(int64_t r) const { return bias ? realAt(bias, r) : 0; }
};

/// relu 0, gelu by its tanh formula 1 (what ONNX Runtime's MoE means by gelu), silu 2, identity 3
GRAPH_INLINE double expertActivation(Graph *g, int64_t kind, double x) {
  if (kind == 0)
    return x > 0 ? x : 0;
  if (kind == 1)
    return 0.5 * x *
           (1 + mathOf(g, LLMRT_MATH_TANH, 0.79788456080286536 * (x + 0.044715 * x * x * x)));
  return kind == 2 ? x * sigmoidOf(g, x) : x;
}

/// The experts of one token, best first, and their shares.
static void routeToken(Graph *g, const Value *router, const Value *shares, int64_t token,
                       int64_t experts, int64_t k, bool isNormalized, int64_t *chosen,
                       double *share) {
  auto logit = [&](int64_t e) { return realAt(router, token * experts + e); };
  for (int64_t i = 0; i < k; ++i) {
    int64_t best = -1;
    for (int64_t e = 0; e < experts; ++e) {
      bool isTaken = false;
      for (int64_t j = 0; j < i; ++j)
        isTaken = isTaken || chosen[j] == e;
      if (!isTaken && (best < 0 || logit(e) > logit(best)))
        best = e;
    }
    chosen[i] = best;
  }
  double largest = logit(chosen[0]), all = 0, some = 0;
  for (int64_t e = 0; e < experts; ++e)
    all += mathOf(g, LLMRT_MATH_EXP, logit(e) - largest);
  for (int64_t i = 0; i < k; ++i) {
    share[i] = shares ? realAt(shares, token * experts + chosen[i])
                      : mathOf(g, LLMRT_MATH_EXP, logit(chosen[i]) - largest) / all;
    some += share[i];
  }
  for (int64_t i = 0; i < k && isNormalized && some != 0; ++i)
    share[i] /= some;
}

static int32_t mixture(Graph *g, Value *const *in, Value **out, const int64_t *attrs,
                       int64_t type) {
  double alpha = realAttr(attrs[0]), beta = realAttr(attrs[1]), limit = realAttr(attrs[2]);
  int64_t k = attrs[3], activation = attrs[4], fusion = attrs[5];
  Value *x = in[0], *router = in[1], *shares = in[14];
  if (x->rank < 1 || router->rank != 2 || in[2]->rank != 3 || in[6]->rank != 3)
    return fail(g, LLMRT_GRAPH_RANK, router->rank, 2);
  int64_t hidden = x->dims[x->rank - 1], experts = router->dims[1];
  int64_t tokens = hidden ? x->count / hidden : 0, inner = in[2]->dims[1] / (fusion ? 2 : 1);
  if (router->dims[0] != tokens || k < 1 || k > experts ||
      (shares && shares->count != router->count))
    return fail(g, LLMRT_GRAPH_SHAPE, router->dims[0], tokens);
  ExpertMatrix first = {in[2], in[3], in[4], in[5], in[2]->dims[1], hidden, attrs[7], attrs[10]};
  ExpertMatrix second = {in[6], in[7], in[8], in[9], hidden, inner, attrs[8], attrs[10]};
  ExpertMatrix third = {in[10], in[11], in[12], in[13], inner, hidden, attrs[9], attrs[10]};
  GRAPH_TRY(first.check(g, experts));
  GRAPH_TRY(second.check(g, experts));
  if (in[10])
    GRAPH_TRY(third.check(g, experts));
  GRAPH_TRY(newTensor(g, type, x->rank, x->dims, out[0]));
  double *share, *row, *middle, *sums;
  int64_t *chosen;
  GRAPH_TRY(scratch(g, tokens * k, share));
  GRAPH_TRY(scratch(g, tokens * k, chosen));
  GRAPH_TRY(scratch(g, max(hidden, inner), row));
  GRAPH_TRY(scratch(g, tokens * first.rows, middle));
  GRAPH_TRY(scratch(g, tokens * hidden, sums));
  for (int64_t t = 0; t < tokens; ++t)
    routeToken(g, router, shares, t, experts, k, attrs[6], chosen + t * k, share + t * k);
  for (int64_t i = 0; i < tokens * hidden; ++i)
    sums[i] = 0;
  auto dot = [&](const double *a, int64_t t) {
    double sum = 0;
    for (int64_t c = 0; c < hidden; ++c)
      sum += a[c] * realAt(x, t * hidden + c);
    return sum;
  };
  // An expert's rows are read once, for all tokens that chose it; others' never.
  for (int64_t e = 0; e < experts; ++e) {
    bool isChosen = false;
    auto forTokens = [&](auto body) {
      for (int64_t i = 0; i < tokens * k; ++i)
        if (chosen[i] == e)
          body(i / k, share[i]);
    };
    forTokens([&](int64_t, double) { isChosen = true; });
    if (!isChosen)
      continue;
    for (int64_t r = 0; r < first.rows; ++r) {
      first.row(e * first.rows + r, row);
      forTokens([&](int64_t t, double) {
        middle[t * first.rows + r] = dot(row, t) + first.biasOf(e * first.rows + r);
      });
    }
    // The gated half lands in places that were read already: fusion 1 pairs neighbours.
    forTokens([&](int64_t t, double) {
      double *m = middle + t * first.rows;
      for (int64_t i = 0; i < inner; ++i) {
        if (fusion == 0) {
          m[i] = expertActivation(g, activation == 4 ? 2 : activation, m[i]);
          continue;
        }
        double gate = fusion == 1 ? m[2 * i] : m[i],
               line = fusion == 1 ? m[2 * i + 1] : m[inner + i];
        gate = gate > limit ? limit : gate;
        line = line > limit ? limit : line < -limit ? -limit : line;
        m[i] = gate * sigmoidOf(g, alpha * gate) * (line + beta);
      }
    });
    for (int64_t r = 0; in[10] && r < inner; ++r) {
      third.row(e * inner + r, row);
      forTokens([&](int64_t t, double) {
        middle[t * first.rows + r] *= dot(row, t) + third.biasOf(e * inner + r);
      });
    }
    for (int64_t r = 0; r < hidden; ++r) {
      second.row(e * hidden + r, row);
      forTokens([&](int64_t t, double part) {
        double sum = second.biasOf(e * hidden + r);
        for (int64_t i = 0; i < inner; ++i)
          sum += row[i] * middle[t * first.rows + i];
        sums[t * hidden + r] += part * sum;
      });
    }
  }
  for (int64_t i = 0; i < tokens * hidden; ++i)
    storeReal(out[0], i, sums[i]);
  g->release(g, share);
  g->release(g, chosen);
  g->release(g, row);
  g->release(g, middle);
  g->release(g, sums);
  return 0;
}

} // namespace llmc::graphcode

using namespace llmc::graphcode;

/// x [..., hidden], router logits [tokens, experts]; of the first, second and third matrix the
/// weights, scales, bias, zero points (all but the first two weights may be null); shares [tokens,
/// experts] or null: the logits' softmax. attrs: alpha, beta, limit of the gate, experts a token,
/// activation (relu, gelu, silu, identity, swiglu), how gate and line are fused in the first matrix
/// (0 not, 1 interleaved, 2 one after the other), whether shares are normalised, bits of the codes
/// of each matrix (0: floats), columns a block (0: all)
LLMC_GRAPH_KERNEL(mixture) {
  return computed(g, in, out, type, 15, 1, [&](Value *const *in, Value **out) {
    return mixture(g, in, out, attrs, computeType(type));
  });
}
