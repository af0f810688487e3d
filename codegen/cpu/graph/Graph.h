//===- Graph.h - what the kernels of `main` are written with -------------------===//
//
// A kernel is llmc_graph_NAME(graph, in, out, attrs, type): it reads the values `in` (a missing
// optional operand is null), sets `out`, each counted once, and returns LLMRT_GRAPH_OK or an
// error. `attrs` are the operation's constants and `type` the element type that it is specialised
// for; code generation wraps each kernel once a type, and what the type rules out is never made.
// Shapes are read from the values: the same code serves static and dynamic ones.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CODEGEN_CPU_GRAPH_GRAPH_H
#define LLMC_CODEGEN_CPU_GRAPH_GRAPH_H

#include "runtime/device/cpu/GraphAbi.h"

#define GRAPH_INLINE inline __attribute__((always_inline))
#define LLMC_GRAPH_KERNEL(name)                                                                    \
  extern "C" __attribute__((always_inline)) int32_t llmc_graph_##name(                             \
      LlmrtGraph *g, LlmrtValue *const *in, LlmrtValue **out, const int64_t *attrs, int64_t type)
/// Leaves the kernel with the error of \p expression, if it has one.
#define GRAPH_TRY(expression)                                                                      \
  do {                                                                                             \
    if (int32_t error_ = (expression))                                                             \
      return error_;                                                                               \
  } while (false)

