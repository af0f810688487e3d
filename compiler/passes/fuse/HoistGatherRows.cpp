//===- HoistGatherRows.cpp - only the rows that are asked for -------------------===//

#include "compiler/passes/Passes.h"

namespace llmc {
#define GEN_PASS_DEF_HOISTGATHERROWSPASS
#include "compiler/passes/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

namespace {

/// Operations whose row r depends on row r of their row operands alone.
bool isRowwise(Operation *op) {
  return isa<LinearOp, RmsNormOp, LayerNormOp, GluOp, ActivateOp, AddOp, MulOp, ScaleOp, SoftcapOp,
             ColumnsOp, RouteOp, ExpertLinearOp, CombineOp, HeadLinearOp>(op);
}

struct HoistGatherRowsPass : llmc::impl::HoistGatherRowsPassBase<HoistGatherRowsPass> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    SmallVector<GatherRowsOp> work;
    getOperation().walk([&](GatherRowsOp op) { work.push_back(op); });
    while (!work.empty()) {
      GatherRowsOp gather = work.pop_back_val();
      Operation *producer = gather.getInput().getDefiningOp();
      // (Of a producer with several results the gather that comes last finds all of them gathered.)
      if (!producer || !isRowwise(producer) || !llvm::all_of(producer->getResults(), onlyGathered))
        continue;
      // op(x, h); gather  ->  gather(x), gather(h); op
      rewriter.setInsertionPoint(producer);
      DenseMap<Value, Value> gathered;
      for (OpOperand &operand : producer->getOpOperands()) {
        Value value = operand.get();
        if (isWeight(value))
          continue;
        Value &rows = gathered[value];
        if (!rows) {
          auto inner = findGather(value, producer);
          if (!inner) {
            inner = GatherRowsOp::create(rewriter, gather.getLoc(), value.getType(), value);
            work.push_back(inner);
          }
          rows = inner;
        }
        operand.set(rows);
      }
      for (Value result : producer->getResults()) {
        SmallVector<Operation *> users(result.getUsers());
        for (Operation *user : users)
          rewriter.replaceOp(user, result);
        llvm::erase_if(work, [&](GatherRowsOp op) { return llvm::is_contained(users, op); });
      }
    }
  }

  /// A weight has a known number of rows; a row tensor has not.
  static bool isWeight(Value value) { return tensorType(value).hasStaticShape(); }

  static bool onlyGathered(Value value) {
    return llvm::all_of(value.getUsers(), [](Operation *user) { return isa<GatherRowsOp>(user); });
  }

  static GatherRowsOp findGather(Value value, Operation *before) {
    for (Operation *user : value.getUsers())
      if (auto gather = dyn_cast<GatherRowsOp>(user);
          gather && gather->getBlock() == before->getBlock() && gather->isBeforeInBlock(before))
        return gather;
    return nullptr;
  }
};
} // namespace
