//===- QuantizeWeights.cpp - how the plan stores each matrix ----------------------===//

#include "compiler/passes/Passes.h"
#include "compiler/passes/quantize/SourceFormat.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace llmc {
#define GEN_PASS_DEF_QUANTIZEWEIGHTSPASS
#include "compiler/passes/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

namespace {
struct QuantizeWeightsPass : llmc::impl::QuantizeWeightsPassBase<QuantizeWeightsPass> {
  using Base::Base;

  void runOnOperation() override {
    if (scheme != "none" && scheme != "int8" && scheme != "int4") {
      emitError(getOperation().getLoc())
          << "weight quantization '" << scheme << "' is not known; known: none, int8, int4";
      return signalPassFailure();
    }
    if (group < 32 || group > 256 || group % 32) {
      emitError(getOperation().getLoc())
          << "group must be a multiple of 32 from 32 to 256, got " << static_cast<int64_t>(group);
      return signalPassFailure();
    }
    if (head != "int8" && (head != "int4" || scheme != "int4")) {
      emitError(getOperation().getLoc()) << "heads in '" << head << "' under '" << scheme
                                         << "' are not known; known: int8, and int4 under int4";
      return signalPassFailure();
    }
    DenseSet<Value> heads, tables;
    getOperation().walk([&](EmbeddingOp op) { tables.insert(op.getTable()); });
    getOperation().walk([&](func::FuncOp function) {
      for (Value result : function.getBody().front().getTerminator()->getOperands())
        if (LinearOp head = headOf(result))
          heads.insert(head.getWeight());
    });
    const auto useOf = [&](Value weight) {
      return heads.contains(weight)    ? Use::Head
             : tables.contains(weight) ? Use::Table
                                       : Use::Projection;
    };
    getOperation().walk(
        [&](EmbeddingOp op) { op.setFormatAttr(choose(op.getTable(), useOf(op.getTable()))); });
    getOperation().walk([&](LinearOp op) {
      op.setFormatAttr(isRouter(op) ? source(op.getWeight())
                                    : choose(op.getWeight(), useOf(op.getWeight())));
    });
    getOperation().walk([&](Operation *op) {
      if (auto experts = dyn_cast<ExpertLinearOp>(op))
        experts.setFormatAttr(choose(experts.getWeight(), Use::Projection));
      else if (auto latent = dyn_cast<HeadLinearOp>(op))
        latent.setFormatAttr(choose(latent.getWeight(), Use::Projection));
    });
  }

  /// The projection that gives the logits, seen through what follows it.
  static LinearOp headOf(Value value) {
    while (Operation *op = value.getDefiningOp()) {
      if (auto linear = dyn_cast<LinearOp>(op))
        return linear;
      if (!isa<SoftcapOp, ScaleOp, GatherRowsOp>(op))
        break;
      value = op->getOperand(0);
    }
    return nullptr;
  }

  /// What decides where a token goes, or how much of a shared expert it takes, keeps its source's
  /// format: a few rows, and a wrong choice of expert is a large error.
  static bool isRouter(LinearOp op) {
    return !op->use_empty() && llvm::all_of(op->getUsers(), [&](Operation *user) {
      if (isa<GatherRowsOp, ActivateOp>(user))
        return llvm::all_of(user->getUsers(),
                            [&](Operation *inner) { return isRouting(inner, user->getResult(0)); });
      return isRouting(user, op.getResult());
    });
  }
  static bool isRouting(Operation *user, Value value) {
    if (auto combine = dyn_cast<CombineOp>(user))
      return combine.getWeights() == value;
    return isa<RouteOp>(user);
  }

  FormatAttr source(Value weight) {
    FormatAttr format = sourceFormat(weight);
    if (format && widenE2m1 && format.getElement() == Element::E2M1)
      return FormatAttr::get(&getContext(), Element::I8, format.getGroup(), Element::F32, false);
    return format ? format : FormatAttr::get(&getContext(), Element::F32, 0, Element::F32, false);
  }

  /// What a matrix is read for. A tied one is a head: that is what decides its cost.
  enum class Use { Projection, Head, Table };

  FormatAttr choose(Value weight, Use use) {
    FormatAttr format = source(weight);
    if (format.isInteger() || scheme == "none")
      return format;
    // A step reads a row of a table for each token, so 8 bits cost nothing there. An error in a
    // head goes straight into the logits: in 4 bits its groups have a minimum (SmolLM2-135M's KL is
    // 0.217 with it and 0.238 without, for half a bit of a weight).
    const bool eight =
        scheme == "int8" || use == Use::Table || (use == Use::Head && head == "int8");
    return FormatAttr::get(&getContext(), eight ? Element::I8 : Element::I4, group, Element::F16,
                           /*hasMin=*/!eight && use == Use::Head);
  }
};
} // namespace
