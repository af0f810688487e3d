//===- GraphVerifiers.cpp - What an operation of the graph dialect must satisfy -----===//

#include "dialects/graph/GraphDialect.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace llmc::graph;

static Type elementType(Value value) { return cast<TensorType>(value.getType()).getElementType(); }

/// The rank of a ranked tensor, or -1.
static int64_t rankOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getRank() : -1;
}

/// An axis must lie in [-rank, rank) if the rank is known.
static LogicalResult checkAxis(Operation *op, Value value, int64_t axis, int64_t extra = 0) {
  int64_t rank = rankOf(value);
  if (rank < 0 || (axis >= -rank && axis < rank + extra))
    return success();
  return op->emitOpError("axis ") << axis << " is out of range for rank " << rank;
}

LogicalResult WeightOp::verify() {
  auto type = dyn_cast<RankedTensorType>(getType());
  if (!type || !type.hasStaticShape())
    return emitOpError("a weight has a static shape");
  if (static_cast<int64_t>(getOffset()) < 0 || static_cast<int64_t>(getBytes()) < 0)
    return emitOpError("offset and bytes are not negative");
  Type element = type.getElementType();
  if (!element.isIntOrFloat())
    return emitOpError("a weight's elements are integers or floats");
  // i1 is stored a byte an element.
  uint64_t bits = element.isInteger(1) ? 8 : element.getIntOrFloatBitWidth();
  bool overflow = false;
  uint64_t total = bits;
  for (int64_t dim : type.getShape())
    total = llvm::SaturatingMultiply<uint64_t>(total, dim, &overflow);
  if (overflow || llvm::divideCeil(total, 8) != static_cast<uint64_t>(getBytes()))
    return emitOpError("type ") << type << " takes " << llvm::divideCeil(total, 8) << " bytes, not "
                                << getBytes();
  return success();
}

LogicalResult UnaryOp::verify() {
  Type in = elementType(getX()), out = elementType(getY());
  switch (getKind()) {
  case UnaryKind::IsNaN:
  case UnaryKind::IsInf:
    return out.isInteger(1) ? success() : emitOpError("gives i1");
  case UnaryKind::Not:
    return in.isInteger(1) && out.isInteger(1) ? success() : emitOpError("takes and gives i1");
  default:
    return in == out ? success() : emitOpError("x and y have the same element type");
  }
}

LogicalResult BinaryOp::verify() {
  Type type = elementType(getA());
  bool isLogical =
      getKind() == BinaryKind::And || getKind() == BinaryKind::Or || getKind() == BinaryKind::Xor;
  bool isBitwise = getKind() >= BinaryKind::BitAnd;
  if (isLogical && !type.isInteger(1))
    return emitOpError("logical functions take i1");
  if (isBitwise && !isa<IntegerType>(type))
    return emitOpError("bitwise functions take integers");
  return success();
}

LogicalResult CompareOp::verify() {
  if (elementType(getA()).isInteger(1) && getKind() != CompareKind::Eq &&
      getKind() != CompareKind::Ne)
    return emitOpError("booleans have no order");
  return success();
}

LogicalResult SelectOp::verify() { return success(); }

LogicalResult CastOp::verify() {
  auto in = dyn_cast<RankedTensorType>(getX().getType()),
       out = dyn_cast<RankedTensorType>(getY().getType());
  if (in && out && failed(verifyCompatibleShape(in, out)))
    return emitOpError("a cast keeps the shape");
  return success();
}

LogicalResult ReshapeOp::verify() {
  int64_t shapeRank = rankOf(getShape());
  if (shapeRank >= 0 && shapeRank != 1)
    return emitOpError("shape is one-dimensional");
  auto in = dyn_cast<RankedTensorType>(getX().getType()),
       out = dyn_cast<RankedTensorType>(getY().getType());
  if (in && out && in.hasStaticShape() && out.hasStaticShape() &&
      in.getNumElements() != out.getNumElements())
    return emitOpError("the number of elements changes from ")
           << in.getNumElements() << " to " << out.getNumElements();
  return success();
}

