//===- AttentionOps.cpp - verifiers of RoPE, the KV cache and attention -------===//

#include "dialects/llm/LlmDialect.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace llmc::llm;

static LogicalResult verifyRows(Operation *op, Value value, StringRef what, int64_t columns) {
  RankedTensorType type = tensorType(value);
  if (type.getRank() != 2 || !type.isDynamicDim(0) || type.getDimSize(1) != columns)
    return op->emitOpError() << what << " must be tensor<?x" << columns << "xf32>, got " << type;
  return success();
}

/// Angles are [T, 2, rotary/2].
static LogicalResult verifyAngles(Operation *op, Value value, int64_t half = -1) {
  RankedTensorType type = tensorType(value);
  if (type.getRank() != 3 || !type.isDynamicDim(0) || type.getDimSize(1) != 2 ||
      type.isDynamicDim(2) || (half >= 0 && type.getDimSize(2) != half))
    return op->emitOpError() << "angles must be tensor<?x2x"
                             << (half >= 0 ? std::to_string(half) : "N") << "xf32>, got " << type;
  return success();
}

static LogicalResult verifyPositions(Operation *op, Value value) {
  RankedTensorType type = tensorType(value);
  if (type.getRank() != 1 || !type.isDynamicDim(0))
    return op->emitOpError() << "positions must be tensor<?xi32>, got " << type;
  return success();
}

LogicalResult RopeAnglesOp::verify() {
  if (failed(verifyPositions(*this, getPositions())))
    return failure();
  if (tensorType(getFrequencies()).getRank() != 1)
    return emitOpError() << "frequencies must be a vector";
  return verifyAngles(*this, getResult(), dim(getFrequencies(), 0));
}

LogicalResult RopeGatherOp::verify() {
  if (failed(verifyPositions(*this, getPositions())))
    return failure();
  if (tensorType(getCos()).getRank() != 2 || getCos().getType() != getSin().getType())
    return emitOpError() << "cos and sin must be matrices [positions, rotary/2] of one shape";
  return verifyAngles(*this, getResult(), dim(getCos(), 1));
}

LogicalResult RopeSelectOp::verify() { return verifyAngles(*this, getResult()); }

int64_t RopeOp::getRotary() { return 2 * dim(getAngles(), 2); }

LogicalResult RopeOp::verify() {
  if (failed(verifyAngles(*this, getAngles())))
    return failure();
  RankedTensorType type = tensorType(getInput());
  int64_t heads = getHeads();
  if (type.getRank() != 2 || !type.isDynamicDim(0) || heads < 1 || type.getDimSize(1) % heads)
    return emitOpError() << "input of type " << type << " does not divide into " << heads
                         << " heads";
  if (getRotary() > type.getDimSize(1) / heads)
    return emitOpError() << "rotates " << getRotary() << " values of heads of size "
                         << type.getDimSize(1) / heads;
  return success();
}

LogicalResult KvCacheOp::verify() {
  if (static_cast<int64_t>(getLayer()) < 0)
    return emitOpError() << "layer must not be negative";
  return success();
}

LogicalResult KvAppendOp::verify() {
  KvType kv = getCache().getType();
  if (kv.getLatent())
    return emitOpError() << "stores keys and values; a latent cache takes llm.latent_append";
  if (failed(verifyRows(*this, getKeys(), "keys", kv.getHeads() * kv.getKeySize())))
    return failure();
  return verifyRows(*this, getValues(), "values", kv.getHeads() * kv.getValueSize());
}

LogicalResult RopeAppendOp::verify() {
  KvType kv = getCache().getType();
  if (kv.getLatent())
    return emitOpError() << "stores keys and values; a latent cache takes llm.latent_append";
  int64_t heads = getHeads(), size = kv.getKeySize();
  if (heads < 1 || heads % kv.getHeads())
    return emitOpError() << heads << " query heads do not divide over " << kv.getHeads()
                         << " KV heads";
  if (failed(verifyRows(*this, getQuery(), "query", heads * size)) ||
      failed(verifyRows(*this, getKeys(), "keys", kv.getHeads() * size)) ||
      failed(verifyRows(*this, getValues(), "values", kv.getHeads() * kv.getValueSize())))
    return failure();
  if (getAngles()) {
    if (failed(verifyAngles(*this, getAngles())))
      return failure();
    if (2 * dim(getAngles(), 2) > size)
      return emitOpError() << "rotates " << 2 * dim(getAngles(), 2) << " values of heads of size "
                           << size;
  }
  if (bool(getQueryNorm()) != bool(getNormEps()))
    return emitOpError() << "needs norm_eps exactly where it has norms";
  for (Value norm : {getQueryNorm(), getKeyNorm()})
    if (norm && (tensorType(norm).getRank() != 1 || dim(norm, 0) != size))
      return emitOpError() << "norms must be tensor<" << size << "xf32>, got " << norm.getType();
  return success();
}

void AttentionOp::build(OpBuilder &builder, OperationState &state, Type type, Value query,
                        Value cache, Value alibi, int64_t heads, double scale) {
  build(builder, state, type, query, cache, alibi, /*sinks=*/Value(),
        builder.getI64IntegerAttr(heads), builder.getF64FloatAttr(scale), /*window=*/IntegerAttr(),
        /*softcap=*/FloatAttr(), /*key_tile=*/IntegerAttr(), /*query_tile=*/IntegerAttr(),
        /*key_split=*/IntegerAttr());
}

int64_t AttentionOp::headTasks() {
  int64_t group = getHeads() / getCache().getType().getHeads();
  if (!getCache().getType().getLatent())
    return 1;
  int64_t part = std::min<int64_t>(group, 16);
  while (group % part)
    --part;
  return group / part;
}

LogicalResult AttentionOp::verify() {
  KvType kv = getCache().getType();
  int64_t heads = getHeads();
  if (heads < 1 || heads % kv.getHeads())
    return emitOpError() << heads << " query heads do not divide over " << kv.getHeads()
                         << " KV heads";
  if (failed(verifyRows(*this, getQuery(), "query", heads * kv.getKeySize())) ||
      failed(verifyRows(*this, getResult(), "result", heads * kv.getValueSize())))
    return failure();
  if (getSinks() && (tensorType(getSinks()).getRank() != 1 || dim(getSinks(), 0) != heads))
    return emitOpError() << "sinks must be tensor<" << heads << "xf32>, got "
                         << getSinks().getType();
  if (!getScale().isFinite())
    return emitOpError() << "scale must be finite";
  if (getAlibi() && (tensorType(getAlibi()).getRank() != 1 || dim(getAlibi(), 0) != heads))
    return emitOpError() << "alibi must be tensor<" << heads << "xf32>, got "
                         << getAlibi().getType();
  if (getWindow() && static_cast<int64_t>(*getWindow()) < 1)
    return emitOpError() << "window must be at least 1";
  if (getSoftcap() && !(getSoftcap()->convertToDouble() > 0))
    return emitOpError() << "softcap must be above 0";
  if (getKeyTile() && (*getKeyTile() < 16 || *getKeyTile() % 16))
    return emitOpError() << "key_tile must be a multiple of 16";
  if (getQueryTile() && static_cast<int64_t>(*getQueryTile()) < 1)
    return emitOpError() << "query_tile must be at least 1";
  if (getKeySplit() &&
      (!getKeyTile() || static_cast<int64_t>(*getKeySplit()) < 1 || *getKeySplit() % *getKeyTile()))
    return emitOpError() << "key_split must be a multiple of key_tile";
  return success();
}
