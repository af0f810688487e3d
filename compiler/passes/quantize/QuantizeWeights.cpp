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
    // A table or a head is a matrix whose rows are the vocabulary: it is int8 in every scheme that
    // isn't told otherwise, since an error there goes straight into the logits.
    DenseSet<Value> vocabulary;
    getOperation().walk([&](EmbeddingOp op) { vocabulary.insert(op.getTable()); });
    getOperation().walk([&](func::FuncOp function) {
      for (Value result : function.getBody().front().getTerminator()->getOperands())
        if (LinearOp head = headOf(result))
          vocabulary.insert(head.getWeight());
    });
    getOperation().walk([&](EmbeddingOp op) { op.setFormatAttr(choose(op.getTable(), true)); });
    getOperation().walk([&](LinearOp op) {
      op.setFormatAttr(isRouter(op) ? source(op.getWeight())
                                    : choose(op.getWeight(), vocabulary.contains(op.getWeight())));
    });
    getOperation().walk([&](Operation *op) {
      if (auto experts = dyn_cast<ExpertLinearOp>(op))
        experts.setFormatAttr(choose(experts.getWeight(), false));
      else if (auto heads = dyn_cast<HeadLinearOp>(op))
        heads.setFormatAttr(choose(heads.getWeight(), false));
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

  FormatAttr choose(Value weight, bool isVocabulary) {
    FormatAttr format = source(weight);
    if (format.isInteger() || scheme == "none")
      return format;
    bool eight = scheme == "int8" || (isVocabulary && head == "int8");
    return FormatAttr::get(&getContext(), eight ? Element::I8 : Element::I4, group, Element::F16,
                           /*hasMin=*/false);
  }
};
} // namespace
