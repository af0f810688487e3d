//===- Real.cpp - elements of any float type as doubles, and integer codes --===//
#include "codegen/cpu/graph/Real.h"

namespace llmc::graphcode {

__attribute__((noinline)) double realAt(const Value *v, int64_t i) {
  if (v->type == LLMRT_TYPE_F32)
    return double(data<float>(v)[i]);
  if (v->type == LLMRT_TYPE_F64)
    return data<double>(v)[i];
  return double(loadSmall(v->type, v->data, i));
}
__attribute__((noinline)) void storeReal(Value *v, int64_t i, double x) {
  if (v->type == LLMRT_TYPE_F32)
    data<float>(v)[i] = float(x);
  else if (v->type == LLMRT_TYPE_F64)
    data<double>(v)[i] = x;
  else
    storeSmall(v->type, v->data, i, float(x), true, RoundNearest);
}
__attribute__((noinline)) int64_t codeAt(const Value *v, int64_t i) {
  switch (v->type) {
  case LLMRT_TYPE_I8:
  case LLMRT_TYPE_I4:
  case LLMRT_TYPE_I2:
    return data<int8_t>(v)[i];
  case LLMRT_TYPE_U16:
    return data<uint16_t>(v)[i];
  case LLMRT_TYPE_I16:
    return data<int16_t>(v)[i];
  case LLMRT_TYPE_I32:
    return data<int32_t>(v)[i];
  default:
    return data<uint8_t>(v)[i];
  }
}
__attribute__((noinline)) double sigmoidOf(Graph *g, double x) {
  double e = mathOf(g, LLMRT_MATH_EXP, x > 0 ? -x : x);
  return x > 0 ? 1 / (1 + e) : e / (1 + e);
}

} // namespace llmc::graphcode
