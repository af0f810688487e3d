//===- Quantize.cpp - floats to integers and 8-bit floats ------------------------===//
#include "codegen/cpu/graph/Real.h"

namespace llmc::graphcode {
GRAPH_INLINE int64_t codeRange(int64_t type, int64_t &low) {
  switch (type) {
  case LLMRT_TYPE_I8:
    low = -128;
    return 127;
  case LLMRT_TYPE_U16:
    low = 0;
    return 65535;
  case LLMRT_TYPE_I16:
    low = -32768;
    return 32767;
  case LLMRT_TYPE_U4:
    low = 0;
    return 15;
  case LLMRT_TYPE_I4:
    low = -8;
    return 7;
  case LLMRT_TYPE_U2:
    low = 0;
    return 3;
  case LLMRT_TYPE_I2:
    low = -2;
    return 1;
  default:
    low = 0;
    return 255;
  }
}
__attribute__((noinline)) static float floatAt(const Value *v, int64_t i) {
  return v->type == LLMRT_TYPE_F32   ? data<float>(v)[i]
         : v->type == LLMRT_TYPE_F64 ? float(data<double>(v)[i])
         : v->type == LLMRT_TYPE_I32 ? float(data<int32_t>(v)[i])
                                     : loadSmall(v->type, v->data, i);
}
} // namespace llmc::graphcode

using namespace llmc::graphcode;

/// x, scale, zero point or null; type: of the result; attrs: axis, block size, saturate. The scale
/// is a scalar, or of the size of the axis, or of blocks along it.
LLMC_GRAPH_KERNEL(quantize) {
  Value *x = in[0], *scale = in[1], *zero = in[2];
  int64_t axis = 0, block = attrs[1], inner = 1, size = 1, scales = 1;
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
  GRAPH_TRY(newTensor(g, type, x->rank, x->dims, out[0]));
  int64_t low, high = codeRange(type, low);
  for (int64_t i = 0; i < x->count; ++i) {
    int64_t at = 0;
    if (block > 0)
      at = (i / inner / size * scales + i / inner % size / block) * inner + i % inner;
    else if (scale->count != 1)
      at = i / inner % size;
    float y = floatAt(x, i) / floatAt(scale, at);
    if (isSmallFloat(type)) {
      storeSmall(type, out[0]->data, i, y, attrs[2] != 0, RoundNearest);
      continue;
    }
    float whole = __builtin_elementwise_roundeven(y) + float(zero ? codeAt(zero, at) : 0);
    int64_t code = whole >= float(high)  ? high
                   : whole <= float(low) ? low
                   : whole == whole      ? int64_t(whole)
                                         : 0;
    if (elementBytes(type) == 2)
      data<uint16_t>(out[0])[i] = uint16_t(code);
    else
      data<uint8_t>(out[0])[i] = uint8_t(code);
  }
  return 0;
}

/// codes ui8 [N, bytes], low bits first, scales [N, blocks], zero points packed like the codes or
/// null; attrs: bits, values a block; type: that of the scales
LLMC_GRAPH_KERNEL(dequantize_nbits) {
  Value *x = in[0], *scales = in[1], *zeros = in[2];
  int64_t bits = attrs[0], block = attrs[1], perByte = 8 / bits;
  if (x->rank != 2)
    return fail(g, LLMRT_GRAPH_RANK, x->rank, 2);
  int64_t rows = x->dims[0], columns = x->dims[1] * perByte, blocks = (columns + block - 1) / block;
  int64_t zeroBytes = (blocks * bits + 7) / 8, mask = (int64_t(1) << bits) - 1;
  if (scales->count != rows * blocks || (zeros && zeros->count != rows * zeroBytes))
    return fail(g, LLMRT_GRAPH_SHAPE, scales->count, rows * blocks);
  int64_t dims[2] = {rows, columns};
  GRAPH_TRY(newTensor(g, type, 2, dims, out[0]));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      int64_t b = c / block, at = r * columns + c;
      int64_t code = data<uint8_t>(x)[at / perByte] >> (at % perByte * bits) & mask;
      int64_t zero = int64_t(1) << (bits - 1);
      if (zeros)
        zero = data<uint8_t>(zeros)[r * zeroBytes + b / perByte] >> (b % perByte * bits) & mask;
      storeReal(out[0], at, double(code - zero) * realAt(scales, r * blocks + b));
    }
  return 0;
}
