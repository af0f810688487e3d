//===- Layers.cpp - verifiers and folders of embedding, linear, norm and MLP --===//

#include "dialects/llm/LlmDialect.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace llmc::llm;

/// Every row tensor is [rows, columns] with the rows unknown at compile time.
static LogicalResult verifyRows(Operation *op, Value value, StringRef what, int64_t columns = -1) {
  RankedTensorType type = tensorType(value);
  if (type.getRank() != 2 || !type.isDynamicDim(0) || type.isDynamicDim(1))
    return op->emitOpError() << what << " must be tensor<?xN>, got " << type;
  if (columns >= 0 && type.getDimSize(1) != columns)
    return op->emitOpError() << what << " must have " << columns << " columns, has "
                             << type.getDimSize(1);
  return success();
}

static LogicalResult verifyVector(Operation *op, Value value, StringRef what, int64_t size) {
  RankedTensorType type = tensorType(value);
  if (type.getRank() != 1 || type.getDimSize(0) != size)
    return op->emitOpError() << what << " must be tensor<" << size << "xf32>, got " << type;
  return success();
}

static LogicalResult verifyIds(Operation *op, Value value, StringRef what) {
  RankedTensorType type = tensorType(value);
  if (type.getRank() != 1 || !type.isDynamicDim(0))
    return op->emitOpError() << what << " must be tensor<?xi32>, got " << type;
  return success();
}

/// The group divides the columns: padding a row is the packing's work, never the IR's.
static LogicalResult verifyQ8(Operation *op, Value value) {
  if (auto q8 = dyn_cast<Q8Type>(tensorType(value).getElementType()))
    if (dim(value, 1) % q8.getGroup())
      return op->emitOpError() << "int8 rows of " << dim(value, 1)
                               << " columns do not divide into groups of " << q8.getGroup();
  return success();
}

//===----------------------------------------------------------------------===//
// Embedding
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingOp::verify() {
  if (failed(verifyIds(*this, getTokens(), "tokens")))
    return failure();
  if (tensorType(getTable()).getRank() != 2)
    return emitOpError() << "table must be a matrix";
  return verifyRows(*this, getResult(), "result", dim(getTable(), 1));
}

LogicalResult GatherRowsOp::verify() { return verifyRows(*this, getInput(), "input"); }

//===----------------------------------------------------------------------===//
// Linear
//===----------------------------------------------------------------------===//

void LinearOp::build(OpBuilder &builder, OperationState &state, Type type, Value input,
                     Value weight, Value bias) {
  build(builder, state, type, input, weight, bias, /*residual=*/Value(),
        ActivationAttr::get(builder.getContext(), Activation::None), /*glu=*/UnitAttr(),
        /*format=*/FormatAttr());
}

LogicalResult LinearOp::verify() {
  if (tensorType(getWeight()).getRank() != 2)
    return emitOpError() << "weight must be a matrix [N, K], got " << getWeight().getType();
  int64_t n = dim(getWeight(), 0), k = dim(getWeight(), 1);
  if (failed(verifyRows(*this, getInput(), "input", k)) || failed(verifyQ8(*this, getInput())))
    return failure();
  if (getGlu() && n % 32)
    return emitOpError() << "with glu needs interleaved tiles of 16 gate and 16 up rows; " << n
                         << " rows are not a multiple of 32";
  // A padded GLU keeps fewer columns than half the rows.
  if (getGlu()) {
    if (failed(verifyRows(*this, getResult(), "result")))
      return failure();
    int64_t columns = dim(getResult(), 1);
    if (columns > n / 2 || columns <= n / 2 - 16)
      return emitOpError() << "with glu and " << n << " weight rows has " << columns << " columns";
  } else if (failed(verifyRows(*this, getResult(), "result", n))) {
    return failure();
  }
  if (getBias() && failed(verifyVector(*this, getBias(), "bias", n)))
    return failure();
  if (getResidual() && failed(verifyRows(*this, getResidual(), "residual", dim(getResult(), 1))))
    return failure();
  return success();
}