LogicalResult TransposeOp::verify() {
  ArrayRef<int64_t> perm = getPerm();
  int64_t rank = rankOf(getX());
  if (rank >= 0 && rank != static_cast<int64_t>(perm.size()))
    return emitOpError("perm has ") << perm.size() << " entries for rank " << rank;
  llvm::SmallVector<bool> seen(perm.size());
  for (int64_t dim : perm) {
    if (dim < 0 || dim >= static_cast<int64_t>(perm.size()) || seen[dim])
      return emitOpError("perm is a permutation of 0 .. rank - 1");
    seen[dim] = true;
  }
  return success();
}

LogicalResult ConcatOp::verify() {
  if (getParts().empty())
    return emitOpError("needs at least one part");
  for (Value part : getParts()) {
    if (elementType(part) != elementType(getY()))
      return emitOpError("parts and result have the same element type");
    if (failed(checkAxis(*this, part, getAxis())))
      return failure();
  }
  return success();
}

LogicalResult SplitOp::verify() {
  if (getParts().empty())
    return emitOpError("needs at least one result");
  for (Value part : getParts())
    if (elementType(part) != elementType(getX()))
      return emitOpError("input and parts have the same element type");
  return checkAxis(*this, getX(), getAxis());
}

LogicalResult FillOp::verify() {
  if (getValue().getNumElements() != 1)
    return emitOpError("value has one element");
  if (getValue().getElementType() != elementType(getY()))
    return emitOpError("value and result have the same element type");
  return success();
}

LogicalResult DequantizeOp::verify() {
  if (getBlockSize() < 0)
    return emitOpError("block_size is not negative");
  if (getZeroPoint() && elementType(getZeroPoint()) != elementType(getX()))
    return emitOpError("x and zero_point have the same element type");
  return success();
}

LogicalResult DequantizeNBitsOp::verify() {
  const int64_t bits = getBits(), block = getBlockSize();
  if (bits != 2 && bits != 4 && bits != 8)
    return emitOpError("bits is 2, 4 or 8, not ") << bits;
  if (block < 16 || !llvm::isPowerOf2_64(block))
    return emitOpError("block_size is a power of two of at least 16, not ") << block;
  auto type = dyn_cast<RankedTensorType>(getX().getType());
  if (type && type.getRank() != 2)
    return emitOpError("x is a matrix, not of rank ") << type.getRank();
  return success();
}

LogicalResult MatMulNBitsOp::verify() {
  int64_t k = getK(), n = getN(), bits = getBits(), block = getBlockSize();
  if (k <= 0 || n <= 0)
    return emitOpError("K and N are positive");
  if (bits != 2 && bits != 4 && bits != 8)
    return emitOpError("bits is 2, 4 or 8, not ") << bits;
  if (block < 16 || !llvm::isPowerOf2_64(block))
    return emitOpError("block_size is a power of two of at least 16, not ") << block;
  auto type = dyn_cast<RankedTensorType>(getB().getType());
  if (!type || !type.hasStaticShape())
    return success();
  int64_t blocks = llvm::divideCeil(k, block), want = 0;
  if (llvm::MulOverflow(n, blocks, want) || llvm::MulOverflow(want, block * bits / 8, want) ||
      type.getNumElements() != want)
    return emitOpError("b holds ")
           << type.getNumElements()
           << " bytes, not N * ceil(K / block_size) * block_size * bits / 8";
  return success();
}

LogicalResult LayerNormOp::verify() { return checkAxis(*this, getX(), getAxis()); }
LogicalResult RmsNormOp::verify() { return checkAxis(*this, getX(), getAxis()); }

