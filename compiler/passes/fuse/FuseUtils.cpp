//===- FuseUtils.cpp - what the fusion passes share -----------------------------===//

#include "compiler/passes/fuse/FuseUtils.h"
#include "compiler/passes/quantize/SourceFormat.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

bool llmc::canJoin(Value a, Value b) {
  FormatAttr x = sourceFormat(a), y = sourceFormat(b);
  return x == y || (x && y && !x.isInteger() && !y.isInteger());
}

void llmc::hoistWeight(Value weight, Operation *before) {
  Operation *op = weight ? weight.getDefiningOp() : nullptr;
  if (!op || op->getBlock() != before->getBlock() || op->isBeforeInBlock(before))
    return;
  for (Value operand : op->getOperands())
    hoistWeight(operand, before);
  op->moveBefore(before);
}

LinearOp llmc::joinLinears(RewriterBase &rewriter, ArrayRef<LinearOp> parts) {
  SmallVector<Value> weights, biases;
  SmallVector<Location> locations;
  int64_t rows = 0;
  for (LinearOp part : parts) {
    weights.push_back(part.getWeight());
    if (part.getBias())
      biases.push_back(part.getBias());
    rows += dim(part.getWeight(), 0);
    locations.push_back(part.getLoc());
  }
  LinearOp first = parts[0];
  Location loc = rewriter.getFusedLoc(locations);
  Type f32 = rewriter.getF32Type();
  Value weight = WeightConcatOp::create(
      rewriter, loc, RankedTensorType::get({rows, dim(first.getWeight(), 1)}, f32), weights);
  Value bias;
  if (!biases.empty())
    bias = WeightConcatOp::create(rewriter, loc, RankedTensorType::get({rows}, f32), biases);
  auto joined =
      LinearOp::create(rewriter, loc, RankedTensorType::get({ShapedType::kDynamic, rows}, f32),
                       first.getInput(), weight, bias);
  int64_t offset = 0;
  for (LinearOp part : parts) {
    Value columns = ColumnsOp::create(rewriter, part.getLoc(), part.getType(), joined.getResult(),
                                      rewriter.getI64IntegerAttr(offset));
    offset += dim(part.getWeight(), 0);
    rewriter.replaceOp(part, columns);
  }
  return joined;
}
