//===- Rearrange.cpp - elements in other places ---------------------------------===//
#include "codegen/cpu/graph/Graph.h"

using namespace llmc::graphcode;

/// attrs: from, to: the axis goes there, the others keep their order.
LLMC_GRAPH_KERNEL(move_axis) {
  Value *x = in[0];
  int64_t from, to, order[kMaxRank], dims[kMaxRank], own[kMaxRank], strides[kMaxRank], n = 0;
  GRAPH_TRY(normalAxis(g, attrs[0], x->rank, from));
  GRAPH_TRY(normalAxis(g, attrs[1], x->rank, to));
  for (int64_t d = 0, next = 0; d < x->rank; ++d) {
    if (d == to) {
      order[n++] = from;
      continue;
    }
    next += next == from;
    order[n++] = next++;
  }
  rowMajorStrides(x->rank, x->dims, own);
  for (int64_t d = 0; d < x->rank; ++d) {
    dims[d] = x->dims[order[d]];
    strides[d] = own[order[d]];
  }
  GRAPH_TRY(newTensor(g, type, x->rank, dims, out[0]));
  int64_t index[kMaxRank] = {}, bytes = elementBytes(type);
  for (int64_t i = 0; i < out[0]->count; ++i) {
    int64_t place = 0;
    for (int64_t d = 0; d < x->rank; ++d)
      place += index[d] * strides[d];
    copyElement(out[0]->data, i, x->data, place, bytes);
    for (int64_t d = x->rank - 1; d >= 0 && ++index[d] == dims[d]; --d)
      index[d] = 0;
  }
  return 0;
}

namespace llmc::graphcode {
/// x [N, C, H, W] between [N, C, H b, W b] and [N, C b b, H, W].
GRAPH_INLINE int32_t blocks(Graph *g, Value *const *in, Value **out, const int64_t *attrs,
                            int64_t type, bool toDepth) {
  Value *x = in[0];
  int64_t b = attrs[0], bytes = elementBytes(type);
  if (x->rank != 4)
    return fail(g, LLMRT_GRAPH_RANK, x->rank, 4);
  if (b < 1 || b > 65536)
    return fail(g, LLMRT_GRAPH_ARGUMENT, b);
  int64_t C = x->dims[1], H = x->dims[2], W = x->dims[3];
  if (toDepth ? H % b != 0 || W % b != 0 : C % (b * b) != 0)
    return fail(g, LLMRT_GRAPH_SHAPE, toDepth ? H : C, b);
  int64_t small = toDepth ? C : C / (b * b), h = toDepth ? H / b : H, w = toDepth ? W / b : W;
  int64_t dims[4] = {x->dims[0], toDepth ? C * b * b : small, toDepth ? h : h * b,
                     toDepth ? w : w * b};
  GRAPH_TRY(newTensor(g, type, 4, dims, out[0]));
  for (int64_t n = 0; n < x->dims[0]; ++n)
    for (int64_t c = 0; c < small; ++c)
      for (int64_t p = 0; p < b; ++p)
        for (int64_t q = 0; q < b; ++q) {
          int64_t depth = attrs[1] ? (p * b + q) * small + c : (c * b + p) * b + q;
          for (int64_t i = 0; i < h; ++i)
            for (int64_t j = 0; j < w; ++j) {
              int64_t deep = ((n * small * b * b + depth) * h + i) * w + j;
              int64_t wide = ((n * small + c) * h * b + i * b + p) * w * b + j * b + q;
              copyElement(out[0]->data, toDepth ? deep : wide, x->data, toDepth ? wide : deep,
                          bytes);
            }
        }
  return 0;
}
} // namespace llmc::graphcode

/// attrs: block size, whether the depth counts places before channels (DCR)
LLMC_GRAPH_KERNEL(depth_to_space) { return blocks(g, in, out, attrs, type, false); }
LLMC_GRAPH_KERNEL(space_to_depth) { return blocks(g, in, out, attrs, type, true); }

/// x, sizes; attrs: the list of axes (empty: all). Cuts or fills with zeros evenly at both ends.
LLMC_GRAPH_KERNEL(center_crop_pad) {
  Value *x = in[0];
  int64_t n = attrs[0] ? attrs[0] : x->rank, dims[kMaxRank], shift[kMaxRank], own[kMaxRank];
  if (in[1]->count != n)
    return fail(g, LLMRT_GRAPH_SHAPE, in[1]->count, n);
  for (int64_t d = 0; d < x->rank; ++d)
    dims[d] = x->dims[d], shift[d] = 0;
  for (int64_t i = 0; i < n; ++i) {
    int64_t axis = i, size = indexAt(in[1], i);
    if (attrs[0])
      GRAPH_TRY(normalAxis(g, attrs[1 + i], x->rank, axis));
    dims[axis] = size;
    int64_t more = size - x->dims[axis];
    shift[axis] = more >= 0 ? -(more / 2) : (-more) / 2;
  }
  GRAPH_TRY(newTensor(g, type, x->rank, dims, out[0]));
  rowMajorStrides(x->rank, x->dims, own);
  int64_t index[kMaxRank] = {}, bytes = elementBytes(type);
  uint64_t zero = 0;
  for (int64_t i = 0; i < out[0]->count; ++i) {
    int64_t place = 0;
    bool isInside = true;
    for (int64_t d = 0; d < x->rank; ++d) {
      int64_t at = index[d] + shift[d];
      isInside &= at >= 0 && at < x->dims[d];
      place += at * own[d];
    }
    copyElement(out[0]->data, i, isInside ? x->data : &zero, isInside ? place : 0, bytes);
    for (int64_t d = x->rank - 1; d >= 0 && ++index[d] == dims[d]; --d)
      index[d] = 0;
  }
  return 0;
}

/// x, whose shape counts; attrs: diagonal, the element's bits of 1. Ones on the diagonal.
LLMC_GRAPH_KERNEL(eye_like) {
  Value *x = in[0];
  if (x->rank != 2)
    return fail(g, LLMRT_GRAPH_RANK, x->rank, 2);
  GRAPH_TRY(newTensor(g, type, 2, x->dims, out[0]));
  uint64_t zero = 0;
  int64_t bytes = elementBytes(type);
  for (int64_t i = 0; i < x->count; ++i)
    copyElement(out[0]->data, i,
                i % x->dims[1] - i / x->dims[1] == attrs[0] ? attrs + 1 : (const void *)&zero, 0,
                bytes);
  return 0;
}
