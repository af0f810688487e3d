//===- WeightViews.cpp - views of weights, as importers and passes write them --===//

#include "dialects/llm/WeightViews.h"

using namespace mlir;
using namespace llmc::llm;

static SmallVector<int64_t> withFirst(Value value, int64_t first) {
  SmallVector<int64_t> shape(tensorType(value).getShape());
  shape[0] = first;
  return shape;
}

Value WeightViews::rows(Value weight, int64_t offset, int64_t count) {
  return b.createOrFold<WeightRowsOp>(loc, type(withFirst(weight, count)), weight,
                                      b.getI64IntegerAttr(offset));
}

Value WeightViews::transpose(Value matrix) {
  return b.createOrFold<WeightTransposeOp>(loc, type({dim(matrix, 1), dim(matrix, 0)}), matrix);
}

Value WeightViews::reshape(Value weight, ArrayRef<int64_t> shape) {
  return b.createOrFold<WeightReshapeOp>(loc, type(shape), weight);
}

Value WeightViews::deinterleave(Value weight) {
  return WeightUnpermuteOp::create(b, loc, weight.getType(), weight, b.getI64IntegerAttr(1));
}

Value WeightViews::interleave(Value first, Value second) {
  int64_t padded = WeightStackOp::paddedRows(dim(first, 0));
  return WeightInterleaveOp::create(b, loc, type(withFirst(first, 2 * padded)), first, second);
}

Value WeightViews::stack(ArrayRef<Value> weights) {
  int64_t padded = WeightStackOp::paddedRows(dim(weights[0], 0));
  return WeightStackOp::create(
      b, loc, type(withFirst(weights[0], padded * static_cast<int64_t>(weights.size()))), weights);
}

Value WeightViews::part(Value tensor, int64_t index) {
  ArrayRef<int64_t> shape = tensorType(tensor).getShape();
  SmallVector<int64_t> own(shape.drop_front());
  if (own.size() == 1)
    return reshape(rows(tensor, index, 1), own);
  // A matrix is read by rows: [parts * rows, columns].
  Value flat = reshape(tensor, {shape[0] * shape[1], shape[2]});
  return rows(flat, index * shape[1], shape[1]);
}
