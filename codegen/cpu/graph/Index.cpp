//===- Index.cpp - reading and writing by index -------------------------------===//
#include "codegen/cpu/graph/Graph.h"

namespace llmc::graphcode {

/// How an update meets what is there: GraphIndex.td, ScatterKind.
template <class T> GRAPH_INLINE T combine(int64_t kind, T old, T update) {
  switch (kind) {
  case 1:
    return T(old + update);
  case 2:
    return T(old * update);
  case 3:
    return min(old, update);
  case 4:
    return max(old, update);
  default:
    return update;
  }
}

/// Element \p i of a tensor of any numbers, as an integer.
__attribute__((noinline)) static int64_t integerAt(const Value *v, int64_t i) {
  switch (v->type) {
  case LLMRT_TYPE_F32:
    return int64_t(data<float>(v)[i]);
  case LLMRT_TYPE_F64:
    return int64_t(data<double>(v)[i]);
  case LLMRT_TYPE_I8:
    return data<int8_t>(v)[i];
  case LLMRT_TYPE_U8:
    return data<uint8_t>(v)[i];
  case LLMRT_TYPE_I16:
    return data<int16_t>(v)[i];
  case LLMRT_TYPE_U16:
    return data<uint16_t>(v)[i];
  case LLMRT_TYPE_I32:
    return data<int32_t>(v)[i];
  case LLMRT_TYPE_U32:
    return data<uint32_t>(v)[i];
  default:
    return data<int64_t>(v)[i];
  }
}

__attribute__((noinline)) static int32_t copyOf(Graph *g, const Value *x, Value *&y) {
  GRAPH_TRY(newTensor(g, x->type, x->rank, x->dims, y));
  copyBytes(y->data, x->data, x->count * elementBytes(x->type));
  return 0;
}

/// Sorts indices [0, n) with \p less, stable: merge sort with scratch of n.
template <class Less>
GRAPH_INLINE void sortIndices(int64_t *order, int64_t *other, int64_t n, Less less) {
  for (int64_t i = 0; i < n; ++i)
    order[i] = i;
  for (int64_t width = 1; width < n; width *= 2) {
    for (int64_t begin = 0; begin < n; begin += 2 * width) {
      int64_t middle = min(begin + width, n), end = min(begin + 2 * width, n);
      int64_t a = begin, b = middle;
      for (int64_t i = begin; i < end; ++i)
        other[i] = b >= end || (a < middle && !less(order[b], order[a])) ? order[a++] : order[b++];
    }
    for (int64_t i = 0; i < n; ++i)
      order[i] = other[i];
  }
}

} // namespace llmc::graphcode

using namespace llmc::graphcode;