namespace llmc::graphcode {

using Graph = LlmrtGraph;
using Value = LlmrtValue;
constexpr int kMaxRank = LLMRT_GRAPH_MAX_RANK;
constexpr int64_t kMaxElements = int64_t(1) << 46;

template <class T> GRAPH_INLINE T min(T a, T b) { return b < a ? b : a; }
template <class T> GRAPH_INLINE T max(T a, T b) { return a < b ? b : a; }

inline __attribute__((noinline)) int32_t fail(Graph *g, int32_t error, int64_t a = 0,
                                              int64_t b = 0) {
  g->error = error;
  g->detail[0] = a;
  g->detail[1] = b;
  return error;
}

GRAPH_INLINE int64_t elementBytes(int64_t type) {
  switch (type) {
  case LLMRT_TYPE_F32:
  case LLMRT_TYPE_I32:
  case LLMRT_TYPE_U32:
    return 4;
  case LLMRT_TYPE_F64:
  case LLMRT_TYPE_I64:
  case LLMRT_TYPE_U64:
    return 8;
  case LLMRT_TYPE_F16:
  case LLMRT_TYPE_BF16:
  case LLMRT_TYPE_I16:
  case LLMRT_TYPE_U16:
    return 2;
  default:
    return 1;
  }
}

// --- values ------------------------------------------------------------------------------------

/// A new value without data.
int32_t newValue(Graph *g, int32_t kind, int64_t type, int64_t rank, const int64_t *dims,
                 Value *&result);
/// A new tensor whose elements are not set.
int32_t newTensor(Graph *g, int64_t type, int64_t rank, const int64_t *dims, Value *&result);
/// A new tensor that shares the elements of \p x under another shape (of as many elements).
int32_t newView(Graph *g, Value *x, int64_t rank, const int64_t *dims, Value *&result);
/// Memory for a kernel itself.
template <class T> int32_t scratch(Graph *g, int64_t count, T *&memory) {
  memory = static_cast<T *>(g->allocate(g, max<int64_t>(count, 1) * int64_t(sizeof(T))));
  return memory ? 0 : g->error;
}
void release(Graph *g, Value *value);
GRAPH_INLINE Value *retain(Value *value) {
  ++value->references;
  return value;
}
/// \p x with elements of \p type; counted once more if it has them already. Conversion as
/// graph.cast says, saturating where \p saturate.
int32_t convert(Graph *g, Value *x, int64_t type, Value *&result, bool saturate = true);

template <class T> GRAPH_INLINE T *data(const Value *v) { return static_cast<T *>(v->data); }

/// Product of dims [begin, end).
GRAPH_INLINE int64_t product(const Value *v, int64_t begin, int64_t end) {
  int64_t n = 1;
  for (int64_t i = begin; i < end; ++i)
    n *= v->dims[i];
  return n;
}
/// \p axis counted from the front.
GRAPH_INLINE int32_t normalAxis(Graph *g, int64_t axis, int64_t rank, int64_t &result) {
  if (axis < -rank || axis >= rank)
    return fail(g, LLMRT_GRAPH_AXIS, axis, rank);
  result = axis < 0 ? axis + rank : axis;
  return 0;
}
/// Element \p i of an i64 or i32 tensor.
GRAPH_INLINE int64_t indexAt(const Value *v, int64_t i) {
  return v->type == LLMRT_TYPE_I32 ? data<int32_t>(v)[i] : data<int64_t>(v)[i];
}
/// \p index, which may count from the end, within [0, size).
GRAPH_INLINE int32_t normalIndex(Graph *g, int64_t index, int64_t size, int64_t &result) {
  if (index < -size || index >= size)
    return fail(g, LLMRT_GRAPH_INDEX, index, size);
  result = index < 0 ? index + size : index;
  return 0;
}
/// A double that travels as an attribute.
GRAPH_INLINE double realAttr(int64_t bits) { return __builtin_bit_cast(double, bits); }

GRAPH_INLINE void copyBytes(void *to, const void *from, int64_t bytes) {
  __builtin_memcpy(to, from, static_cast<unsigned long>(bytes));
}
/// Copies one element of \p bytes (1, 2, 4, 8) at index \p to from index \p from.
GRAPH_INLINE void copyElement(void *y, int64_t to, const void *x, int64_t from, int64_t bytes) {
  switch (bytes) {
  case 1:
    static_cast<uint8_t *>(y)[to] = static_cast<const uint8_t *>(x)[from];
    break;
  case 2:
    static_cast<uint16_t *>(y)[to] = static_cast<const uint16_t *>(x)[from];
    break;
  case 4:
    static_cast<uint32_t *>(y)[to] = static_cast<const uint32_t *>(x)[from];
    break;
  default:
    static_cast<uint64_t *>(y)[to] = static_cast<const uint64_t *>(x)[from];
  }
}

// --- types -------------------------------------------------------------------------------------

GRAPH_INLINE bool isSmallFloat(int64_t type) {
  return type == LLMRT_TYPE_F16 || type == LLMRT_TYPE_BF16 ||
         (type >= LLMRT_TYPE_F8E4M3FN && type <= LLMRT_TYPE_F8E5M2FNUZ) ||
         type == LLMRT_TYPE_F4E2M1 || type == LLMRT_TYPE_F8E8M0;
}
GRAPH_INLINE bool isFloat(int64_t type) {
  return type == LLMRT_TYPE_F32 || type == LLMRT_TYPE_F64 || isSmallFloat(type);
}
GRAPH_INLINE bool isSigned(int64_t type) {
  return type == LLMRT_TYPE_I8 || type == LLMRT_TYPE_I16 || type == LLMRT_TYPE_I32 ||
         type == LLMRT_TYPE_I64 || type == LLMRT_TYPE_I4 || type == LLMRT_TYPE_I2;
}

/// Calls f(T()) with the C++ type that holds elements of \p type; small floats are not covered.
template <class F> GRAPH_INLINE int32_t withType(int64_t type, F f) {
  switch (type) {
  case LLMRT_TYPE_F32:
    return f(float());
  case LLMRT_TYPE_F64:
    return f(double());
  case LLMRT_TYPE_I8:
  case LLMRT_TYPE_I4:
  case LLMRT_TYPE_I2:
    return f(int8_t());
  case LLMRT_TYPE_I16:
    return f(int16_t());
  case LLMRT_TYPE_I32:
    return f(int32_t());
  case LLMRT_TYPE_I64:
    return f(int64_t());
  case LLMRT_TYPE_U16:
    return f(uint16_t());
  case LLMRT_TYPE_U32:
    return f(uint32_t());
  case LLMRT_TYPE_U64:
    return f(uint64_t());
  default:
    return f(uint8_t());
  }
}
template <class F> GRAPH_INLINE int32_t withFloatType(int64_t type, F f) {
  return type == LLMRT_TYPE_F64 ? f(double()) : f(float());
}
template <class T> constexpr bool isReal = false;
template <> inline constexpr bool isReal<float> = true;
template <> inline constexpr bool isReal<double> = true;

/// The type in which \p type is computed: f32 for floats that are smaller.
GRAPH_INLINE int64_t computeType(int64_t type) {
  return isSmallFloat(type) ? int64_t(LLMRT_TYPE_F32) : type;
}
/// Runs body(in, out) on operands converted to the type they are computed in: those that have
/// \p type. \p operands counts all that the body may read, axes and other integers too: it sees no
/// others. The first \p results are converted back.
template <class F>
GRAPH_INLINE int32_t computed(Graph *g, Value *const *in, Value **out, int64_t type, int operands,
                              int results, F body) {
  if (!isSmallFloat(type))
    return body(in, out);
  Value *wide[16];
  for (int i = 0; i < operands; ++i) {
    wide[i] = in[i];
    if (in[i] && in[i]->kind == LLMRT_TENSOR && in[i]->type == type)
      GRAPH_TRY(convert(g, in[i], LLMRT_TYPE_F32, wide[i]));
  }
  GRAPH_TRY(body(wide, out));
  for (int i = 0; i < results; ++i)
    if (out[i] && out[i]->type == LLMRT_TYPE_F32) {
      Value *narrow;
      GRAPH_TRY(convert(g, out[i], type, narrow));
      release(g, out[i]);
      out[i] = narrow;
    }
  for (int i = 0; i < operands; ++i)
    if (wide[i] != in[i])
      release(g, wide[i]);
  return 0;
}

// --- walking over shapes -----------------------------------------------------------------------

/// Broadcasts the dims of \p v into \p dims as NumPy does.
int32_t broadcastInto(Graph *g, const Value *v, int64_t &rank, int64_t *dims);
/// Strides of \p v under the shape \p dims that it broadcasts to, 0 where it is repeated.
void broadcastStrides(const Value *v, int64_t rank, const int64_t *dims, int64_t *strides);

/// Counts through all indices but those of the last dimension, keeping N offsets.
template <int N> struct Odometer {
  int64_t rank; ///< of the outer dimensions
  const int64_t *dims;
  const int64_t *strides[N];
  int64_t index[kMaxRank] = {};
  int64_t offset[N] = {};

  GRAPH_INLINE void next() {
    for (int64_t d = rank - 1; d >= 0; --d) {
      for (int n = 0; n < N; ++n)
        offset[n] += strides[n][d];
      if (++index[d] < dims[d])
        return;
      for (int n = 0; n < N; ++n)
        offset[n] -= strides[n][d] * dims[d];
      index[d] = 0;
    }
  }
};

GRAPH_INLINE void rowMajorStrides(int64_t rank, const int64_t *dims, int64_t *strides) {
  int64_t stride = 1;
  for (int64_t d = rank - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= dims[d];
  }
}

// --- functions ---------------------------------------------------------------------------------

GRAPH_INLINE double mathOf(Graph *g, int32_t function, double x, double y = 0) {
  return g->math(function, x, y);
}
template <class T> GRAPH_INLINE T absolute(T x) {
  if constexpr (isReal<T>)
    return __builtin_elementwise_abs(x);
  else
    return x < T(0) ? T(T(0) - x) : x;
}
GRAPH_INLINE float rootOf(float x) { return __builtin_elementwise_sqrt(x); }
GRAPH_INLINE double rootOf(double x) { return __builtin_elementwise_sqrt(x); }

} // namespace llmc::graphcode

#endif // LLMC_CODEGEN_CPU_GRAPH_GRAPH_H
