//===- RaiseConstants.cpp - llmc-raise-constants -----------------------------===//

#include "compiler/passes/raise/Match.h"
#include "compiler/passes/raise/Passes.h"
#include "compiler/passes/raise/SampleEvaluation.h"
#include "dialects/graph/GraphDialect.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

namespace llmc::raise {
#define GEN_PASS_DEF_RAISECONSTANTSPASS
#include "compiler/passes/raise/RaisePasses.h.inc"
} // namespace llmc::raise

using namespace mlir;
using namespace llmc;
using namespace llmc::graph;
using namespace llmc::raise;

/// Elements of a constant at most.
static constexpr int64_t kMaxConstant = 4096;

namespace {

struct RaiseConstants : raise::impl::RaiseConstantsPassBase<RaiseConstants> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isDeclaration())
      return;
    auto &samples = getAnalysis<SampleEvaluation>();
    OpBuilder builder(&getContext());
    // Values that are views of weights: folding them would put weights into the IR.
    llvm::DenseSet<Value> views;
    for (Operation &op : llvm::make_early_inc_range(func.getBody().front())) {
      if (isa<WeightOp>(op)) {
        views.insert(op.getResult(0));
        continue;
      }
      if (isa<ConstantOp>(op) || op.getNumResults() == 0 ||
          op.getDialect()->getNamespace() != "graph")
        continue;
      if (isView(&op) &&
          llvm::any_of(op.getOperands(), [&](Value v) { return views.contains(v); })) {
        views.insert(op.getResults().begin(), op.getResults().end());
        continue;
      }
      if (Value same = sameAs(&op, samples)) {
        // The operand may be typed more precisely, or less; keep what its users were promised if it
        // says more.
        op.getResult(0).replaceAllUsesWith(same);
        ++removed;
        continue;
      }
      builder.setInsertionPoint(&op);
      for (Value result : op.getResults()) {
        if (result.use_empty())
          continue;
        HostArrayRef value = samples.constant(result);
        if (!value || value->size() > kMaxConstant)
          continue;
        auto constant = ConstantOp::create(builder, op.getLoc(), toElements(*value));
        result.replaceAllUsesWith(constant);
        ++folded;
      }
    }
    // A result that is known by now may say its shape.
    Operation *terminator = func.getBody().front().getTerminator();
    func.setFunctionType(
        builder.getFunctionType(func.getArgumentTypes(), terminator->getOperandTypes()));
    // What is left without users goes, from the end on.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(func.getBody().front())))
      if (op.use_empty() && isMemoryEffectFree(&op) && !op.hasTrait<OpTrait::IsTerminator>())
        op.erase();
  }

  static bool isView(Operation *op) {
    return isa<TransposeOp, ReshapeOp, SqueezeOp, UnsqueezeOp, FlattenOp, CastOp, DequantizeOp,
               DequantizeNBitsOp, SplitOp, SliceOp, ConcatOp, ExpandOp>(op);
  }

  /// Whether `from` and `to` have the same known shape at every sample.
  static bool haveSameShape(Value from, Value to, SampleEvaluation &samples) {
    for (unsigned i = 0; i < samples.samples().size(); ++i) {
      const Shape *a = samples.shape(from, i), *b = samples.shape(to, i);
      if (!a || !b || *a != *b)
        return false;
    }
    return true;
  }

  /// The operand that the operation's result equals, or null.
  static Value sameAs(Operation *op, SampleEvaluation &samples) {
    return llvm::TypeSwitch<Operation *, Value>(op)
        .Case<ReshapeOp, ExpandOp, SqueezeOp, UnsqueezeOp, FlattenOp, TileOp>(
            [&](auto view) -> Value {
              return haveSameShape(view.getX(), view.getY(), samples) ? view.getX() : Value();
            })
        .Case([&](SliceOp slice) -> Value {
          if (!haveSameShape(slice.getX(), slice.getY(), samples))
            return {};
          // Equal shapes leave the order: all steps must be 1.
          auto steps = slice.getSteps() ? intConstant(slice.getSteps()) : SmallVector<int64_t>{1};
          return steps && llvm::all_of(*steps, [](int64_t s) { return s == 1; }) ? slice.getX()
                                                                                 : Value();
        })
        .Case([&](CastOp cast) -> Value {
          return getElementTypeOrSelf(cast.getX()) == getElementTypeOrSelf(cast.getY())
                     ? cast.getX()
                     : Value();
        })
        .Case([&](ConcatOp concat) -> Value {
          return concat.getParts().size() == 1 ? concat.getParts()[0] : Value();
        })
        .Case([&](TransposeOp transpose) -> Value {
          return llvm::equal(transpose.getPerm(), llvm::seq<int64_t>(transpose.getPerm().size()))
                     ? transpose.getX()
                     : Value();
        })
        .Case([&](BinaryOp binary) -> Value {
          bool isDiv = binary.getKind() == BinaryKind::Div;
          if (!isDiv && binary.getKind() != BinaryKind::Mul)
            return {};
          if (scalarConstant(binary.getB()) == 1.0 &&
              haveSameShape(binary.getA(), binary.getY(), samples))
            return binary.getA();
          if (!isDiv && scalarConstant(binary.getA()) == 1.0 &&
              haveSameShape(binary.getB(), binary.getY(), samples))
            return binary.getB();
          return {};
        })
        .Default([](Operation *) { return Value(); });
  }
};

} // namespace
