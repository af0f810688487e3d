//===- Sequences.cpp - sequences and optionals --------------------------------===//
#include "codegen/cpu/graph/Graph.h"

namespace llmc::graphcode {

constexpr int64_t kHeader = 64;

GRAPH_INLINE Value **items(const Value *v) { return static_cast<Value **>(v->data); }

/// A new sequence with room for \p count values.
__attribute__((noinline)) static int32_t newSequence(Graph *g, int64_t type, int64_t count,
                                                     Value *&result) {
  GRAPH_TRY(newValue(g, LLMRT_SEQUENCE, type, 0, nullptr, result));
  auto *bytes = static_cast<char *>(
      g->allocate(g, kHeader + max<int64_t>(count, 1) * int64_t(sizeof(Value *))));
  if (!bytes)
    return g->error;
  result->owner = reinterpret_cast<LlmrtBuffer *>(bytes);
  result->owner->references = 1;
  result->data = bytes + kHeader;
  result->count = count;
  return 0;
}

/// \p values (all of one shape but for \p axis) one after the other; a new axis of size 1 each
/// where \p isNew.
__attribute__((noinline)) static int32_t join(Graph *g, const Value *sequence, int64_t axis,
                                              bool isNew, Value *&result) {
  if (sequence->count == 0)
    return fail(g, LLMRT_GRAPH_EMPTY);
  Value **list = items(sequence);
  const Value *first = list[0];
  int64_t rank = first->rank + isNew;
  GRAPH_TRY(normalAxis(g, axis, rank, axis));
  int64_t dims[kMaxRank + 1], total = 0;
  for (int64_t i = 0; i < sequence->count; ++i) {
    if (list[i]->rank != first->rank)
      return fail(g, LLMRT_GRAPH_RANK, list[i]->rank, first->rank);
    for (int64_t d = 0; d < first->rank; ++d)
      if (list[i]->dims[d] != first->dims[d] && (isNew || d != axis))
        return fail(g, LLMRT_GRAPH_SHAPE, list[i]->dims[d], first->dims[d]);
    total += isNew ? 1 : list[i]->dims[axis];
  }
  for (int64_t d = 0; d < rank; ++d)
    dims[d] = d == axis ? total : first->dims[isNew && d > axis ? d - 1 : d];
  GRAPH_TRY(newTensor(g, first->type, rank, dims, result));
  int64_t outer = 1, inner = elementBytes(first->type);
  for (int64_t d = 0; d < axis; ++d)
    outer *= dims[d];
  for (int64_t d = axis + 1; d < rank; ++d)
    inner *= dims[d];
  int64_t at = 0;
  for (int64_t i = 0; i < sequence->count; ++i) {
    int64_t width = (isNew ? 1 : list[i]->dims[axis]) * inner;
    for (int64_t o = 0; o < outer; ++o)
      copyBytes(data<char>(result) + o * total * inner + at, data<char>(list[i]) + o * width,
                width);
    at += width;
  }
  return 0;
}

} // namespace llmc::graphcode

using namespace llmc::graphcode;

#define GRAPH_HELPER extern "C" __attribute__((noinline))

/// What a loop gathers; `reserved` is how many there is room for.
GRAPH_HELPER int32_t llmc_graph_collection(LlmrtGraph *g, int64_t, LlmrtValue **result) {
  GRAPH_TRY(newSequence(g, LLMRT_TYPE_F32, 8, *result));
  (*result)->count = 0;
  (*result)->reserved = 8;
  return 0;
}
/// Adds \p value, whose count it takes.
GRAPH_HELPER int32_t llmc_graph_collect(LlmrtGraph *g, LlmrtValue *collection, LlmrtValue *value) {
  if (collection->count == collection->reserved) {
    if (collection->reserved > (1 << 28))
      return fail(g, LLMRT_GRAPH_TRIP_COUNT);
    Value *larger;
    GRAPH_TRY(newSequence(g, collection->type, 2 * collection->reserved, larger));
    for (int64_t i = 0; i < collection->count; ++i)
      items(larger)[i] = items(collection)[i];
    LlmrtBuffer *old = collection->owner;
    collection->owner = larger->owner;
    collection->data = larger->data;
    collection->reserved *= 2;
    larger->owner = old;
    larger->count = 0;
    release(g, larger);
  }
  items(collection)[collection->count++] = value;
  collection->type = value->type;
  return 0;
}
GRAPH_HELPER int32_t llmc_graph_stack(LlmrtGraph *g, LlmrtValue *collection, LlmrtValue **result) {
  if (collection->count > 0)
    return join(g, collection, 0, true, *result);
  int64_t none = 0;
  return newTensor(g, LLMRT_TYPE_F32, 1, &none, *result);
}
/// Gives what no turn stacked its element type, \p rank and \p dims: those after the first.
GRAPH_HELPER void llmc_graph_stack_type(LlmrtValue *stacked, int64_t type, int64_t rank,
                                        const int64_t *dims) {
  if (stacked->count > 0)
    return;
  if (stacked->rank == 1 && stacked->dims[0] == 0) {
    for (int64_t d = 1; d < rank && d < kMaxRank; ++d)
      stacked->dims[d] = dims[d - 1];
    stacked->rank = int32_t(min<int64_t>(rank, kMaxRank));
  }
  stacked->type = int32_t(type);
}