LogicalResult QuantizeOp::verify() {
  if (failed(verifyRows(*this, getInput(), "input")) || failed(verifyQ8(*this, getResult())))
    return failure();
  // The group must divide each of the rows that stand beside each other.
  int64_t slots = getSlots().value_or(1), columns = dim(getInput(), 1);
  int64_t group = cast<Q8Type>(tensorType(getResult()).getElementType()).getGroup();
  if (slots < 1 || columns % slots || columns / slots % group)
    return emitOpError() << columns << " columns do not divide into " << slots
                         << " rows of whole groups of " << group;
  return verifyRows(*this, getResult(), "result", columns);
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

LogicalResult RmsNormOp::verify() {
  if (failed(verifyRows(*this, getInput(), "input")) || failed(verifyQ8(*this, getResult())))
    return failure();
  int64_t columns = dim(getInput(), 1);
  int64_t size = getGroupSize().value_or(columns);
  if (size < 1 || columns % size)
    return emitOpError() << "group_size " << size << " does not divide " << columns << " columns";
  if (!(getEps().convertToDouble() >= 0))
    return emitOpError() << "eps must not be negative";
  if (failed(verifyVector(*this, getWeight(), "weight", size)))
    return failure();
  return verifyRows(*this, getResult(), "result", columns);
}

LogicalResult LayerNormOp::verify() {
  if (failed(verifyRows(*this, getInput(), "input")) || failed(verifyQ8(*this, getResult())))
    return failure();
  int64_t columns = dim(getInput(), 1);
  if (!(getEps().convertToDouble() >= 0))
    return emitOpError() << "eps must not be negative";
  if (failed(verifyVector(*this, getWeight(), "weight", columns)) ||
      (getBias() && failed(verifyVector(*this, getBias(), "bias", columns))))
    return failure();
  return verifyRows(*this, getResult(), "result", columns);
}

//===----------------------------------------------------------------------===//
// MLP
//===----------------------------------------------------------------------===//

LogicalResult GluOp::verify() { return verifyRows(*this, getGate(), "gate"); }

LogicalResult ActivateOp::verify() { return verifyRows(*this, getInput(), "input"); }

OpFoldResult ActivateOp::fold(FoldAdaptor) {
  return getActivation() == Activation::None ? OpFoldResult(getInput()) : OpFoldResult();
}

LogicalResult AddOp::verify() { return verifyRows(*this, getLhs(), "operand"); }
LogicalResult MulOp::verify() { return verifyRows(*this, getLhs(), "operand"); }

LogicalResult ScaleOp::verify() {
  if (!getFactor().isFinite())
    return emitOpError() << "factor must be finite";
  return verifyRows(*this, getInput(), "input");
}

OpFoldResult ScaleOp::fold(FoldAdaptor) {
  return getFactor().isExactlyValue(1.0) ? OpFoldResult(getInput()) : OpFoldResult();
}

LogicalResult SoftcapOp::verify() {
  if (!(getCap().convertToDouble() > 0))
    return emitOpError() << "cap must be above 0";
  return verifyRows(*this, getInput(), "input");
}

LogicalResult ColumnsOp::verify() {
  if (failed(verifyRows(*this, getInput(), "input")) ||
      failed(verifyRows(*this, getResult(), "result")))
    return failure();
  int64_t in = dim(getInput(), 1), out = dim(getResult(), 1), offset = getOffset();
  if (offset < 0 || offset > in || out > in - offset)
    return emitOpError() << "columns [" << offset << ", " << offset + out << ") are outside the "
                         << in << " columns of the operand";
  return success();
}

OpFoldResult ColumnsOp::fold(FoldAdaptor) {
  return getInput().getType() == getResult().getType() ? OpFoldResult(getInput()) : OpFoldResult();
}
