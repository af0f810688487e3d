//===- Features.cpp - features of token sequences --------------------------------===//
#include "codegen/cpu/graph/Graph.h"

using namespace llmc::graphcode;

/// tokens [C] or [N, C] (i32 or i64), weights f32 [columns] or null; attrs: mode (0 TF, 1 IDF,
/// 2 TFIDF), shortest and longest n-gram, skips, columns, longest n-gram of the pool; then for each
/// length from 1 on how many n-grams the pool has; then the n-grams by length, sorted, each
/// followed by its column. Gives f32 [columns] or [N, columns]: how often each n-gram occurs, its
/// tokens next to each other or up to so many places apart, weighted.
LLMC_GRAPH_KERNEL(tfidf) {
  Value *x = in[0], *weights = in[1];
  int64_t mode = attrs[0], shortest = attrs[1], longest = attrs[2], skips = attrs[3];
  int64_t columns = attrs[4], lengths = attrs[5];
  if (x->rank > 2)
    return fail(g, LLMRT_GRAPH_RANK, x->rank, 2);
  if (weights && weights->count != columns)
    return fail(g, LLMRT_GRAPH_SHAPE, weights->count, columns);
  int64_t rows = x->rank == 2 ? x->dims[0] : 1, size = x->rank == 0 ? 1 : x->dims[x->rank - 1];
  int64_t dims[2] = {rows, columns};
  GRAPH_TRY(x->rank == 2 ? newTensor(g, LLMRT_TYPE_F32, 2, dims, out[0])
                         : newTensor(g, LLMRT_TYPE_F32, 1, dims + 1, out[0]));
  float *y = data<float>(out[0]);
  for (int64_t i = 0; i < out[0]->count; ++i)
    y[i] = 0;
  const int64_t *counts = attrs + 6, *grams = counts + lengths;
  for (int64_t n = 1; n <= lengths; grams += counts[n - 1] * (n + 1), ++n) {
    if (n < shortest || n > longest)
      continue;
    // A single token is next to nothing: no skip changes it.
    for (int64_t step = 1; step <= (n == 1 ? 1 : skips + 1); ++step) {
      if (n > 1 && step > (size - 1) / (n - 1))
        break;
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t start = 0; start + (n - 1) * step < size; ++start) {
          int64_t low = 0, high = counts[n - 1];
          while (low < high) {
            int64_t middle = (low + high) / 2, order = 0;
            for (int64_t k = 0; k < n && order == 0; ++k) {
              int64_t token = indexAt(x, r * size + start + k * step);
              int64_t other = grams[middle * (n + 1) + k];
              order = token < other ? -1 : token > other;
            }
            if (order == 0) {
              y[r * columns + grams[middle * (n + 1) + n]] += 1;
              break;
            }
            (order < 0 ? high : low) = order < 0 ? middle : middle + 1;
          }
        }
    }
  }
  for (int64_t i = 0; mode != 0 && i < out[0]->count; ++i) {
    float weight = weights ? data<float>(weights)[i % columns] : 1;
    y[i] = mode == 2 ? y[i] * weight : y[i] > 0 ? weight : 0;
  }
  return 0;
}
