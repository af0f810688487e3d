//===- Values.cpp - making, sharing and freeing values ------------------------===//
#include "codegen/cpu/graph/Graph.h"

#define GRAPH_FUNCTION __attribute__((noinline))

namespace llmc::graphcode {

/// In front of the elements: what counts those who share them.
constexpr int64_t kHeader = 64;

GRAPH_FUNCTION int32_t newValue(Graph *g, int32_t kind, int64_t type, int64_t rank,
                                const int64_t *dims, Value *&result) {
  if (rank > kMaxRank)
    return fail(g, LLMRT_GRAPH_RANK, rank, kMaxRank);
  int64_t count = 1;
  bool isEmpty = false;
  for (int64_t i = 0; i < rank; ++i) {
    if (dims[i] < 0)
      return fail(g, LLMRT_GRAPH_ARGUMENT, dims[i]);
    isEmpty |= dims[i] == 0;
    if (dims[i] > 0 && (__builtin_mul_overflow(count, dims[i], &count) || count > kMaxElements))
      return fail(g, LLMRT_GRAPH_TOO_LARGE, dims[i]);
  }
  auto *value = static_cast<Value *>(g->allocate(g, sizeof(Value)));
  if (!value)
    return g->error;
  value->references = 1;
  value->kind = kind;
  value->type = static_cast<int32_t>(type);
  value->rank = static_cast<int32_t>(rank);
  value->reserved = 0;
  value->count = isEmpty ? 0 : count;
  for (int64_t i = 0; i < rank; ++i)
    value->dims[i] = dims[i];
  value->data = nullptr;
  value->owner = nullptr;
  result = value;
  return 0;
}

GRAPH_FUNCTION int32_t newTensor(Graph *g, int64_t type, int64_t rank, const int64_t *dims,
                                 Value *&result) {
  GRAPH_TRY(newValue(g, LLMRT_TENSOR, type, rank, dims, result));
  auto *bytes = static_cast<char *>(g->allocate(g, kHeader + result->count * elementBytes(type)));
  if (!bytes)
    return g->error;
  result->owner = reinterpret_cast<LlmrtBuffer *>(bytes);
  result->owner->references = 1;
  result->data = bytes + kHeader;
  return 0;
}

GRAPH_FUNCTION int32_t newView(Graph *g, Value *x, int64_t rank, const int64_t *dims,
                               Value *&result) {
  GRAPH_TRY(newValue(g, LLMRT_TENSOR, x->type, rank, dims, result));
  if (result->count != x->count)
    return fail(g, LLMRT_GRAPH_SHAPE, x->count, result->count);
  result->data = x->data;
  result->owner = x->owner;
  if (result->owner)
    ++result->owner->references;
  return 0;
}

GRAPH_FUNCTION void release(Graph *g, Value *value) {
  if (!value || --value->references > 0)
    return;
  if (value->kind == LLMRT_SEQUENCE)
    for (int64_t i = 0; i < value->count; ++i)
      release(g, static_cast<Value **>(value->data)[i]);
  if (value->owner && --value->owner->references == 0)
    g->release(g, value->owner);
  g->release(g, value);
}

GRAPH_FUNCTION int32_t broadcastInto(Graph *g, const Value *v, int64_t &rank, int64_t *dims) {
  int64_t wider = max<int64_t>(rank, v->rank);
  if (wider > rank) {
    for (int64_t i = rank - 1; i >= 0; --i)
      dims[i + wider - rank] = dims[i];
    for (int64_t i = 0; i < wider - rank; ++i)
      dims[i] = 1;
    rank = wider;
  }
  for (int64_t i = 0; i < v->rank; ++i) {
    int64_t &have = dims[rank - v->rank + i], more = v->dims[i];
    if (have == 1)
      have = more;
    else if (more != 1 && more != have)
      return fail(g, LLMRT_GRAPH_BROADCAST, have, more);
  }
  return 0;
}

GRAPH_FUNCTION void broadcastStrides(const Value *v, int64_t rank, const int64_t *dims,
                                     int64_t *strides) {
  int64_t stride = 1;
  for (int64_t i = 0; i < rank; ++i)
    strides[i] = 0;
  for (int64_t i = v->rank - 1; i >= 0; --i) {
    strides[rank - v->rank + i] = v->dims[i] == 1 ? 0 : stride;
    stride *= v->dims[i];
  }
}

} // namespace llmc::graphcode

using namespace llmc::graphcode;

/// attrs: index of the weight, type, rank, dims.
LLMC_GRAPH_KERNEL(weight) {
  GRAPH_TRY(newValue(g, LLMRT_TENSOR, attrs[1], attrs[2], attrs + 3, out[0]));
  out[0]->data = const_cast<void *>(g->weights[attrs[0]]);
  return 0;
}

LLMC_GRAPH_KERNEL(identity) {
  out[0] = retain(in[0]);
  return 0;
}

extern "C" __attribute__((noinline)) void llmc_graph_release(LlmrtGraph *g, LlmrtValue *value) {
  release(g, value);
}
extern "C" __attribute__((noinline)) void llmc_graph_retain(LlmrtValue *value) { retain(value); }

/// The truth of a condition: one boolean.
extern "C" __attribute__((noinline)) int32_t llmc_graph_condition(LlmrtGraph *g,
                                                                  const LlmrtValue *value) {
  if (value->count != 1) {
    fail(g, LLMRT_GRAPH_SHAPE, value->count, 1);
    return -1;
  }
  return data<uint8_t>(value)[0] != 0;
}
/// The number of turns of a loop: one i64; none given is no limit.
extern "C" __attribute__((noinline)) int32_t llmc_graph_trips(LlmrtGraph *g,
                                                              const LlmrtValue *value,
                                                              int64_t *trips) {
  *trips = INT64_MAX;
  if (!value)
    return 0;
  if (value->count != 1)
    return fail(g, LLMRT_GRAPH_SHAPE, value->count, 1);
  *trips = indexAt(value, 0);
  return 0;
}
/// A scalar i64, the number of the turn.
extern "C" __attribute__((noinline)) int32_t llmc_graph_turn(LlmrtGraph *g, int64_t turn,
                                                             LlmrtValue **result) {
  GRAPH_TRY(newTensor(g, LLMRT_TYPE_I64, 0, nullptr, *result));
  data<int64_t>(*result)[0] = turn;
  return 0;
}
extern "C" __attribute__((noinline)) int32_t llmc_graph_boolean(LlmrtGraph *g, int64_t value,
                                                                LlmrtValue **result) {
  GRAPH_TRY(newTensor(g, LLMRT_TYPE_BOOL, 0, nullptr, *result));
  data<uint8_t>(*result)[0] = value != 0;
  return 0;
}
