//===- Dequantize.cpp - integers and 8-bit floats to floats -----------------===//
#include "codegen/cpu/graph/Real.h"

using namespace llmc::graphcode;

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
  auto code = [&](const Value *v, int64_t i) -> double {
    return isSmallFloat(from) ? double(loadSmall(from, v->data, i)) : double(codeAt(v, i));
  };
  for (int64_t i = 0; i < x->count; ++i) {
    int64_t at = 0;
    if (block > 0)
      at = (i / inner / size * scales + i / inner % size / block) * inner + i % inner;
    else if (scale->count != 1)
      at = i / inner % size;
    storeReal(out[0], i, (code(x, i) - (zero ? code(zero, at) : 0)) * realAt(scale, at));
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
