//===- GraphAbi.h - what the code of a plan's `main` is given ------------------===//
//
// A graph that is no decoder becomes one function `main` of a plan's code. It takes and gives
// values (tensors, sequences of them) whose shapes are known only when it runs, and imports
// nothing but the functions of LlmrtGraph. Plain C, as KernelAbi.h; append-only in the same way.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_DEVICE_CPU_GRAPHABI_H
#define LLMRT_DEVICE_CPU_GRAPHABI_H

#include <stdint.h>

#define LLMRT_GRAPH_MAX_RANK 12

/// What a value is. An empty optional is a value of its own kind; a full one is its content.
enum { LLMRT_TENSOR = 0, LLMRT_SEQUENCE = 1, LLMRT_NONE = 2 };

/// A tensor's element type is its number in ONNX (TensorProto.DataType); an element of less than a
/// byte takes a byte, sign- or zero-extended.
enum {
  LLMRT_TYPE_F32 = 1,
  LLMRT_TYPE_U8 = 2,
  LLMRT_TYPE_I8 = 3,
  LLMRT_TYPE_U16 = 4,
  LLMRT_TYPE_I16 = 5,
  LLMRT_TYPE_I32 = 6,
  LLMRT_TYPE_I64 = 7,
  LLMRT_TYPE_BOOL = 9,
  LLMRT_TYPE_F16 = 10,
  LLMRT_TYPE_F64 = 11,
  LLMRT_TYPE_U32 = 12,
  LLMRT_TYPE_U64 = 13,
  LLMRT_TYPE_BF16 = 16,
  LLMRT_TYPE_F8E4M3FN = 17,
  LLMRT_TYPE_F8E4M3FNUZ = 18,
  LLMRT_TYPE_F8E5M2 = 19,
  LLMRT_TYPE_F8E5M2FNUZ = 20,
  LLMRT_TYPE_U4 = 21,
  LLMRT_TYPE_I4 = 22,
  LLMRT_TYPE_F4E2M1 = 23,
  LLMRT_TYPE_F8E8M0 = 24,
  LLMRT_TYPE_U2 = 25,
  LLMRT_TYPE_I2 = 26
};

/// Counted by those who hold it; `owner` counts those who share the data.
typedef struct LlmrtBuffer {
  int64_t references;
} LlmrtBuffer;

typedef struct LlmrtValue {
  int64_t references;
  int32_t kind;
  int32_t type;
  int32_t rank;
  int32_t reserved;
  int64_t count; ///< elements of a tensor, or of a sequence
  int64_t dims[LLMRT_GRAPH_MAX_RANK];
  void *data;         ///< elements, row-major; a sequence: LlmrtValue *[count]
  LlmrtBuffer *owner; ///< what keeps `data`; NULL: lent for the whole run
} LlmrtValue;

/// Why `main` gave up; `detail` says more, see graphErrorText.
enum {
  LLMRT_GRAPH_OK = 0,
  LLMRT_GRAPH_NO_MEMORY = 1, ///< bytes
  LLMRT_GRAPH_TOO_LARGE = 2, ///< a tensor of more elements than can be counted
  LLMRT_GRAPH_RANK = 3,      ///< rank, the rank that was expected
  LLMRT_GRAPH_BROADCAST = 4, ///< two dimensions that don't go together
  LLMRT_GRAPH_INDEX = 5,     ///< index, size of the dimension
  LLMRT_GRAPH_AXIS = 6,      ///< axis, rank
  LLMRT_GRAPH_SHAPE = 7,     ///< two sizes that should agree
  LLMRT_GRAPH_ARGUMENT = 8,  ///< value
  LLMRT_GRAPH_DIVIDE_BY_ZERO = 9,
  LLMRT_GRAPH_EMPTY = 10,     ///< an empty optional, or a reduction of nothing
  LLMRT_GRAPH_TRIP_COUNT = 11 ///< a loop that does not end
};

/// Functions of one or two numbers that the runtime computes.
enum {
  LLMRT_MATH_EXP,
  LLMRT_MATH_LOG,
  LLMRT_MATH_SIN,
  LLMRT_MATH_COS,
  LLMRT_MATH_TAN,
  LLMRT_MATH_TANH,
  LLMRT_MATH_ERF,
  LLMRT_MATH_ASIN,
  LLMRT_MATH_ACOS,
  LLMRT_MATH_ATAN,
  LLMRT_MATH_SINH,
  LLMRT_MATH_COSH,
  LLMRT_MATH_ASINH,
  LLMRT_MATH_ACOSH,
  LLMRT_MATH_ATANH,
  LLMRT_MATH_LOG1P,
  LLMRT_MATH_POW,
  LLMRT_MATH_FMOD
};

typedef struct LlmrtGraph LlmrtGraph;
struct LlmrtGraph {
  /// 64-byte aligned memory, or NULL with `error` set; freed at the end of the run if not before.
  void *(*allocate)(LlmrtGraph *graph, int64_t bytes);
  void (*release)(LlmrtGraph *graph, void *memory);
  double (*math)(int32_t function, double x, double y);
  const void *const *weights; ///< of the plan, by index
  int32_t error;
  int32_t node; ///< of the plan's list, where the error is
  int64_t detail[3];
};

/// `main`: takes every input of the plan (owned by the caller) and sets every output, each counted
/// once. Returns LLMRT_GRAPH_OK or graph->error.
typedef int32_t (*LlmrtGraphMain)(LlmrtGraph *graph, LlmrtValue *const *inputs,
                                  LlmrtValue **outputs);

#endif // LLMRT_DEVICE_CPU_GRAPHABI_H
