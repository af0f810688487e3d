//===- Shape.cpp - shapes and their changes -----------------------------------===//
#include "codegen/cpu/graph/Graph.h"

namespace llmc::graphcode {

__attribute__((noinline)) static int32_t indexVector(Graph *g, int64_t n, const int64_t *values,
                                                     Value *&result) {
  GRAPH_TRY(newTensor(g, LLMRT_TYPE_I64, 1, &n, result));
  for (int64_t i = 0; i < n; ++i)
    data<int64_t>(result)[i] = values[i];
  return 0;
}

/// y[i] = x at offset + sum of index[d] * strides[d], elements of \p bytes, along all of y.
__attribute__((noinline)) static void copyStrided(Value *y, const void *x, int64_t offset,
                                                  const int64_t *strides, int64_t bytes) {
  if (y->count == 0)
    return;
  if (y->rank == 0) {
    copyElement(y->data, 0, x, offset, bytes);
    return;
  }
  int64_t inner = y->dims[y->rank - 1], step = strides[y->rank - 1];
  Odometer<1> at{y->rank - 1, y->dims, {strides}};
  for (int64_t row = 0; row < y->count; row += inner, at.next()) {
    int64_t from = offset + at.offset[0];
    if (step == 1)
      copyBytes(static_cast<char *>(y->data) + row * bytes,
                static_cast<const char *>(x) + from * bytes, inner * bytes);
    else
      for (int64_t i = 0; i < inner; ++i)
        copyElement(y->data, row + i, x, from + i * step, bytes);
  }
}

/// The axes of a tensor of \p rank that \p list names, as a set; an axis may come once only.
__attribute__((noinline)) static int32_t axisSet(Graph *g, const Value *list, int64_t rank,
                                                 bool *isIn) {
  for (int64_t d = 0; d < rank; ++d)
    isIn[d] = false;
  for (int64_t i = 0; i < list->count; ++i) {
    int64_t axis;
    GRAPH_TRY(normalAxis(g, indexAt(list, i), rank, axis));
    if (isIn[axis])
      return fail(g, LLMRT_GRAPH_ARGUMENT, axis);
    isIn[axis] = true;
  }
  return 0;
}

} // namespace llmc::graphcode

using namespace llmc::graphcode;

/// attrs: start, whether there is an end, end
LLMC_GRAPH_KERNEL(shape) {
  int64_t rank = in[0]->rank;
  auto bound = [&](int64_t at) { return max<int64_t>(0, min(at < 0 ? at + rank : at, rank)); };
  int64_t begin = bound(attrs[0]), end = attrs[1] ? bound(attrs[2]) : rank;
  return indexVector(g, max<int64_t>(end - begin, 0), in[0]->dims + begin, out[0]);
}
LLMC_GRAPH_KERNEL(size) {
  GRAPH_TRY(newTensor(g, LLMRT_TYPE_I64, 0, nullptr, out[0]));
  data<int64_t>(out[0])[0] = in[0]->count;
  return 0;
}

