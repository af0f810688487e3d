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
    // One conversion for all readers of a row tensor that want the same groups.
    DenseMap<std::pair<Value, int64_t>, QuantizeOp> done;
    IRRewriter rewriter(&getContext());
    getOperation().walk([&](LinearOp op) {
      FormatAttr format = op.getFormatAttr();
      Value input = op.getInput();
      if (!format || !format.isInteger() || isa<Q8Type>(tensorType(input).getElementType()))
        return;
      int64_t size = std::min<int64_t>(format.getGroup(), group);
      if (dim(input, 1) % size || format.getGroup() % size || (size != 16 && size != 32)) {
        op.emitRemark() << "rows of " << dim(input, 1) << " columns do not divide into groups of "
                        << size << ": the projection runs in f32";
        return;
      }
      QuantizeOp &quantize = done[{input, size}];
      if (!quantize) {
        rewriter.setInsertionPointAfterValue(input);
        quantize = QuantizeOp::create(
            rewriter, op.getLoc(),
            RankedTensorType::get(tensorType(input).getShape(), Q8Type::get(&getContext(), size)),
            input);
      }
      op.getInputMutable().assign(quantize);
    });
  }
};
} // namespace
