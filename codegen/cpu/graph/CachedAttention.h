//===- CachedAttention.h - one query against the keys of a cache -------------------===//
#ifndef LLMC_CODEGEN_CPU_GRAPH_CACHEDATTENTION_H
#define LLMC_CODEGEN_CPU_GRAPH_CACHEDATTENTION_H

#include "codegen/cpu/graph/Real.h"

namespace llmc::graphcode {

/// Rotates a head of \p size elements, x[i] = at(i), by row \p place of the tables [positions,
/// half] into \p y; elements from 2 * half on stay.
template <class F>
GRAPH_INLINE int32_t rotateHead(Graph *g, const Value *cosines, const Value *sines, int64_t place,
                                bool isInterleaved, int64_t size, double *y, F at) {
  for (int64_t i = 0; i < size; ++i)
    y[i] = at(i);
  if (!cosines)
    return 0;
  int64_t half = cosines->dims[1], row;
  GRAPH_TRY(normalIndex(g, place, cosines->dims[0], row));
  for (int64_t i = 0; i < half; ++i) {
    int64_t p = isInterleaved ? 2 * i : i, q = isInterleaved ? p + 1 : p + half;
    double c = realAt(cosines, row * half + i), s = realAt(sines, row * half + i);
    double a = at(p), b = at(q);
    y[p] = c * a - s * b;
    y[q] = s * a + c * b;
  }
  return 0;
}

/// Whether the tables fit together and into a head of \p size; missing ones do.
GRAPH_INLINE int32_t checkTables(Graph *g, const Value *cosines, const Value *sines, int64_t size) {
  if (cosines && (cosines->rank != 2 || sines->rank != 2 || sines->count != cosines->count ||
                  sines->dims[1] != cosines->dims[1] || 2 * cosines->dims[1] > size))
    return fail(g, LLMRT_GRAPH_SHAPE, cosines->rank == 2 ? 2 * cosines->dims[1] : cosines->rank,
                size);
  return 0;
}

/// softmax over scores [count], those of unseen keys -inf, and one more of \p sink (-inf: none);
/// in place. A row that sees nothing becomes zeros.
GRAPH_INLINE void softmaxWithSink(Graph *g, double *scores, int64_t count, double sink) {
  double largest = sink, sum = 0;
  for (int64_t j = 0; j < count; ++j)
    largest = max(largest, scores[j]);
  if (largest == -__builtin_inf()) {
    for (int64_t j = 0; j < count; ++j)
      scores[j] = 0;
    return;
  }
  for (int64_t j = 0; j < count; ++j) {
    scores[j] = mathOf(g, LLMRT_MATH_EXP, scores[j] - largest);
    sum += scores[j];
  }
  sum += mathOf(g, LLMRT_MATH_EXP, sink - largest);
  for (int64_t j = 0; j < count; ++j)
    scores[j] /= sum;
}

} // namespace llmc::graphcode

#endif // LLMC_CODEGEN_CPU_GRAPH_CACHEDATTENTION_H