/// x, shape; attrs: whether 0 is a size
LLMC_GRAPH_KERNEL(reshape) {
  Value *x = in[0];
  int64_t rank = in[1]->count, dims[kMaxRank], unknown = -1, known = 1;
  if (rank > kMaxRank)
    return fail(g, LLMRT_GRAPH_RANK, rank, kMaxRank);
  for (int64_t i = 0; i < rank; ++i) {
    int64_t dim = indexAt(in[1], i);
    if (dim == 0 && !attrs[0]) {
      if (i >= x->rank)
        return fail(g, LLMRT_GRAPH_AXIS, i, x->rank);
      dim = x->dims[i];
    }
    if (dim < -1 || (dim == -1 && unknown >= 0))
      return fail(g, LLMRT_GRAPH_ARGUMENT, dim);
    dims[i] = dim;
    if (dim == -1)
      unknown = i;
    else if (__builtin_mul_overflow(known, dim, &known))
      return fail(g, LLMRT_GRAPH_TOO_LARGE, dim);
  }
  if (unknown >= 0) {
    if (known == 0 || x->count % known != 0)
      return fail(g, LLMRT_GRAPH_SHAPE, x->count, known);
    dims[unknown] = x->count / known;
  }
  return newView(g, x, rank, dims, out[0]);
}
/// attrs: axis, which may be the rank
LLMC_GRAPH_KERNEL(flatten) {
  int64_t rank = in[0]->rank, axis = attrs[0] < 0 ? attrs[0] + rank : attrs[0];
  if (axis < 0 || axis > rank)
    return fail(g, LLMRT_GRAPH_AXIS, attrs[0], rank);
  int64_t dims[2] = {product(in[0], 0, axis), product(in[0], axis, rank)};
  return newView(g, in[0], 2, dims, out[0]);
}
/// x, axes or null
LLMC_GRAPH_KERNEL(squeeze) {
  Value *x = in[0];
  bool isIn[kMaxRank];
  int64_t dims[kMaxRank], rank = 0;
  if (in[1])
    GRAPH_TRY(axisSet(g, in[1], x->rank, isIn));
  for (int64_t d = 0; d < x->rank; ++d) {
    bool isDropped = in[1] ? isIn[d] : x->dims[d] == 1;
    if (isDropped && x->dims[d] != 1)
      return fail(g, LLMRT_GRAPH_SHAPE, x->dims[d], 1);
    if (!isDropped)
      dims[rank++] = x->dims[d];
  }
  return newView(g, x, rank, dims, out[0]);
}
/// x, axes
LLMC_GRAPH_KERNEL(unsqueeze) {
  Value *x = in[0];
  int64_t rank = x->rank + in[1]->count, dims[kMaxRank], next = 0;
  bool isIn[kMaxRank];
  if (rank > kMaxRank)
    return fail(g, LLMRT_GRAPH_RANK, rank, kMaxRank);
  GRAPH_TRY(axisSet(g, in[1], rank, isIn));
  for (int64_t d = 0; d < rank; ++d)
    dims[d] = isIn[d] ? 1 : x->dims[next++];
  return newView(g, x, rank, dims, out[0]);
}
/// x, shape
LLMC_GRAPH_KERNEL(expand) {
  Value *x = in[0];
  int64_t rank = in[1]->count, dims[kMaxRank], strides[kMaxRank];
  if (rank > kMaxRank)
    return fail(g, LLMRT_GRAPH_RANK, rank, kMaxRank);
  for (int64_t i = 0; i < rank; ++i)
    dims[i] = indexAt(in[1], i);
  GRAPH_TRY(broadcastInto(g, x, rank, dims));
  GRAPH_TRY(newTensor(g, type, rank, dims, out[0]));
  broadcastStrides(x, rank, dims, strides);
  copyStrided(out[0], x->data, 0, strides, elementBytes(type));
  return 0;
}
/// x, repeats
LLMC_GRAPH_KERNEL(tile) {
  Value *x = in[0];
  if (in[1]->count != x->rank)
    return fail(g, LLMRT_GRAPH_SHAPE, in[1]->count, x->rank);
  // As a tensor of twice the rank: (repeat, size) for each dimension.
  int64_t dims[kMaxRank], own[kMaxRank], index[kMaxRank] = {}, bytes = elementBytes(type);
  for (int64_t d = 0; d < x->rank; ++d) {
    int64_t repeats = indexAt(in[1], d);
    if (repeats < 0)
      return fail(g, LLMRT_GRAPH_ARGUMENT, repeats);
    if (__builtin_mul_overflow(x->dims[d], repeats, &dims[d]))
      return fail(g, LLMRT_GRAPH_TOO_LARGE, repeats);
  }
  GRAPH_TRY(newTensor(g, type, x->rank, dims, out[0]));
  rowMajorStrides(x->rank, x->dims, own);
  for (int64_t i = 0; i < out[0]->count; ++i) {
    int64_t from = 0;
    for (int64_t d = 0; d < x->rank; ++d)
      from += index[d] % x->dims[d] * own[d];
    copyElement(out[0]->data, i, x->data, from, bytes);
    for (int64_t d = x->rank - 1; d >= 0 && ++index[d] == dims[d]; --d)
      index[d] = 0;
  }
  return 0;
}
/// attrs: rank, perm; of rank 0 for reversed dimensions
LLMC_GRAPH_KERNEL(transpose) {
  Value *x = in[0];
  int64_t rank = x->rank, dims[kMaxRank], strides[kMaxRank], own[kMaxRank];
  if (attrs[0] != rank && attrs[0] != 0)
    return fail(g, LLMRT_GRAPH_RANK, rank, attrs[0]);
  rowMajorStrides(rank, x->dims, own);
  for (int64_t d = 0; d < rank; ++d) {
    int64_t from = attrs[0] ? attrs[1 + d] : rank - 1 - d;
    dims[d] = x->dims[from];
    strides[d] = own[from];
  }
  GRAPH_TRY(newTensor(g, type, rank, dims, out[0]));
  copyStrided(out[0], x->data, 0, strides, elementBytes(type));
  return 0;
}
/// attrs: axis, how many
LLMC_GRAPH_KERNEL(concat) {
  int64_t rank = in[0]->rank, axis, total = 0, dims[kMaxRank];
  GRAPH_TRY(normalAxis(g, attrs[0], rank, axis));
  for (int64_t i = 0; i < attrs[1]; ++i) {
    if (in[i]->rank != rank)
      return fail(g, LLMRT_GRAPH_RANK, in[i]->rank, rank);
    for (int64_t d = 0; d < rank; ++d)
      if (d != axis && in[i]->dims[d] != in[0]->dims[d])
        return fail(g, LLMRT_GRAPH_SHAPE, in[i]->dims[d], in[0]->dims[d]);
    total += in[i]->dims[axis];
  }
  for (int64_t d = 0; d < rank; ++d)
    dims[d] = d == axis ? total : in[0]->dims[d];
  GRAPH_TRY(newTensor(g, type, rank, dims, out[0]));
  int64_t outer = product(out[0], 0, axis);
  int64_t inner = product(out[0], axis + 1, rank) * elementBytes(type), at = 0;
  for (int64_t i = 0; i < attrs[1]; ++i) {
    int64_t width = in[i]->dims[axis] * inner;
    for (int64_t o = 0; o < outer; ++o)
      copyBytes(data<char>(out[0]) + o * total * inner + at, data<char>(in[i]) + o * width, width);
    at += width;
  }
  return 0;
}
/// x, sizes or null; attrs: axis, parts
LLMC_GRAPH_KERNEL(split) {
  Value *x = in[0];
  int64_t axis, parts = attrs[1], at = 0;
  GRAPH_TRY(normalAxis(g, attrs[0], x->rank, axis));
  int64_t size = x->dims[axis], each = (size + parts - 1) / parts;
  if (in[1] && in[1]->count != parts)
    return fail(g, LLMRT_GRAPH_SHAPE, in[1]->count, parts);
  int64_t outer = product(x, 0, axis);
  int64_t inner = product(x, axis + 1, x->rank) * elementBytes(type);
  for (int64_t i = 0; i < parts; ++i) {
    int64_t width = in[1] ? indexAt(in[1], i) : max<int64_t>(min(each, size - at), 0);
    if (width < 0 || width > size - at)
      return fail(g, LLMRT_GRAPH_SHAPE, width, size - at);
    int64_t dims[kMaxRank];
    for (int64_t d = 0; d < x->rank; ++d)
      dims[d] = d == axis ? width : x->dims[d];
    GRAPH_TRY(newTensor(g, type, x->rank, dims, out[i]));
    for (int64_t o = 0; o < outer; ++o)
      copyBytes(data<char>(out[i]) + o * width * inner, data<char>(x) + (o * size + at) * inner,
                width * inner);
    at += width;
  }
  return at == size ? 0 : fail(g, LLMRT_GRAPH_SHAPE, at, size);
}
/// x, starts, ends, axes or null, steps or null
LLMC_GRAPH_KERNEL(slice) {
  Value *x = in[0];
  int64_t dims[kMaxRank], strides[kMaxRank], offset = 0, n = in[1]->count;
  bool isIn[kMaxRank];
  if (n > x->rank || in[2]->count != n || (in[3] && in[3]->count != n) ||
      (in[4] && in[4]->count != n))
    return fail(g, LLMRT_GRAPH_SHAPE, n, in[2]->count);
  if (in[3])
    GRAPH_TRY(axisSet(g, in[3], x->rank, isIn));
  rowMajorStrides(x->rank, x->dims, strides);
  for (int64_t d = 0; d < x->rank; ++d)
    dims[d] = x->dims[d];
  for (int64_t i = 0; i < n; ++i) {
    int64_t axis = i;
    if (in[3])
      GRAPH_TRY(normalAxis(g, indexAt(in[3], i), x->rank, axis));
    int64_t size = x->dims[axis], step = in[4] ? indexAt(in[4], i) : 1;
    int64_t start = indexAt(in[1], i), end = indexAt(in[2], i);
    if (step == 0)
      return fail(g, LLMRT_GRAPH_ARGUMENT, step);
    if (step == INT64_MIN)
      step = -INT64_MAX;
    start += start < 0 ? size : 0;
    end += end < 0 ? size : 0;
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
    start = max<int64_t>(step > 0 ? low : 0, min(start, high));
    if (step < 0 && size == 0)
      start = -1;
    end = max<int64_t>(low, min(end, step > 0 ? size : size - 1));
    int64_t span = step > 0 ? end - start : start - end;
    int64_t width = step > 0 ? step : -step;
    dims[axis] = span > 0 ? (span - 1) / width + 1 : 0;
    offset += dims[axis] > 0 ? start * strides[axis] : 0;
    // One element needs no step, which may be as large as there are numbers.
    strides[axis] *= dims[axis] > 1 ? step : 0;
  }
  GRAPH_TRY(newTensor(g, type, x->rank, dims, out[0]));
  copyStrided(out[0], x->data, offset, strides, elementBytes(type));
  return 0;
}
/// x, pads, value or null, axes or null; attrs: mode (0 constant, 1 reflect, 2 edge, 3 wrap)
LLMC_GRAPH_KERNEL(pad) {
  Value *x = in[0];
  int64_t rank = x->rank, n = in[3] ? in[3]->count : rank, dims[kMaxRank], begin[kMaxRank];
  int64_t own[kMaxRank], index[kMaxRank] = {}, bytes = elementBytes(type), mode = attrs[0];
  bool isIn[kMaxRank];
  if (in[1]->count != 2 * n)
    return fail(g, LLMRT_GRAPH_SHAPE, in[1]->count, 2 * n);
  if (in[3])
    GRAPH_TRY(axisSet(g, in[3], rank, isIn));
  if (in[2] && in[2]->count != 1)
    return fail(g, LLMRT_GRAPH_SHAPE, in[2]->count, 1);
  for (int64_t d = 0; d < rank; ++d)
    dims[d] = x->dims[d], begin[d] = 0;
  constexpr int64_t most = int64_t(1) << 40;
  for (int64_t i = 0; i < n; ++i) {
    int64_t axis = i, before = indexAt(in[1], i), after = indexAt(in[1], n + i);
    if (in[3])
      GRAPH_TRY(normalAxis(g, indexAt(in[3], i), rank, axis));
    if (before > most || before < -most || after > most || after < -most)
      return fail(g, LLMRT_GRAPH_ARGUMENT, before);
    begin[axis] = before;
    dims[axis] += before + after;
    if (dims[axis] < 0)
      return fail(g, LLMRT_GRAPH_ARGUMENT, dims[axis]);
    if (mode != 0 && x->dims[axis] == 0 && dims[axis] > 0)
      return fail(g, LLMRT_GRAPH_EMPTY);
  }
  GRAPH_TRY(newTensor(g, type, rank, dims, out[0]));
  rowMajorStrides(rank, x->dims, own);
  uint64_t zero = 0;
  const void *filler = in[2] ? in[2]->data : &zero;
  for (int64_t i = 0; i < out[0]->count; ++i) {
    int64_t from = 0;
    bool isInside = true;
    for (int64_t d = 0; d < rank; ++d) {
      int64_t at = index[d] - begin[d], size = x->dims[d];
      if (at < 0 || at >= size) {
        isInside = false;
        if (mode == 1) {
          int64_t period = max<int64_t>(2 * (size - 1), 1);
          at = ((at % period) + period) % period;
          at = size == 1 ? 0 : at < size ? at : period - at;
        } else if (mode == 2) {
          at = at < 0 ? 0 : size - 1;
        } else if (mode == 3) {
          at = ((at % size) + size) % size;
        }
      }
      from += at * own[d];
    }
    if (isInside || mode != 0)
      copyElement(out[0]->data, i, x->data, from, bytes);
    else
      copyElement(out[0]->data, i, filler, 0, bytes);
    for (int64_t d = rank - 1; d >= 0 && ++index[d] == dims[d]; --d)
      index[d] = 0;
  }
  return 0;
}
/// start, limit, step
LLMC_GRAPH_KERNEL(range) {
  for (int i = 0; i < 3; ++i)
    if (in[i]->count != 1)
      return fail(g, LLMRT_GRAPH_SHAPE, in[i]->count, 1);
  return computed(g, in, out, type, 3, 1, [&](Value *const *in, Value **out) {
    return withType(computeType(type), [&](auto sample) -> int32_t {
      using T = decltype(sample);
      T start = data<T>(in[0])[0], limit = data<T>(in[1])[0], step = data<T>(in[2])[0];
      int64_t n = 0;
      if (step == T(0) || step != step)
        return fail(g, LLMRT_GRAPH_ARGUMENT, 0);
      if constexpr (isReal<T>) {
        double length = (double(limit) - double(start)) / double(step);
        if (length > double(kMaxElements))
          return fail(g, LLMRT_GRAPH_TOO_LARGE, INT64_MAX);
        n = length > 0 ? int64_t(__builtin_elementwise_ceil(length)) : 0;
      } else if (step > T(0) ? limit > start : limit < start) {
        uint64_t span =
            step > T(0) ? uint64_t(limit) - uint64_t(start) : uint64_t(start) - uint64_t(limit);
        uint64_t width = step > T(0) ? uint64_t(step) : uint64_t(0) - uint64_t(int64_t(step));
        uint64_t count = (span - 1) / width + 1;
        if (count > uint64_t(kMaxElements))
          return fail(g, LLMRT_GRAPH_TOO_LARGE, int64_t(count >> 1));
        n = int64_t(count);
      }
      GRAPH_TRY(newTensor(g, computeType(type), 1, &n, out[0]));
      for (int64_t i = 0; i < n; ++i)
        data<T>(out[0])[i] =
            isReal<T> ? T(start + T(i) * step) : T(uint64_t(start) + uint64_t(i) * uint64_t(step));
      return 0;
    });
  });
}
/// shape; attrs: the element's bits
LLMC_GRAPH_KERNEL(fill) {
  int64_t rank = in[0]->count, dims[kMaxRank], bytes = elementBytes(type);
  if (rank > kMaxRank)
    return fail(g, LLMRT_GRAPH_RANK, rank, kMaxRank);
  for (int64_t i = 0; i < rank; ++i)
    dims[i] = indexAt(in[0], i);
  GRAPH_TRY(newTensor(g, type, rank, dims, out[0]));
  for (int64_t i = 0; i < out[0]->count; ++i)
    copyElement(out[0]->data, i, attrs, 0, bytes);
  return 0;
}
/// x, diagonal or null; attrs: upper
LLMC_GRAPH_KERNEL(trilu) {
  Value *x = in[0];
  if (x->rank < 2)
    return fail(g, LLMRT_GRAPH_RANK, x->rank, 2);
  int64_t k = in[1] ? indexAt(in[1], 0) : 0, bytes = elementBytes(type);
  int64_t columns = x->dims[x->rank - 1], rows = x->dims[x->rank - 2];
  k = max(-rows - 1, min(k, columns + 1));
  GRAPH_TRY(newTensor(g, type, x->rank, x->dims, out[0]));
  uint64_t zero = 0;
  for (int64_t i = 0; i < x->count; ++i) {
    int64_t column = i % columns, row = i / columns % rows;
    bool isKept = attrs[0] ? column - row >= k : column - row <= k;
    copyElement(out[0]->data, i, isKept ? x->data : &zero, isKept ? i : 0, bytes);
  }
  return 0;
}
