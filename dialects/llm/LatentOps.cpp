//===- LatentOps.cpp - verifiers of multi-head latent attention ---------------===//

#include "dialects/llm/LlmDialect.h"

using namespace mlir;
using namespace llmc::llm;

static LogicalResult verifyRows(Operation *op, Value value, StringRef what, int64_t columns) {
  RankedTensorType type = tensorType(value);
  if (type.getRank() != 2 || !type.isDynamicDim(0) || type.getDimSize(1) != columns)
    return op->emitOpError() << what << " must be tensor<?x" << columns << "xf32>, got " << type;
  return success();
}

/// Columns of one of \p heads heads; 0 where the rows do not divide.
static int64_t headColumns(Value value, int64_t heads) {
  RankedTensorType type = tensorType(value);
  return type.getRank() == 2 && !type.isDynamicDim(1) && heads > 0 &&
                 type.getDimSize(1) % heads == 0
             ? type.getDimSize(1) / heads
             : 0;
}

LogicalResult HeadLinearOp::verify() {
  int64_t heads = getHeads();
  int64_t in = headColumns(getInput(), heads), out = headColumns(getResult(), heads);
  if (!in || !out || !tensorType(getInput()).isDynamicDim(0))
    return emitOpError() << "rows " << getInput().getType() << " and " << getResult().getType()
                         << " do not divide into " << heads << " heads";
  if (tensorType(getWeight()).getRank() != 2)
    return emitOpError() << "weight must be a matrix, got " << getWeight().getType();
  int64_t rows = dim(getWeight(), 0);
  if (rows != heads * WeightStackOp::paddedRows(out))
    return emitOpError() << "weight must have " << heads << " x " << WeightStackOp::paddedRows(out)
                         << " rows, has " << rows;
  if (dim(getWeight(), 1) > in)
    return emitOpError() << "takes " << dim(getWeight(), 1) << " of a head's " << in << " values";
  return success();
}

LogicalResult LatentAppendOp::verify() {
  KvType kv = getCache().getType();
  int64_t heads = getHeads(), latent = kv.getValueSize(), rotated = kv.getKeySize() - latent;
  if (!kv.getLatent() || kv.getHeads() != 1 || rotated < 2)
    return emitOpError() << "needs a latent cache of one head with rotated values after the latent "
                            "ones, got "
                         << kv;
  if (headColumns(getQuery(), heads) < rotated)
    return emitOpError() << "query " << getQuery().getType() << " does not hold " << heads
                         << " heads with " << rotated << " values to rotate";
  RankedTensorType angles = tensorType(getAngles());
  if (angles.getRank() != 3 || angles.getDimSize(1) != 2 || 2 * angles.getDimSize(2) != rotated)
    return emitOpError() << "rotates " << rotated << " values, its angles are " << angles;
  if (failed(verifyRows(*this, getAbsorbed(), "absorbed", heads * latent)) ||
      failed(verifyRows(*this, getLatent(), "latent", latent)) ||
      failed(verifyRows(*this, getKey(), "key", rotated)))
    return failure();
  return verifyRows(*this, getQueries(), "queries", heads * kv.getKeySize());
}
