#include "compiler/passes/raise/Match.h"

#include "compiler/passes/raise/HostArray.h"
#include <cmath>

using namespace mlir;
using namespace llmc;
using namespace llmc::graph;
using namespace llmc::raise;

std::optional<double> llmc::raise::scalarConstant(Value value) {
  auto constant = peelCasts(value).getDefiningOp<ConstantOp>();
  if (!constant)
    return std::nullopt;
  auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
  if (!dense || !(dense.isSplat() || dense.getNumElements() == 1))
    return std::nullopt;
  if (isa<FloatType>(dense.getElementType())) {
    APFloat number =
        dense.isSplat() ? dense.getSplatValue<APFloat>() : *dense.getValues<APFloat>().begin();
    bool losesInfo;
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
    return number.convertToDouble();
  }
  HostArrayRef array = dense.getNumElements() <= 64 ? fromElements(dense) : nullptr;
  return array && array->size() > 0 ? std::optional(array->number(0)) : std::nullopt;
}

std::optional<SmallVector<int64_t>> llmc::raise::intConstant(Value value) {
  auto constant = value ? value.getDefiningOp<ConstantOp>() : nullptr;
  if (!constant || !isa<IntegerType>(constant.getValue().getElementType()) ||
      constant.getValue().getNumElements() > 64)
    return std::nullopt;
  HostArrayRef array = fromElements(constant.getValue());
  return array ? std::optional(SmallVector<int64_t>(ArrayRef<int64_t>(array->ints))) : std::nullopt;
}

Value llmc::raise::peelCasts(Value value) {
  while (auto cast = value.getDefiningOp<CastOp>()) {
    if (!isa<FloatType>(getElementTypeOrSelf(cast.getX())) ||
        !isa<FloatType>(getElementTypeOrSelf(value)))
      break;
    value = cast.getX();
  }
  return value;
}

BinaryOp llmc::raise::asBinary(Value value, BinaryKind kind) {
  auto op = peelCasts(value).getDefiningOp<BinaryOp>();
  return op && op.getKind() == kind ? op : nullptr;
}

UnaryOp llmc::raise::asUnary(Value value, UnaryKind kind) {
  auto op = peelCasts(value).getDefiningOp<UnaryOp>();
  return op && op.getKind() == kind ? op : nullptr;
}

std::optional<WithScalar> llmc::raise::splitScalar(Value value, BinaryKind kind) {
  auto op = asBinary(value, kind);
  if (!op)
    return std::nullopt;
  if (auto scalar = scalarConstant(op.getB()))
    return WithScalar{op.getA(), *scalar};
  if (auto scalar = scalarConstant(op.getA()))
    return WithScalar{op.getB(), *scalar};
  return std::nullopt;
}

WithScalar llmc::raise::peelScale(Value value) {
  if (auto product = splitScalar(value, BinaryKind::Mul))
    return *product;
  if (auto quotient = asBinary(value, BinaryKind::Div))
    if (auto divisor = scalarConstant(quotient.getB()); divisor && *divisor != 0)
      return {quotient.getA(), 1.0 / *divisor};
  return {value, 1.0};
}

bool llmc::raise::isWeightLike(Value value) {
  // Weights hang a few views below their leaf; anything deeper is not asked about.
  SmallVector<Value> work{value};
  unsigned visited = 0;
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || ++visited > 16)
      return false;
    if (!isa<ConstantOp, WeightOp>(op) &&
        (op->getNumOperands() == 0 || op->getDialect()->getNamespace() != "graph"))
      return false;
    llvm::append_range(work, op->getOperands());
  }
  return true;
}

bool llmc::raise::isNear(double a, double b, double relative) {
  return std::fabs(a - b) <= relative * std::max(std::fabs(a), std::fabs(b));
}
