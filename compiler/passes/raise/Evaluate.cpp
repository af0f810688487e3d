#include "compiler/passes/raise/Evaluate.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::graph;
using namespace llmc::raise;

HostArrayRef llmc::raise::computeData(Operation *op, ArrayRef<Facts> operands,
                                      ArrayRef<int64_t> shape) {
  if (auto constant = dyn_cast<ConstantOp>(op))
    return fromElements(constant.getValue());
  // Nothing to compute, whatever sizes the other dimensions claim to have.
  if (countElements(shape) == 0)
    return std::make_shared<HostArray>(
        cast<TensorType>(op->getResult(0).getType()).getElementType(), shape);
  if (isa<ReduceOp, CumSumOp, MatMulOp>(op))
    return computeReduction(op, operands, shape);
  SmallVector<const HostArray *> arrays;
  for (const Facts &operand : operands)
    arrays.push_back(operand.data.get());
  if (isa<UnaryOp, BinaryOp, CompareOp, SelectOp, CastOp, ClipOp>(op))
    return computeElementwise(op, arrays, shape);
  return computeIndexed(op, arrays, shape);
}

bool llmc::raise::computeAll(Operation *op, ArrayRef<Facts> operands,
                             MutableArrayRef<Facts> results) {
  auto split = dyn_cast<SplitOp>(op);
  if (!split || !operands[0].data || !results[0].shape)
    return false;
  const HostArray &x = *operands[0].data;
  int64_t axis = *placeAxis(split.getAxis(), x.shape.size());
  int64_t inner = *countElements(ArrayRef(x.shape).drop_front(axis + 1)), dim = x.shape[axis],
          start = 0;
  for (Facts &part : results) {
    auto array = std::make_shared<HostArray>(x.type, *part.shape);
    int64_t run = (*part.shape)[axis] * inner;
    for (int64_t i = 0; i < array->size(); ++i)
      array->copy(i, x, i / run * dim * inner + start * inner + i % run);
    start += (*part.shape)[axis];
    part.data = std::move(array);
  }
  return true;
}
