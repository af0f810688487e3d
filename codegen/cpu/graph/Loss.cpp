//===- Loss.cpp - losses that models carry along ---------------------------------===//
#include "codegen/cpu/graph/Real.h"

using namespace llmc::graphcode;

/// log-probabilities [N, C, ...], targets [N, ...], weights [C] or null; attrs: reduction (0 none,
/// 1 sum, 2 mean), whether a target is ignored, which.
LLMC_GRAPH_KERNEL(nll_loss) {
  Value *x = in[0], *target = in[1], *weights = in[2];
  if (x->rank < 2 || target->rank != x->rank - 1)
    return fail(g, LLMRT_GRAPH_RANK, target->rank, x->rank - 1);
  int64_t C = x->dims[1], inner = product(x, 2, x->rank), n = x->dims[0] * inner;
  if (target->count != n || (weights && weights->count != C))
    return fail(g, LLMRT_GRAPH_SHAPE, target->count, n);
  GRAPH_TRY(newTensor(g, type, attrs[0] ? 0 : target->rank, target->dims, out[0]));
  double sum = 0, total = 0;
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = indexAt(target, i);
    bool isIgnored = attrs[1] && at == attrs[2];
    double weight = 0, loss = 0;
    if (!isIgnored) {
      if (at < 0 || at >= C)
        return fail(g, LLMRT_GRAPH_INDEX, at, C);
      weight = weights ? realAt(weights, at) : 1;
      loss = -weight * realAt(x, (i / inner * C + at) * inner + i % inner);
    }
    sum += loss;
    total += weight;
    if (attrs[0] == 0)
      storeReal(out[0], i, loss);
  }
  if (attrs[0] != 0)
    storeReal(out[0], 0, attrs[0] == 1 ? sum : sum / total);
  return 0;
}
