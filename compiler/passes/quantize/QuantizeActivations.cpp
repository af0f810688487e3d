//===- QuantizeActivations.cpp - int8 rows for integer weights ---------------------===//

#include "compiler/passes/Passes.h"
#include "mlir/IR/PatternMatch.h"

namespace llmc {
#define GEN_PASS_DEF_QUANTIZEACTIVATIONSPASS
#include "compiler/passes/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

namespace {
struct QuantizeActivationsPass : llmc::impl::QuantizeActivationsPassBase<QuantizeActivationsPass> {
  using Base::Base;

  void runOnOperation() override {
    if (group != 16 && group != 32) {
      emitError(getOperation().getLoc())
          << "group must be 16 or 32, got " << static_cast<int64_t>(group);
      return signalPassFailure();
    }
    done.clear();
    getOperation().walk([&](Operation *op) {
      if (auto linear = dyn_cast<LinearOp>(op))
        quantizeInput(linear, 1);
      else if (auto experts = dyn_cast<ExpertLinearOp>(op))
        quantizeInput(experts, experts.hasOwnInputs() ? experts.getChosen() : 1);
    });
  }

  /// \p slots: rows of the projection that stand beside each other in a row of its input.
  template <typename Op> void quantizeInput(Op op, int64_t slots) {
    FormatAttr format = op.getFormatAttr();
    Value input = op.getInput();
    if (!format || !format.isInteger() || isa<Q8Type>(tensorType(input).getElementType()))
      return;
    int64_t size = std::min<int64_t>(format.getGroup(), group), columns = dim(input, 1) / slots;
    if (columns % size || format.getGroup() % size || (size != 16 && size != 32)) {
      op.emitRemark() << "rows of " << columns << " columns do not divide into groups of " << size
                      << ": the projection runs in f32";
      return;
    }
    QuantizeOp &quantize = done[{input, size * 65536 + slots}];
    if (!quantize) {
      OpBuilder builder(&getContext());
      builder.setInsertionPointAfterValue(input);
      quantize = QuantizeOp::create(
          builder, op.getLoc(),
          RankedTensorType::get(tensorType(input).getShape(), Q8Type::get(&getContext(), size)),
          input, slots > 1 ? builder.getI64IntegerAttr(slots) : IntegerAttr());
    }
    op.getInputMutable().assign(quantize);
  }

  /// One conversion for all readers of a row tensor that want the same groups and slots.
  DenseMap<std::pair<Value, int64_t>, QuantizeOp> done;
};
} // namespace
