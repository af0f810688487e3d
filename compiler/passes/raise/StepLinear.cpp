//===- StepLinear.cpp - Matrix products and element by element --------------------===//

#include "compiler/passes/raise/Match.h"
#include "compiler/passes/raise/Step.h"
#include "dialects/graph/NodeLocation.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::graph;
using namespace llmc::raise;

/// `weight` is the [N, K] matrix's graph value, or its transpose; for graph.matmul_nbits the packed
/// data.
Lifted Step::liftLinear(Operation *op, Value x, Value weightValue, Value bias) {
  Lifted lifted = of(x);
  if (lifted.kind != Lifted::Rows)
    return lifted.culprit
               ? lifted
               : fail(op, lifted.kind == Lifted::Unknown ? lifted.reason : "its input is not rows");
  std::string problem;
  StringRef name = nodeName(op->getLoc());
  Value rows = tokenRows(lifted, problem);
  if (!rows)
    return fail(op, problem);
  Value matrix;
  if (auto quantized = dyn_cast<MatMulNBitsOp>(op)) {
    matrix = nbits(quantized, problem);
  } else {
    matrix = weight(weightValue, name, problem);
    auto gemm = dyn_cast<GemmOp>(op);
    if (matrix && llm::tensorType(matrix).getRank() != 2) {
      problem = "its weight is not a matrix";
      matrix = {};
    } else if (matrix && !(gemm && gemm.getTransposeB())) {
      // [in, out] in the file, [out, in] here.
      auto type = llm::tensorType(matrix);
      matrix = builder.createOrFold<llm::WeightTransposeOp>(
          op->getLoc(),
          RankedTensorType::get({type.getDimSize(1), type.getDimSize(0)}, type.getElementType()),
          matrix);
    }
  }
  if (!matrix)
    return fail(op, problem);
  if (llm::dim(matrix, 1) != llm::dim(rows, 1))
    return fail(op, llvm::formatv("the weight has {0} inputs for rows of {1} features",
                                  llm::dim(matrix, 1), llm::dim(rows, 1)));
  Value shift = bias ? weight(bias, name, problem) : Value();
  if (bias && !shift)
    return fail(op, problem);
  int64_t outputs = llm::dim(matrix, 0);
  if (shift && llm::tensorType(shift).getShape() != ArrayRef<int64_t>{outputs})
    return fail(op, "the bias must have one element an output");
  auto type = RankedTensorType::get({ShapedType::kDynamic, outputs}, builder.getF32Type());
  lifted.rows = llm::LinearOp::create(builder, op->getLoc(), type, rows, matrix, shift);
  lifted.offset = 0;
  lifted.axes.back() = {{AxisKind::Feature, outputs, 1}};
  intermediateSize = std::max(
      intermediateSize, isa_and_nonnull<llm::GluOp>(rows.getDefiningOp()) ? llm::dim(rows, 1) : 0);
  return lifted;
}

Lifted Step::liftMatMul(MatMulOp op) {
  if (isWeightLike(op.getB()))
    return liftLinear(op, op.getA(), op.getB(), Value());
  if (const Lifted *unknown = firstUnknown(op->getOperands()); unknown && unknown->culprit)
    return *unknown;
  return fail(op, "a product of two computed values is understood as part of attention only, and "
                  "no attention was recognised "
                  "around it");
}

Lifted Step::liftGemm(GemmOp op) {
  if (op.getTransposeA() || op.getAlpha().convertToFloat() != 1 ||
      (op.getC() && op.getBeta().convertToFloat() != 1) || !isWeightLike(op.getB()))
    return fail(
        op,
        "a linear layer needs alpha and beta of 1, an input that is not transposed, and a weight");
  return liftLinear(op, op.getA(), op.getB(), op.getC());
}

static llm::Activation activationOf(UnaryKind kind) {
  switch (kind) {
  case UnaryKind::Silu:
    return llm::Activation::Silu;
  case UnaryKind::GeluErf:
    return llm::Activation::Gelu;
  case UnaryKind::GeluTanh:
    return llm::Activation::GeluTanh;
  case UnaryKind::Relu:
    return llm::Activation::Relu;
  case UnaryKind::Sigmoid:
    return llm::Activation::Sigmoid;
  default:
    return llm::Activation::None;
  }
}

Lifted Step::liftUnary(UnaryOp op) {
  Lifted lifted = of(op.getX());
  if (lifted.kind != Lifted::Rows)
    return lifted.culprit
               ? lifted
               : fail(op, lifted.kind == Lifted::Unknown ? lifted.reason : "its input is not rows");
  llm::Activation activation = activationOf(op.getKind());
  if (activation == llm::Activation::None)
    return fail(op, "'" + stringifyUnaryKind(op.getKind()) +
                        "' of rows is not a known part of a decoder; known: silu, gelu, relu");
  std::string problem;
  Value rows = materialize(lifted, problem);
  if (!rows)
    return fail(op, problem);
  auto attr = llm::ActivationAttr::get(builder.getContext(), activation);
  lifted.rows = llm::ActivateOp::create(builder, op.getLoc(), rows.getType(), attr, rows);
  return lifted;
}

