//===- GraphFolders.cpp - Folds of the graph dialect ----------------------===//
//
// Only what is decided by types and attributes alone. Values that depend on constants through
// longer chains are the work of llmc-raise-constants, which evaluates the graph.
//
//===----------------------------------------------------------------------===//

#include "dialects/graph/GraphDialect.h"

using namespace mlir;
using namespace llmc::graph;

/// i64 values as a constant of the result's type, or of the static type that they have.
static OpFoldResult foldToI64(Value result, ArrayRef<int64_t> values, bool scalar) {
  auto type = cast<TensorType>(result.getType());
  if (!type.getElementType().isInteger(64))
    return {};
  auto want = RankedTensorType::get(scalar ? ArrayRef<int64_t>{}
                                           : ArrayRef<int64_t>{static_cast<int64_t>(values.size())},
                                    type.getElementType());
  if (want != type)
    return {};
  return DenseElementsAttr::get(want, values);
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

OpFoldResult UnaryOp::fold(FoldAdaptor) {
  // not(not x) and neg(neg x) are x.
  if (getKind() == UnaryKind::Not || getKind() == UnaryKind::Neg)
    if (auto inner = getX().getDefiningOp<UnaryOp>())
      if (inner.getKind() == getKind() && inner.getX().getType() == getType())
        return inner.getX();
  return {};
}

/// Whether every element of a constant equals `number`.
static bool isSplatOf(Attribute attr, double number) {
  auto splat = dyn_cast_or_null<SplatElementsAttr>(attr);
  if (!splat)
    return false;
  if (isa<FloatType>(splat.getElementType()))
    return splat.getSplatValue<APFloat>().convertToDouble() == number;
  if (auto type = dyn_cast<IntegerType>(splat.getElementType()); type && type.getWidth() > 1)
    return splat.getSplatValue<APInt>().getSExtValue() == static_cast<int64_t>(number);
  return false;
}

OpFoldResult BinaryOp::fold(FoldAdaptor adaptor) {
  // x * 1, x / 1 and x - 0 keep every bit of x, NaN included. x + 0 does not for -0.0, so only
  // integers fold there.
  bool isInteger = isa<IntegerType>(cast<TensorType>(getType()).getElementType());
  auto keeps = [&](Value x) {
    return x.getType() == getType() && isa<RankedTensorType>(getType());
  };
  auto rankAtMost = [](Value x, Value of) {
    auto a = dyn_cast<RankedTensorType>(x.getType()), b = dyn_cast<RankedTensorType>(of.getType());
    return a && b && a.getRank() <= b.getRank() && a.getNumElements() == 1;
  };
  switch (getKind()) {
  case BinaryKind::Mul:
    if (isSplatOf(adaptor.getA(), 1) && keeps(getB()) && rankAtMost(getA(), getB()))
      return getB();
    [[fallthrough]];
  case BinaryKind::Div:
    if (isSplatOf(adaptor.getB(), 1) && keeps(getA()) && rankAtMost(getB(), getA()))
      return getA();
    return {};
  case BinaryKind::Add:
    if (isInteger && isSplatOf(adaptor.getA(), 0) && keeps(getB()) && rankAtMost(getA(), getB()))
      return getB();
    if (!isInteger)
      return {};
    [[fallthrough]];
  case BinaryKind::Sub:
    if (isSplatOf(adaptor.getB(), 0) && keeps(getA()) && rankAtMost(getB(), getA()) && isInteger)
      return getA();
    return {};
  default:
    return {};
  }
}

OpFoldResult CastOp::fold(FoldAdaptor) {
  return getX().getType() == getType() ? getX() : OpFoldResult();
}

OpFoldResult ShapeOp::fold(FoldAdaptor) {
  auto type = dyn_cast<RankedTensorType>(getX().getType());
  if (!type)
    return {};
  int64_t rank = type.getRank();
  auto place = [&](int64_t bound) {
    return std::clamp<int64_t>(bound < 0 ? bound + rank : bound, 0, rank);
  };
  int64_t start = place(getStart()), end = getEnd() ? place(*getEnd()) : rank;
  SmallVector<int64_t> dims;
  for (int64_t i = start; i < end; ++i) {
    if (type.isDynamicDim(i))
      return {};
    dims.push_back(type.getDimSize(i));
  }
  return foldToI64(getResult(), dims, /*scalar=*/false);
}

OpFoldResult SizeOp::fold(FoldAdaptor) {
  auto type = dyn_cast<RankedTensorType>(getX().getType());
  if (!type || !type.hasStaticShape())
    return {};
  return foldToI64(getResult(), {type.getNumElements()}, /*scalar=*/true);
}

OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  // Between equal static types a reshape is the identity, whatever the shape operand spells.
  auto type = dyn_cast<RankedTensorType>(getType());
  if (type && type.hasStaticShape() && getX().getType() == type)
    return getX();
  return {};
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  ArrayRef<int64_t> perm = getPerm();
  if (auto inner = getX().getDefiningOp<TransposeOp>()) {
    SmallVector<int64_t> both;
    for (int64_t dim : perm)
      both.push_back(inner.getPerm()[dim]);
    setPerm(both);
    getXMutable().assign(inner.getX());
    return getResult();
  }
  if (llvm::equal(perm, llvm::seq<int64_t>(perm.size())) && getX().getType() == getType())
    return getX();
  return {};
}

OpFoldResult ConcatOp::fold(FoldAdaptor) {
  if (getParts().size() == 1 && getParts().front().getType() == getType())
    return getParts().front();
  return {};
}