/// Any tensors; integers: how many.
LLMC_GRAPH_KERNEL(sequence_construct) {
  GRAPH_TRY(newSequence(g, type, attrs[0], out[0]));
  for (int64_t i = 0; i < attrs[0]; ++i)
    items(out[0])[i] = retain(in[i]);
  return 0;
}
/// sequence, position
LLMC_GRAPH_KERNEL(sequence_at) {
  int64_t at;
  if (in[1]->count != 1)
    return fail(g, LLMRT_GRAPH_SHAPE, in[1]->count, 1);
  GRAPH_TRY(normalIndex(g, indexAt(in[1], 0), in[0]->count, at));
  out[0] = retain(items(in[0])[at]);
  return 0;
}
/// sequence, tensor, position (missing: at the end)
LLMC_GRAPH_KERNEL(sequence_insert) {
  int64_t n = in[0]->count, at = n;
  if (in[2]) {
    at = indexAt(in[2], 0);
    if (at < -n || at > n)
      return fail(g, LLMRT_GRAPH_INDEX, at, n);
    at += at < 0 ? n : 0;
  }
  GRAPH_TRY(newSequence(g, in[1]->type, n + 1, out[0]));
  for (int64_t i = 0; i <= n; ++i)
    items(out[0])[i] = retain(i == at ? in[1] : items(in[0])[i < at ? i : i - 1]);
  return 0;
}
/// sequence, position (missing: the last)
LLMC_GRAPH_KERNEL(sequence_erase) {
  int64_t n = in[0]->count, at;
  GRAPH_TRY(normalIndex(g, in[1] ? indexAt(in[1], 0) : -1, n, at));
  GRAPH_TRY(newSequence(g, in[0]->type, n - 1, out[0]));
  for (int64_t i = 0; i < n - 1; ++i)
    items(out[0])[i] = retain(items(in[0])[i < at ? i : i + 1]);
  return 0;
}
LLMC_GRAPH_KERNEL(sequence_length) {
  GRAPH_TRY(newTensor(g, LLMRT_TYPE_I64, 0, nullptr, out[0]));
  data<int64_t>(out[0])[0] = in[0]->count;
  return 0;
}
/// integers: axis, whether it is new
LLMC_GRAPH_KERNEL(concat_from_sequence) { return join(g, in[0], attrs[0], attrs[1] != 0, out[0]); }

/// tensor, sizes (a scalar: of each part; missing: 1); integers: axis, keepdims
LLMC_GRAPH_KERNEL(split_to_sequence) {
  Value *x = in[0];
  int64_t axis;
  GRAPH_TRY(normalAxis(g, attrs[0], x->rank, axis));
  int64_t size = x->dims[axis], parts, each = 1;
  bool isList = in[1] && in[1]->rank == 1;
  if (isList) {
    parts = in[1]->count;
  } else {
    each = in[1] ? indexAt(in[1], 0) : 1;
    if (each < 1)
      return fail(g, LLMRT_GRAPH_ARGUMENT, each);
    parts = (size + each - 1) / each;
  }
  GRAPH_TRY(newSequence(g, x->type, parts, out[0]));
  for (int64_t i = 0; i < parts; ++i)
    items(out[0])[i] = nullptr;
  int64_t outer = product(x, 0, axis);
  int64_t inner = product(x, axis + 1, x->rank) * elementBytes(x->type), at = 0;
  for (int64_t i = 0; i < parts; ++i) {
    int64_t width = isList ? indexAt(in[1], i) : min(each, size - at);
    if (width < 0 || width > size - at)
      return fail(g, LLMRT_GRAPH_SHAPE, width, size - at);
    int64_t dims[kMaxRank], rank = 0;
    for (int64_t d = 0; d < x->rank; ++d)
      if (d != axis)
        dims[rank++] = x->dims[d];
      else if (in[1] || attrs[1])
        dims[rank++] = width;
    Value *part;
    GRAPH_TRY(newTensor(g, x->type, rank, dims, part));
    for (int64_t o = 0; o < outer; ++o)
      copyBytes(data<char>(part) + o * width * inner, data<char>(x) + (o * size + at) * inner,
                width * inner);
    items(out[0])[i] = part;
    at += width;
  }
  return 0;
}

LLMC_GRAPH_KERNEL(optional_none) { return newValue(g, LLMRT_NONE, type, 0, nullptr, out[0]); }
/// an optional, or nothing at all
LLMC_GRAPH_KERNEL(optional_has) {
  GRAPH_TRY(newTensor(g, LLMRT_TYPE_BOOL, 0, nullptr, out[0]));
  data<uint8_t>(out[0])[0] = in[0] && in[0]->kind != LLMRT_NONE;
  return 0;
}
LLMC_GRAPH_KERNEL(optional_get) {
  if (in[0]->kind == LLMRT_NONE)
    return fail(g, LLMRT_GRAPH_EMPTY);
  out[0] = retain(in[0]);
  return 0;
}