Lifted Step::addBias(BinaryOp op, Lifted x, Value bias) {
  std::string problem;
  Value rows = tokenRows(x, problem);
  Value shift = rows ? weight(bias, nodeName(op.getLoc()), problem) : Value();
  auto linear = rows ? rows.getDefiningOp<llm::LinearOp>() : nullptr;
  if (!shift)
    return fail(op, problem);
  if (!linear || linear.getBias() || linear.getResidual() ||
      llm::tensorType(shift).getShape() != ArrayRef<int64_t>{llm::dim(rows, 1)})
    return fail(
        op, "a weight can be added to the result of a linear layer only, one element an output");
  x.rows = llm::LinearOp::create(builder, linear.getLoc(), rows.getType(), linear.getInput(),
                                 linear.getWeight(), shift);
  return x;
}

Lifted Step::liftBinary(BinaryOp op) {
  // c * tanh(x / c): a bound on the logits.
  if (auto product = splitScalar(op.getY(), BinaryKind::Mul)) {
    if (auto tanh = asUnary(product->value, UnaryKind::Tanh)) {
      WithScalar inner = peelScale(tanh.getX());
      Lifted x = of(inner.value);
      std::string problem;
      if (x.kind == Lifted::Rows && isNear(inner.scalar * product->scalar, 1.0))
        if (Value rows = materialize(x, problem)) {
          x.rows = llm::SoftcapOp::create(builder, op.getLoc(), rows.getType(), rows,
                                          builder.getF64FloatAttr(product->scalar));
          return x;
        }
    }
  }
  if (op.getKind() == BinaryKind::Add)
    if (Lifted mixture = liftMixture(op, op.getY());
        mixture.kind == Lifted::Rows || mixture.culprit)
      return mixture;
  Lifted a = of(op.getA()), b = of(op.getB());
  std::string problem;
  if (WithScalar scaled = peelScale(op.getY()); scaled.value != op.getY()) {
    Lifted x = of(scaled.value);
    Value rows = x.kind == Lifted::Rows ? materialize(x, problem) : Value();
    if (!rows)
      return x.culprit ? x : fail(op, problem.empty() ? x.reason : problem);
    x.rows = builder.createOrFold<llm::ScaleOp>(op.getLoc(), rows.getType(), rows,
                                                builder.getF64FloatAttr(scaled.scalar));
    return x;
  }
  if (op.getKind() == BinaryKind::Add) {
    if (a.kind == Lifted::Rows && isWeightLike(op.getB()))
      return addBias(op, a, op.getB());
    if (b.kind == Lifted::Rows && isWeightLike(op.getA()))
      return addBias(op, b, op.getA());
  }
  if (a.kind != Lifted::Rows || b.kind != Lifted::Rows) {
    if (const Lifted *unknown = firstUnknown(op->getOperands()); unknown && unknown->culprit)
      return *unknown;
    return fail(op, "its operands are not both rows");
  }
  if (op.getKind() == BinaryKind::Mul)
    if (auto weighted = liftRowWeight(op, a, b))
      return *weighted;
  Value left = materialize(a, problem), right = left ? materialize(b, problem) : Value();
  if (!right)
    return fail(op, problem);
  // Sequences of one batch, or positions common to all: the batch axis of one side may be missing.
  auto withoutBatch = [](Axes axes) {
    for (AxisGroup &group : axes)
      if (isOnly(group, AxisKind::Batch))
        group.clear();
    while (!axes.empty() && axes.front().empty())
      axes.erase(axes.begin());
    return axes;
  };
  if (left.getType() != right.getType() || withoutBatch(a.axes) != withoutBatch(b.axes))
    return fail(op, "its operands hold tokens and features in different orders, or are broadcast");
  Lifted result = contains(a.axes, AxisKind::Batch) ? a : b;
  switch (op.getKind()) {
  case BinaryKind::Add:
    result.rows = llm::AddOp::create(builder, op.getLoc(), left.getType(), left, right);
    return result;
  case BinaryKind::Mul:
    for (auto [gate, up] : {std::pair(left, right), std::pair(right, left)})
      if (auto activate = gate.getDefiningOp<llm::ActivateOp>()) {
        intermediateSize = llm::dim(left, 1);
        result.rows = llm::GluOp::create(builder, op.getLoc(), left.getType(),
                                         activate.getActivationAttr(), activate.getInput(), up);
        return result;
      }
    result.rows = llm::MulOp::create(builder, op.getLoc(), left.getType(), left, right);
    return result;
  default:
    return fail(op, "'" + stringifyBinaryKind(op.getKind()) +
                        "' of two row tensors is not a known part of a decoder");
  }
}