/// x, indices; attrs: axis
LLMC_GRAPH_KERNEL(gather) {
  Value *x = in[0], *indices = in[1];
  int64_t axis, dims[kMaxRank], rank = 0;
  GRAPH_TRY(normalAxis(g, attrs[0], x->rank, axis));
  if (x->rank - 1 + indices->rank > kMaxRank)
    return fail(g, LLMRT_GRAPH_RANK, x->rank - 1 + indices->rank, kMaxRank);
  for (int64_t d = 0; d < axis; ++d)
    dims[rank++] = x->dims[d];
  for (int64_t d = 0; d < indices->rank; ++d)
    dims[rank++] = indices->dims[d];
  for (int64_t d = axis + 1; d < x->rank; ++d)
    dims[rank++] = x->dims[d];
  GRAPH_TRY(newTensor(g, type, rank, dims, out[0]));
  int64_t outer = product(x, 0, axis), size = x->dims[axis];
  int64_t inner = product(x, axis + 1, x->rank) * elementBytes(type), n = indices->count;
  for (int64_t i = 0; i < n; ++i) {
    int64_t at;
    GRAPH_TRY(normalIndex(g, indexAt(indices, i), size, at));
    for (int64_t o = 0; o < outer; ++o)
      copyBytes(data<char>(out[0]) + (o * n + i) * inner, data<char>(x) + (o * size + at) * inner,
                inner);
  }
  return 0;
}
/// x, indices; attrs: axis
LLMC_GRAPH_KERNEL(gather_elements) {
  Value *x = in[0], *indices = in[1];
  int64_t axis, own[kMaxRank], index[kMaxRank] = {}, bytes = elementBytes(type);
  GRAPH_TRY(normalAxis(g, attrs[0], x->rank, axis));
  if (indices->rank != x->rank)
    return fail(g, LLMRT_GRAPH_RANK, indices->rank, x->rank);
  for (int64_t d = 0; d < x->rank; ++d)
    if (d != axis && indices->dims[d] > x->dims[d])
      return fail(g, LLMRT_GRAPH_SHAPE, indices->dims[d], x->dims[d]);
  GRAPH_TRY(newTensor(g, type, indices->rank, indices->dims, out[0]));
  rowMajorStrides(x->rank, x->dims, own);
  for (int64_t i = 0; i < indices->count; ++i) {
    int64_t at, from = 0;
    GRAPH_TRY(normalIndex(g, indexAt(indices, i), x->dims[axis], at));
    for (int64_t d = 0; d < x->rank; ++d)
      from += (d == axis ? at : index[d]) * own[d];
    copyElement(out[0]->data, i, x->data, from, bytes);
    for (int64_t d = x->rank - 1; d >= 0 && ++index[d] == indices->dims[d]; --d)
      index[d] = 0;
  }
  return 0;
}
/// x, indices; attrs: batch_dims
LLMC_GRAPH_KERNEL(gather_nd) {
  Value *x = in[0], *indices = in[1];
  int64_t batch = attrs[0], dims[kMaxRank], rank = 0;
  if (indices->rank < 1 || batch >= indices->rank || batch >= x->rank)
    return fail(g, LLMRT_GRAPH_AXIS, batch, x->rank);
  int64_t depth = indices->dims[indices->rank - 1];
  if (depth + batch > x->rank || indices->rank - 1 + x->rank - batch - depth > kMaxRank)
    return fail(g, LLMRT_GRAPH_RANK, x->rank, depth + batch);
  for (int64_t d = 0; d < batch; ++d)
    if (x->dims[d] != indices->dims[d])
      return fail(g, LLMRT_GRAPH_SHAPE, x->dims[d], indices->dims[d]);
  for (int64_t d = 0; d < indices->rank - 1; ++d)
    dims[rank++] = indices->dims[d];
  for (int64_t d = batch + depth; d < x->rank; ++d)
    dims[rank++] = x->dims[d];
  GRAPH_TRY(newTensor(g, type, rank, dims, out[0]));
  int64_t inner = product(x, batch + depth, x->rank) * elementBytes(type);
  int64_t batches = product(x, 0, batch), perBatch = product(indices, batch, indices->rank - 1);
  int64_t span = product(x, batch, batch + depth);
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t i = 0; i < perBatch; ++i) {
      int64_t from = 0, tuple = b * perBatch + i;
      for (int64_t d = 0; d < depth; ++d) {
        int64_t at;
        GRAPH_TRY(normalIndex(g, indexAt(indices, tuple * depth + d), x->dims[batch + d], at));
        from = from * x->dims[batch + d] + at;
      }
      copyBytes(data<char>(out[0]) + tuple * inner, data<char>(x) + (b * span + from) * inner,
                inner);
    }
  return 0;
}
/// x, indices, updates; attrs: kind, axis
LLMC_GRAPH_KERNEL(scatter_elements) {
  Value *indices = in[1];
  int64_t axis;
  GRAPH_TRY(normalAxis(g, attrs[1], in[0]->rank, axis));
  if (indices->rank != in[0]->rank || in[2]->count != indices->count)
    return fail(g, LLMRT_GRAPH_SHAPE, indices->count, in[2]->count);
  for (int64_t d = 0; d < indices->rank; ++d)
    if (d != axis && indices->dims[d] > in[0]->dims[d])
      return fail(g, LLMRT_GRAPH_SHAPE, indices->dims[d], in[0]->dims[d]);
  return computed(g, in, out, type, 3, 1, [&](Value *const *in, Value **out) {
    return withType(computeType(type), [&](auto sample) -> int32_t {
      using T = decltype(sample);
      Value *x = in[0];
      int64_t own[kMaxRank], index[kMaxRank] = {};
      GRAPH_TRY(copyOf(g, x, out[0]));
      rowMajorStrides(x->rank, x->dims, own);
      for (int64_t i = 0; i < indices->count; ++i) {
        int64_t at, to = 0;
        GRAPH_TRY(normalIndex(g, indexAt(indices, i), x->dims[axis], at));
        for (int64_t d = 0; d < x->rank; ++d)
          to += (d == axis ? at : index[d]) * own[d];
        T &element = data<T>(out[0])[to];
        element = combine(attrs[0], element, data<T>(in[2])[i]);
        for (int64_t d = x->rank - 1; d >= 0 && ++index[d] == indices->dims[d]; --d)
          index[d] = 0;
      }
      return 0;
    });
  });
}
/// x, indices, updates; attrs: kind
LLMC_GRAPH_KERNEL(scatter_nd) {
  Value *indices = in[1];
  if (indices->rank < 1 || indices->dims[indices->rank - 1] > in[0]->rank)
    return fail(g, LLMRT_GRAPH_RANK, indices->rank, in[0]->rank);
  return computed(g, in, out, type, 3, 1, [&](Value *const *in, Value **out) {
    return withType(computeType(type), [&](auto sample) -> int32_t {
      using T = decltype(sample);
      Value *x = in[0];
      int64_t depth = indices->dims[indices->rank - 1];
      int64_t inner = product(x, depth, x->rank), tuples = product(indices, 0, indices->rank - 1);
      if (in[2]->count != inner * tuples)
        return fail(g, LLMRT_GRAPH_SHAPE, in[2]->count, inner * tuples);
      GRAPH_TRY(copyOf(g, x, out[0]));
      for (int64_t t = 0; t < tuples; ++t) {
        int64_t to = 0;
        for (int64_t d = 0; d < depth; ++d) {
          int64_t at;
          GRAPH_TRY(normalIndex(g, indexAt(indices, t * depth + d), x->dims[d], at));
          to = to * x->dims[d] + at;
        }
        for (int64_t i = 0; i < inner; ++i) {
          T &element = data<T>(out[0])[to * inner + i];
          element = combine(attrs[0], element, data<T>(in[2])[t * inner + i]);
        }
      }
      return 0;
    });
  });
}
/// indices, depth (any numbers), values [off, on]; attrs: axis
LLMC_GRAPH_KERNEL(one_hot) {
  Value *indices = in[0];
  if (in[1]->count != 1 || in[2]->count != 2)
    return fail(g, LLMRT_GRAPH_SHAPE, in[1]->count, in[2]->count);
  int64_t axis, dims[kMaxRank], rank = indices->rank + 1, depth = integerAt(in[1], 0);
  if (rank > kMaxRank)
    return fail(g, LLMRT_GRAPH_RANK, rank, kMaxRank);
  GRAPH_TRY(normalAxis(g, attrs[0], rank, axis));
  for (int64_t d = 0; d < rank; ++d)
    dims[d] = d < axis ? indices->dims[d] : d == axis ? depth : indices->dims[d - 1];
  GRAPH_TRY(newTensor(g, type, rank, dims, out[0]));
  int64_t inner = product(out[0], axis + 1, rank), bytes = elementBytes(type);
  for (int64_t i = 0; i < out[0]->count; ++i) {
    int64_t at = i / inner % depth, outer = i / inner / depth;
    int64_t index = integerAt(indices, outer * inner + i % inner);
    bool isOn = index == at || index + depth == at;
    copyElement(out[0]->data, i, in[2]->data, isOn, bytes);
  }
  return 0;
}
LLMC_GRAPH_KERNEL(nonzero) {
  Value *x = in[0];
  int64_t bytes = elementBytes(type), n = 0;
  // Minus zero is zero.
  uint64_t ignored = isFloat(type) ? uint64_t(1) << (8 * bytes - 1) : 0;
  auto isSet = [&](int64_t i) {
    uint64_t word = 0;
    copyElement(&word, 0, x->data, i, bytes);
    return (word & ~ignored) != 0;
  };
  for (int64_t i = 0; i < x->count; ++i)
    n += isSet(i);
  // A scalar counts as a vector of one element.
  int64_t rank = x->rank, rows = max<int64_t>(rank, 1), dims[2] = {rows, n};
  GRAPH_TRY(newTensor(g, LLMRT_TYPE_I64, 2, dims, out[0]));
  int64_t found = 0;
  for (int64_t i = 0; i < x->count; ++i) {
    if (!isSet(i))
      continue;
    int64_t rest = i;
    if (rank == 0)
      data<int64_t>(out[0])[0] = 0;
    for (int64_t d = rank - 1; d >= 0; --d) {
      data<int64_t>(out[0])[d * n + found] = rest % x->dims[d];
      rest /= x->dims[d];
    }
    ++found;
  }
  return 0;
}
/// x, k; attrs: axis, largest, sorted
LLMC_GRAPH_KERNEL(top_k) {
  if (in[1]->count != 1)
    return fail(g, LLMRT_GRAPH_SHAPE, in[1]->count, 1);
  int64_t k = indexAt(in[1], 0), axis;
  GRAPH_TRY(normalAxis(g, attrs[0], in[0]->rank, axis));
  if (k < 0 || k > in[0]->dims[axis])
    return fail(g, LLMRT_GRAPH_INDEX, k, in[0]->dims[axis]);
  bool isLargest = attrs[1] != 0;
  return computed(g, in, out, type, 1, 1, [&](Value *const *in, Value **out) {
    return withType(computeType(type), [&](auto sample) -> int32_t {
      using T = decltype(sample);
      Value *x = in[0];
      int64_t dims[kMaxRank], size = x->dims[axis], *order;
      for (int64_t d = 0; d < x->rank; ++d)
        dims[d] = d == axis ? k : x->dims[d];
      GRAPH_TRY(newTensor(g, x->type, x->rank, dims, out[0]));
      GRAPH_TRY(newTensor(g, LLMRT_TYPE_I64, x->rank, dims, out[1]));
      GRAPH_TRY(scratch(g, 2 * size, order));
      int64_t outer = product(x, 0, axis), inner = product(x, axis + 1, x->rank);
      for (int64_t o = 0; o < outer; ++o)
        for (int64_t i = 0; i < inner; ++i) {
          const T *row = data<const T>(x) + o * size * inner + i;
          sortIndices(order, order + size, size, [&](int64_t a, int64_t b) {
            T p = row[a * inner], q = row[b * inner];
            return isLargest ? p > q || (p != p && q == q) : p < q || (q != q && p == p);
          });
          for (int64_t j = 0; j < k; ++j) {
            int64_t to = (o * k + j) * inner + i;
            data<T>(out[0])[to] = row[order[j] * inner];
            data<int64_t>(out[1])[to] = order[j];
          }
        }
      g->release(g, order);
      return 0;
    });
  });
}
/// x; attrs: whether there is an axis, axis, sorted. Gives y, first indices, inverse, counts.
LLMC_GRAPH_KERNEL(unique) {
  return computed(g, in, out, type, 1, 1, [&](Value *const *in, Value **out) {
    return withType(computeType(type), [&](auto sample) -> int32_t {
      using T = decltype(sample);
      Value *x = in[0];
      bool hasAxis = attrs[0] != 0, isSorted = attrs[2] != 0;
      int64_t axis = 0, n = x->count, outer = 1, inner = 1;
      if (hasAxis) {
        GRAPH_TRY(normalAxis(g, attrs[1], x->rank, axis));
        n = x->dims[axis];
        outer = product(x, 0, axis);
        inner = product(x, axis + 1, x->rank);
      }
      auto at = [&](int64_t slice, int64_t o, int64_t i) {
        return data<const T>(x)[(o * n + slice) * inner + i];
      };
      auto compare = [&](int64_t a, int64_t b) { // -1, 0, 1
        for (int64_t o = 0; o < outer; ++o)
          for (int64_t i = 0; i < inner; ++i) {
            T p = at(a, o, i), q = at(b, o, i);
            if (p < q)
              return -1;
            if (p > q)
              return 1;
          }
        return 0;
      };
      int64_t *order;
      GRAPH_TRY(scratch(g, 5 * n, order));
      int64_t *first = order + 2 * n, *inverse = first + n, *counts = inverse + n, distinct = 0;
      sortIndices(order, order + n, n, [&](int64_t a, int64_t b) { return compare(a, b) < 0; });
      for (int64_t i = 0; i < n; ++i) {
        if (i == 0 || compare(order[i - 1], order[i]) != 0) {
          first[distinct] = order[i];
          counts[distinct++] = 0;
        }
        inverse[order[i]] = distinct - 1;
        ++counts[distinct - 1];
      }
      // By the order of appearance: the sort is stable, so the first of a group came first.
      int64_t *rank = order + n, *place = order;
      if (isSorted) {
        for (int64_t i = 0; i < distinct; ++i)
          place[i] = i;
      } else {
        sortIndices(place, rank, distinct,
                    [&](int64_t a, int64_t b) { return first[a] < first[b]; });
      }
      for (int64_t i = 0; i < distinct; ++i)
        rank[place[i]] = i;
      int64_t dims[kMaxRank];
      for (int64_t d = 0; d < x->rank; ++d)
        dims[d] = d == axis ? distinct : x->dims[d];
      GRAPH_TRY(newTensor(g, x->type, hasAxis ? x->rank : 1, hasAxis ? dims : &distinct, out[0]));
      GRAPH_TRY(newTensor(g, LLMRT_TYPE_I64, 1, &distinct, out[1]));
      GRAPH_TRY(newTensor(g, LLMRT_TYPE_I64, 1, &n, out[2]));
      GRAPH_TRY(newTensor(g, LLMRT_TYPE_I64, 1, &distinct, out[3]));
      for (int64_t j = 0; j < distinct; ++j) {
        for (int64_t o = 0; o < outer; ++o)
          for (int64_t i = 0; i < inner; ++i)
            data<T>(out[0])[(o * distinct + j) * inner + i] = at(first[place[j]], o, i);
        data<int64_t>(out[1])[j] = first[place[j]];
        data<int64_t>(out[3])[j] = counts[place[j]];
      }
      for (int64_t i = 0; i < n; ++i)
        data<int64_t>(out[2])[i] = rank[inverse[i]];
      g->release(g, order);
      return 0;
    });
  });
}
/// x, condition; attrs: whether there is an axis, axis
LLMC_GRAPH_KERNEL(compress) {
  Value *x = in[0], *condition = in[1];
  int64_t axis = 0, size = x->count, outer = 1, inner = elementBytes(type), n = 0, dims[kMaxRank];
  if (attrs[0]) {
    GRAPH_TRY(normalAxis(g, attrs[1], x->rank, axis));
    size = x->dims[axis];
    outer = product(x, 0, axis);
    inner *= product(x, axis + 1, x->rank);
  }
  int64_t length = min(size, condition->count);
  for (int64_t i = 0; i < length; ++i)
    n += data<uint8_t>(condition)[i] != 0;
  for (int64_t d = 0; d < x->rank; ++d)
    dims[d] = d == axis ? n : x->dims[d];
  GRAPH_TRY(newTensor(g, type, attrs[0] ? x->rank : 1, attrs[0] ? dims : &n, out[0]));
  for (int64_t o = 0; o < outer; ++o) {
    int64_t to = o * n;
    for (int64_t i = 0; i < length; ++i)
      if (data<uint8_t>(condition)[i])
        copyBytes(data<char>(out[0]) + to++ * inner, data<char>(x) + (o * size + i) * inner, inner);
  }
  return 0;
}
/// x, lengths; attrs: batch axis, time axis (0 and 1 in some order)
LLMC_GRAPH_KERNEL(reverse_sequence) {
  Value *x = in[0];
  int64_t batchAxis = attrs[0], timeAxis = attrs[1];
  if (x->rank < 2 || batchAxis + timeAxis != 1 || in[1]->count != x->dims[batchAxis])
    return fail(g, LLMRT_GRAPH_SHAPE, in[1]->count, x->rank);
  GRAPH_TRY(newTensor(g, type, x->rank, x->dims, out[0]));
  int64_t inner = product(x, 2, x->rank) * elementBytes(type);
  for (int64_t a = 0; a < x->dims[0]; ++a)
    for (int64_t b = 0; b < x->dims[1]; ++b) {
      int64_t batch = batchAxis == 0 ? a : b, time = batchAxis == 0 ? b : a;
      int64_t length = indexAt(in[1], batch);
      if (length < 0 || length > x->dims[timeAxis])
        return fail(g, LLMRT_GRAPH_INDEX, length, x->dims[timeAxis]);
      int64_t from = time < length ? length - 1 - time : time;
      int64_t source = batchAxis == 0 ? a * x->dims[1] + from : from * x->dims[1] + b;
      copyBytes(data<char>(out[0]) + (a * x->dims[1] + b) * inner, data<char>(x) + source * inner,
                inner);
    }
  return 0;
}
/// past, update, write indices [batch] or null; attrs: axis, circular
LLMC_GRAPH_KERNEL(tensor_scatter) {
  Value *past = in[0], *update = in[1];
  int64_t axis;
  GRAPH_TRY(normalAxis(g, attrs[0], past->rank, axis));
  if (axis == 0 || update->rank != past->rank)
    return fail(g, LLMRT_GRAPH_AXIS, axis, past->rank);
  for (int64_t d = 0; d < past->rank; ++d)
    if (d != axis && past->dims[d] != update->dims[d])
      return fail(g, LLMRT_GRAPH_SHAPE, past->dims[d], update->dims[d]);
  GRAPH_TRY(copyOf(g, past, out[0]));
  int64_t batches = past->dims[0], middle = product(past, 1, axis), size = past->dims[axis];
  int64_t inner = product(past, axis + 1, past->rank) * elementBytes(type);
  int64_t length = update->dims[axis];
  if (in[2] && in[2]->count != batches)
    return fail(g, LLMRT_GRAPH_SHAPE, in[2]->count, batches);
  for (int64_t b = 0; b < batches; ++b) {
    int64_t start = in[2] ? indexAt(in[2], b) : 0;
    for (int64_t i = 0; i < length; ++i) {
      int64_t to = start + i;
      if (attrs[1] && size > 0)
        to = ((to % size) + size) % size;
      if (to < 0 || to >= size)
        return fail(g, LLMRT_GRAPH_INDEX, to, size);
      for (int64_t m = 0; m < middle; ++m)
        copyBytes(data<char>(out[0]) + ((b * middle + m) * size + to) * inner,
                  data<char>(update) + ((b * middle + m) * length + i) * inner, inner);
    }
  }
  return 0;
}
