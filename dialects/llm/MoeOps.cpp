//===- MoeOps.cpp - verifiers of mixtures of experts --------------------------===//

#include "dialects/llm/LlmDialect.h"

using namespace mlir;
using namespace llmc::llm;

/// [rows, columns] with the rows unknown at compile time; any positive column count with -1.
static LogicalResult verifyRows(Operation *op, Value value, StringRef what, int64_t columns = -1) {
  RankedTensorType type = tensorType(value);
  if (type.getRank() != 2 || !type.isDynamicDim(0) || type.isDynamicDim(1) ||
      type.getDimSize(1) < 1 || (columns >= 0 && type.getDimSize(1) != columns))
    return op->emitOpError() << what << " must be tensor<?x"
                             << (columns >= 0 ? std::to_string(columns) : "N") << ">, got " << type;
  return success();
}

LogicalResult RouteOp::verify() {
  if (failed(verifyRows(*this, getLogits(), "logits")))
    return failure();
  int64_t experts = dim(getLogits(), 1), chosen = getChosen();
  if (chosen < 1 || chosen > experts)
    return emitOpError() << "chooses " << chosen << " of " << experts << " experts";
  if (failed(verifyRows(*this, getExperts(), "experts", chosen)) ||
      failed(verifyRows(*this, getWeights(), "weights", chosen)))
    return failure();
  if (getCorrection() &&
      (tensorType(getCorrection()).getRank() != 1 || dim(getCorrection(), 0) != experts))
    return emitOpError() << "correction must be tensor<" << experts << "xf32>, got "
                         << getCorrection().getType();
  if (!getScale().isFinite())
    return emitOpError() << "scale must be finite";
  if (bool(getGroups()) != bool(getTopGroups()))
    return emitOpError() << "needs 'groups' and 'top_groups' together";
  if (!getGroups())
    return getGroupBestTwo() ? emitOpError() << "has 'group_best_two' without 'groups'" : success();
  int64_t groups = *getGroups(), top = *getTopGroups();
  if (groups < 1 || experts % groups || top < 1 || top > groups)
    return emitOpError() << "takes " << top << " of " << groups << " groups of " << experts
                         << " experts";
  if (chosen > top * (experts / groups))
    return emitOpError() << "chooses " << chosen << " experts of " << top << " groups of "
                         << experts / groups;
  return success();
}

LogicalResult ExpertLinearOp::verify() {
  if (tensorType(getWeight()).getRank() != 2)
    return emitOpError() << "weight must be a matrix, got " << getWeight().getType();
  if (failed(verifyRows(*this, getExperts(), "experts")) ||
      failed(verifyRows(*this, getInput(), "input")) ||
      failed(verifyRows(*this, getResult(), "result")))
    return failure();
  int64_t rows = dim(getWeight(), 0), k = dim(getWeight(), 1), count = getCount();
  int64_t tile = getGlu() ? 32 : 16, chosen = getChosen();
  if (count < 1 || rows % count || rows / count % tile)
    return emitOpError() << rows << " weight rows are not " << count
                         << " matrices of whole tiles of " << tile << " rows";
  if (dim(getInput(), 1) != k && dim(getInput(), 1) != chosen * k)
    return emitOpError() << "input has " << dim(getInput(), 1) << " columns; " << k << " or "
                         << chosen << " x " << k << " are needed";
  int64_t columns = dim(getResult(), 1), most = rows / count / (getGlu() ? 2 : 1);
  if (columns % chosen || columns / chosen > most || columns / chosen <= most - 16)
    return emitOpError() << "result has " << columns << " columns; " << chosen << " x " << most
                         << ", less padding, are needed";
  if (getBias() && (tensorType(getBias()).getRank() != 1 || dim(getBias(), 0) != rows))
    return emitOpError() << "bias must be tensor<" << rows << "xf32>, got " << getBias().getType();
  if ((getAlpha() || getLimit()) && !getGlu())
    return emitOpError() << "has 'alpha' or 'limit', which are for 'glu'";
  if (getAlpha() && getActivation() != Activation::None)
    return emitOpError() << "has 'alpha' and another activation";
  if (getLimit() && !getAlpha())
    return emitOpError() << "has 'limit' without 'alpha'";
  for (std::optional<APFloat> value : {getAlpha(), getLimit()})
    if (value && !(value->isFinite() && value->convertToDouble() > 0))
      return emitOpError() << "'alpha' and 'limit' must be positive";
  if (auto q8 = dyn_cast<Q8Type>(tensorType(getInput()).getElementType()))
    if (k % q8.getGroup())
      return emitOpError() << "int8 rows of " << k << " columns do not divide into groups of "
                           << q8.getGroup();
  return success();
}

LogicalResult CombineOp::verify() {
  if (failed(verifyRows(*this, getWeights(), "weights")) ||
      failed(verifyRows(*this, getResult(), "result")))
    return failure();
  int64_t columns = dim(getResult(), 1);
  if (failed(verifyRows(*this, getValues(), "values", columns * dim(getWeights(), 1))))
    return failure();
  return getResidual() ? verifyRows(*this, getResidual(), "residual", columns) : success();
}