LogicalResult RotaryEmbeddingOp::verify() {
  int64_t rank = rankOf(getX());
  if (rank == 3 && getNumHeads() <= 0)
    return emitOpError("num_heads is needed for x of rank 3");
  if (getRotaryDim() < 0 || getRotaryDim() % 2 != 0)
    return emitOpError("rotary_dim is even and not negative");
  return success();
}

LogicalResult AttentionOp::verify() {
  if (static_cast<bool>(getPastKey()) != static_cast<bool>(getPastValue()))
    return emitOpError("past_key and past_value come together");
  if (rankOf(getQ()) == 3 && (getQNumHeads() <= 0 || getKvNumHeads() <= 0))
    return emitOpError("q_num_heads and kv_num_heads are needed for rank 3");
  if (getQNumHeads() < 0 || getKvNumHeads() < 0 ||
      (getKvNumHeads() > 0 && getQNumHeads() % getKvNumHeads() != 0))
    return emitOpError("q_num_heads is a multiple of kv_num_heads");
  return success();
}

LogicalResult GroupQueryAttentionOp::verify() {
  if (static_cast<bool>(getPastKey()) != static_cast<bool>(getPastValue()))
    return emitOpError("past_key and past_value come together");
  if (static_cast<bool>(getKey()) != static_cast<bool>(getValue()))
    return emitOpError("key and value come together, or query holds all three");
  if (static_cast<int64_t>(getNumHeads()) <= 0 || static_cast<int64_t>(getKvNumHeads()) <= 0 ||
      getNumHeads() % getKvNumHeads() != 0)
    return emitOpError("num_heads is a positive multiple of kv_num_heads");
  if (getDoRotary() && (!getCosCache() || !getSinCache()))
    return emitOpError("do_rotary needs cos_cache and sin_cache");
  return success();
}

LogicalResult LoopOp::verify() {
  const size_t carried = getCarried().size();
  if (getNumResults() < carried)
    return emitOpError("has ") << getNumResults() << " results for " << carried
                               << " carried values";
  const size_t scans = getNumResults() - carried;
  Block &body = getBody().front();
  if (body.getNumArguments() != carried + 2)
    return emitOpError("its body takes ")
           << body.getNumArguments() << " values, not a turn's number, a condition and " << carried
           << " carried ones";
  if (getElementTypeOrSelf(body.getArgument(0)) != IntegerType::get(getContext(), 64) ||
      !getElementTypeOrSelf(body.getArgument(1)).isInteger(1))
    return emitOpError("its body's first two values are an i64 and an i1");
  auto yield = body.empty() ? YieldOp() : dyn_cast<YieldOp>(body.back());
  if (!yield || yield.getNumOperands() != 1 + carried + scans)
    return emitOpError("its body gives a condition, ")
           << carried << " carried values and " << scans << " to stack";
  for (size_t i = 0; i < scans; ++i) {
    Value each = yield.getOperand(1 + carried + i), all = getResult(carried + i);
    if (!isa<TensorType>(each.getType()) || !isa<TensorType>(all.getType()) ||
        elementType(each) != elementType(all))
      return emitOpError("scan ") << i << " stacks " << each.getType() << " to " << all.getType();
  }
  std::optional<ArrayAttr> known = getScanShapes();
  if (!known)
    return success();
  if (known->size() != scans)
    return emitOpError("scan_shapes has ") << known->size() << " shapes for " << scans << " scans";
  for (size_t i = 0; i < scans; ++i) {
    auto dims = dyn_cast<DenseI64ArrayAttr>((*known)[i]);
    if (!dims)
      return emitOpError("scan_shapes has an array<i64> for each scan");
    // One that is empty says nothing.
    const int64_t rank = rankOf(getResult(carried + i));
    if (dims.size() != 0 && rank >= 0 && dims.size() != rank - 1)
      return emitOpError("scan_shapes has ")
             << dims.size() << " dimensions for scan " << i << " of rank " << rank - 1;
  }
  return success();
}
