//===- Norm.cpp - layer and root-mean-square normalization ------------------===//
#include "codegen/cpu/graph/Real.h"

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
