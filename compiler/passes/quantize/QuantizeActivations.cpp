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
  void runOnOperation() override {
    // One conversion for all readers of a row tensor that want the same groups.
    DenseMap<std::pair<Value, int64_t>, QuantizeOp> done;
    IRRewriter rewriter(&getContext());
    getOperation().walk([&](LinearOp op) {
      FormatAttr format = op.getFormatAttr();
      Value input = op.getInput();
      if (!format || !format.isInteger() || isa<Q8Type>(tensorType(input).getElementType()))
        return;
      int64_t group = std::min<int64_t>(format.getGroup(), 32);
      if (dim(input, 1) % group || format.getGroup() % group || (group != 16 && group != 32)) {
        op.emitRemark() << "rows of " << dim(input, 1) << " columns do not divide into groups of "
                        << group << ": the projection runs in f32";
        return;
      }
      QuantizeOp &quantize = done[{input, group}];
      if (!quantize) {
        rewriter.setInsertionPointAfterValue(input);
        quantize = QuantizeOp::create(
            rewriter, op.getLoc(),
            RankedTensorType::get(tensorType(input).getShape(), Q8Type::get(&getContext(), group)),
            input);
      }
      op.getInputMutable().assign(quantize);
    });
  }
};
} // namespace
