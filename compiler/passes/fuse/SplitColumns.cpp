//===- SplitColumns.cpp - projections whose parts go different ways ---------------===//

#include "compiler/passes/Passes.h"
#include "compiler/passes/fuse/FuseUtils.h"

namespace llmc {
#define GEN_PASS_DEF_SPLITCOLUMNSPASS
#include "compiler/passes/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

namespace {
struct SplitColumnsPass : llmc::impl::SplitColumnsPassBase<SplitColumnsPass> {
  void runOnOperation() override {
    SmallVector<ColumnsOp> views;
    getOperation().walk([&](ColumnsOp op) { views.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (ColumnsOp view : views)
      split(view, rewriter);
  }

  /// The one user that reads columns where they stand: Q, K and V side by side that fill a row.
  static bool isReadInPlace(ColumnsOp view) {
    for (Operation *user : view->getUsers()) {
      auto append = dyn_cast<RopeAppendOp>(user);
      if (!append)
        return false;
      int64_t end = 0;
      for (Value part : {append.getQuery(), append.getKeys(), append.getValues()}) {
        auto columns = part.getDefiningOp<ColumnsOp>();
        if (!columns || columns.getInput() != view.getInput() ||
            static_cast<int64_t>(columns.getOffset()) != end)
          return false;
        end += dim(part, 1);
      }
      if (end != dim(view.getInput(), 1))
        return false;
    }
    return true;
  }

  static void split(ColumnsOp view, IRRewriter &rewriter) {
    auto linear = view.getInput().getDefiningOp<LinearOp>();
    if (!linear || !isPlainLinear(linear) || isReadInPlace(view))
      return;
    rewriter.setInsertionPoint(linear);
    int64_t offset = view.getOffset(), count = dim(view, 1);
    auto pick = [&](Value weight) -> Value {
      if (!weight)
        return {};
      SmallVector<int64_t> shape(tensorType(weight).getShape());
      shape[0] = count;
      return rewriter.createOrFold<WeightRowsOp>(
          view.getLoc(), RankedTensorType::get(shape, rewriter.getF32Type()), weight,
          rewriter.getI64IntegerAttr(offset));
    };
    Value weight = pick(linear.getWeight()), bias = pick(linear.getBias());
    Value part = LinearOp::create(rewriter, linear.getLoc(), view.getType(), linear.getInput(),
                                  weight, bias);
    rewriter.replaceOp(view, part);
    if (linear->use_empty())
      rewriter.eraseOp(linear);
  }
};
} // namespace
