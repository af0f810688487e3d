//===- ProgramBuilder.cpp - a plan.program as it grows ----------------------------===//

#include "compiler/passes/plan/ProgramBuilder.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::plan;

// Weights come first in the program, then buffers, kernels and commands as they are needed: the
// builder appends, which keeps definitions before uses.
ProgramBuilder::ProgramBuilder(ProgramOp program)
    : program_(program), builder_(OpBuilder::atBlockEnd(&program.getBody().front())) {}

Value ProgramBuilder::cloneWeight(Value expression) {
  if (Value known = weightClones_.lookupOrNull(expression))
    return known;
  Operation *op = expression.getDefiningOp();
  for (Value operand : op->getOperands())
    cloneWeight(operand);
  return builder_.clone(*op, weightClones_)->getResult(0);
}

Value ProgramBuilder::weight(Value expression, llm::FormatAttr format, StringRef name) {
  Value &known = weights_[{expression, format}];
  if (!known) {
    Value source = cloneWeight(expression);
    known = WeightOp::create(builder_, expression.getLoc(), WeightType::get(context()),
                             builder_.getStringAttr(name), source, format);
  }
  return known;
}

AffineAttr ProgramBuilder::perRow(RowKind kind, int64_t count) {
  return kind == RowKind::Token ? AffineAttr::get(context(), 0, count, 0, 0, 0)
                                : AffineAttr::get(context(), 0, 0, 0, count, 0);
}

AffineAttr ProgramBuilder::constant(int64_t count) {
  return AffineAttr::get(context(), count, 0, 0, 0, 0);
}

Value ProgramBuilder::buffer(StringRef name, RowKind kind, int64_t bytesPerRow) {
  // The slot is set by planArena, when all lives are known.
  return BufferOp::create(builder_, program_.getLoc(), BufferType::get(context()),
                          builder_.getStringAttr(name), perRow(kind, bytesPerRow),
                          builder_.getI64IntegerAttr(0));
}

CommandOp ProgramBuilder::command(Location loc, const Twine &name, StringRef kind,
                                  ArrayRef<std::pair<StringRef, Value>> bindings,
                                  ArrayRef<PlanConstant> constants, AffineAttr tasks,
                                  ArrayRef<int64_t> scalars, CostAttr cost) {
  SmallVector<Attribute> signature;
  SmallVector<Value> operands;
  for (auto [role, value] : bindings) {
    signature.push_back(builder_.getStringAttr(role));
    operands.push_back(value);
  }
  NamedAttrList dictionary;
  for (const auto &[constant, value] : constants) {
    if (const int64_t *integer = std::get_if<int64_t>(&value)) {
      // A constant that is not given is 0, so zeros would only make equal kernels look different.
      if (*integer)
        dictionary.set(constant, builder_.getI64IntegerAttr(*integer));
    } else if (const double *real = std::get_if<double>(&value)) {
      if (*real != 0)
        dictionary.set(constant, builder_.getF64FloatAttr(*real));
    } else {
      dictionary.set(constant, builder_.getStringAttr(std::get<std::string>(value)));
    }
  }
  Attribute key =
      builder_.getArrayAttr({builder_.getStringAttr(kind), builder_.getArrayAttr(signature),
                             dictionary.getDictionary(context())});
  KernelOp &kernel = kernels_[key];
  if (!kernel) {
    std::string symbol = (kind + "_" + Twine(kernelCounts_[kind]++)).str();
    kernel = KernelOp::create(builder_, loc, symbol, kind, builder_.getArrayAttr(signature),
                              dictionary.getDictionary(context()));
  }
  return CommandOp::create(
      builder_, loc, builder_.getStringAttr(name), FlatSymbolRefAttr::get(kernel.getSymNameAttr()),
      operands, tasks,
      scalars.empty() ? DenseI64ArrayAttr() : builder_.getDenseI64ArrayAttr(scalars), cost);
}
