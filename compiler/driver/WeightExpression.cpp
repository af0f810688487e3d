//===- WeightExpression.cpp - weight expressions of the IR, to be read --------------===//

#include "compiler/driver/WeightExpression.h"
#include "compiler/import/common/ConfinedPath.h"
#include "dialects/llm/LlmDialect.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;
using llmrt::Result;
using llmrt::Status;

Result<ModelFiles> ModelFiles::open(const std::string &folder, ArrayRef<std::string> names) {
  ModelFiles files;
  for (const std::string &name : names) {
    LLMRT_ASSIGN_OR_RETURN(MappedFile file, openConfined(folder, name, "the model"));
    files.files_.push_back(std::move(file));
  }
  return files;
}

static Result<std::span<const uint8_t>> bytesOf(SourceAttr source, const ModelFiles &files,
                                                const std::string &name) {
  if (static_cast<size_t>(source.getFile()) >= files.size())
    return llmrt::invalidFile("weight '" + name + "' names file " +
                              std::to_string(source.getFile()) + " of " +
                              std::to_string(files.size()));
  return files[source.getFile()].extent(source.getOffset(), source.getSize(),
                                        "weight '" + name + "'");
}

/// Rows and columns of a matrix or vector.
static std::pair<uint64_t, uint64_t> shapeOf(Value value) {
  ArrayRef<int64_t> shape = tensorType(value).getShape();
  uint64_t columns = 1;
  for (int64_t size : shape.drop_front(shape.empty() ? 0 : 1))
    columns *= size;
  return {shape.empty() ? 1 : shape[0], columns};
}

static Result<WeightView> readableSource(WeightOp op, const ModelFiles &files) {
  WeightSource source;
  source.name = op.getName().str();
  // The numbers of the two enums are the same (WeightEncoding.h).
  source.encoding = static_cast<WeightEncoding>(op.getEncoding());
  std::tie(source.rows, source.columns) = shapeOf(op.getResult());
  // Matrices of experts in one tensor are one below the other: rows are those of the last
  // dimension.
  if (ArrayRef<int64_t> shape = tensorType(op.getResult()).getShape();
      shape.size() > 2 && shape.back() > 0) {
    source.rows *= source.columns / shape.back();
    source.columns = shape.back();
  }
  auto range = [&](size_t i) {
    return bytesOf(cast<SourceAttr>(op.getSources()[i]), files, source.name);
  };
  LLMRT_ASSIGN_OR_RETURN(source.data, range(0));
  if (op.getSources().size() > 1) {
    LLMRT_ASSIGN_OR_RETURN(source.scales, range(1));
    if (op.getSources().size() > 2) {
      LLMRT_ASSIGN_OR_RETURN(source.zeroPoints, range(2));
    }
    const bool nested = op.getEncoding() == Encoding::NF4;
    if (op.getSources().size() > 3) {
      std::span<const uint8_t> &fourth = nested ? source.nestedScales : source.groupIndex;
      LLMRT_ASSIGN_OR_RETURN(fourth, range(3));
    }
    if (op.getSources().size() > 4) {
      LLMRT_ASSIGN_OR_RETURN(source.nestedLevels, range(4));
    }
    if (op.getScaleOffset())
      source.scaleOffset = op.getScaleOffset()->convertToFloat();
    source.scaleEncoding = static_cast<WeightEncoding>(*op.getScaleEncoding());
    source.block = *op.getBlock();
    source.bits = static_cast<uint32_t>(op.getBits().value_or(4));
    source.signedCodes = op.getSignedCodes();
    source.blocksDown = op.getBlocksDown();
  }
  LLMRT_RETURN_IF_ERROR(source.check());
  return WeightView::source(std::move(source));
}

Result<WeightView> llmc::readableWeight(Value expression, const ModelFiles &files) {
  Operation *op = expression.getDefiningOp();
  if (auto weight = dyn_cast<WeightOp>(op))
    return readableSource(weight, files);
  auto [rows, columns] = shapeOf(expression);
  if (auto constant = dyn_cast<WeightConstantOp>(op)) {
    std::vector<float> values;
    for (APFloat value : constant.getValue().getValues<APFloat>())
      values.push_back(value.convertToFloat());
    return WeightView::values("constant", std::move(values), rows, columns);
  }
  std::vector<WeightView> operands;
  for (Value operand : op->getOperands()) {
    LLMRT_ASSIGN_OR_RETURN(WeightView view, readableWeight(operand, files));
    operands.push_back(std::move(view));
  }
  if (isa<WeightTransposeOp>(op))
    return WeightView::transpose(operands[0]);
  if (isa<WeightConcatOp>(op))
    return WeightView::concat(std::move(operands));
  if (isa<WeightStackOp>(op))
    return WeightView::stack(std::move(operands));
  if (isa<WeightInterleaveOp>(op))
    return WeightView::interleave(operands[0], operands[1]);
  if (auto slice = dyn_cast<WeightRowsOp>(op))
    return WeightView::rows(operands[0], slice.getOffset(), rows);
  if (auto unpermute = dyn_cast<WeightUnpermuteOp>(op))
    return WeightView::unpermute(operands[0], unpermute.getHeads());
  if (isa<WeightReshapeOp>(op))
    return WeightView::reshape(operands[0], rows, columns);
  return llmrt::internalError("operation '" + op->getName().getStringRef().str() +
                              "' is no weight expression");
}
