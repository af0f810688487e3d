//===- RaiseStep.cpp - llmc-raise-step -------------------------------------------===//

#include "compiler/passes/raise/Match.h"
#include "compiler/passes/raise/Passes.h"
#include "compiler/passes/raise/Step.h"
#include "dialects/graph/NodeLocation.h"

#include "llvm/ADT/TypeSwitch.h"

namespace llmc::raise {
#define GEN_PASS_DEF_RAISESTEPPASS
#include "compiler/passes/raise/RaisePasses.h.inc"
} // namespace llmc::raise

using namespace mlir;
using namespace llmc;
using namespace llmc::graph;
using namespace llmc::raise;

Step::Step(ModuleOp module, func::FuncOp main, SampleEvaluation &samples)
    : module(module), main(main), samples(samples), builder(module.getContext()) {
  // A module that already names source files keeps their numbers.
  if (auto known = module->getAttrOfType<ArrayAttr>(llm::kFilesAttr))
    for (Attribute file : known) {
      fileIndex[cast<StringAttr>(file).str()] = files.size();
      files.push_back(file);
    }
}

Lifted Step::fail(Operation *op, const Twine &reason) {
  Lifted result;
  result.culprit = op;
  result.reason = reason.str();
  return result;
}

const Lifted *Step::firstUnknown(ValueRange operands) {
  // One that says where understanding ended, rather than a weight or a mask.
  const Lifted *first = nullptr;
  for (Value operand : operands)
    if (Lifted &lifted = of(operand);
        lifted.kind == Lifted::Unknown && (!first || (!first->culprit && lifted.culprit)))
      first = &lifted;
  return first;
}

std::optional<SmallVector<Shape>> Step::shapesOf(Value value) const {
  SmallVector<Shape> shapes;
  for (unsigned i = 0; i < samples.samples().size(); ++i) {
    const Shape *shape = samples.shape(value, i);
    if (!shape)
      return std::nullopt;
    shapes.push_back(*shape);
  }
  return shapes;
}

LogicalResult Step::checkSizes() {
  batch = {{AxisKind::Batch}};
  for (BlockArgument argument : main.getArguments()) {
    if (bindName(argumentName(main, argument.getArgNumber())).role != Role::TokenIds)
      continue;
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type || type.getRank() != 2)
      return main.emitError("input_ids must be [batch, sequence]");
    if (!type.isDynamicDim(1))
      return main.emitError("the graph's sequence length is fixed at ")
             << type.getDimSize(1) << "; a step has any number of tokens: export with dynamic axes";
    if (type.isDynamicDim(0))
      continue;
    if (type.getDimSize(0) != 1)
      return main.emitError("the graph's batch is fixed at ")
             << type.getDimSize(0) << "; supported: a dynamic batch, or one of 1";
    // Each sequence of a step is a batch of its own then.
    batch.clear();
  }
  return success();
}

LogicalResult Step::run() {
  Block &body = main.getBody().front();
  Location loc = main.getLoc();
  auto ids = RankedTensorType::get({ShapedType::kDynamic}, builder.getI32Type());
  builder.setInsertionPoint(main);
  step = func::FuncOp::create(builder, loc, llm::kStepFunction,
                              builder.getFunctionType({ids, ids}, {}));
  Block *entry = step.addEntryBlock();
  builder.setInsertionPointToEnd(entry);
  tokens = entry->getArgument(0);
  positions = entry->getArgument(1);

  if (failed(checkSizes()))
    return failure();
  for (BlockArgument argument : main.getArguments()) {
    Binding binding = bindName(argumentName(main, argument.getArgNumber()));
    Lifted lifted = fail(nullptr, "input '" + argumentName(main, argument.getArgNumber()) +
                                      "' is used in a way that " + "a step cannot express");
    if (binding.role == Role::TokenIds) {
      lifted.kind = Lifted::Tokens;
      lifted.axes = {batch, {{AxisKind::Fresh}}};
    } else if (binding.role == Role::PastKey || binding.role == Role::PastValue) {
      lifted.layer = binding.layer;
      lifted.isKey = binding.role == Role::PastKey;
    } else if (binding.role == Role::Other) {
      return main.emitError("input '") << argumentName(main, argument.getArgNumber())
                                       << "' is not one that a decoder has; known: input_ids, "
                                          "attention_mask, position_ids, past_key_values.N.key, "
                                          "past_key_values.N.value";
    }
    of(argument) = std::move(lifted);
  }
  for (Operation &op : body.without_terminator())
    lift(&op);
  return finish();
}

void Step::lift(Operation *op) {
  if (isa<ConstantOp, WeightOp, ShapeOp>(op))
    return;
  // What is known at every sample (masks, positions, shapes) is read from there when it is needed.
  if (auto split = dyn_cast<SplitOp>(op)) {
    for (unsigned i = 0; i < split.getParts().size(); ++i)
      of(split.getParts()[i]) = liftSplit(split, i);
    return;
  }
  if (auto attention = dyn_cast<GroupQueryAttentionOp>(op)) {
    of(attention.getY()) = liftGroupQueryAttention(attention);
    return;
  }
  if (auto attention = dyn_cast<AttentionOp>(op)) {
    of(attention.getY()) = liftAttention(attention);
    return;
  }
  if (op->getNumResults() != 1)
    return;
  Value result = op->getResult(0);
  of(result) =
      llvm::TypeSwitch<Operation *, Lifted>(op)
          .Case<ReshapeOp, FlattenOp, SqueezeOp, UnsqueezeOp>(
              [&](auto view) { return liftView(view, view.getX()); })
          .Case([&](CastOp cast) {
            Lifted x = of(cast.getX());
            bool isFloat = isa<FloatType>(getElementTypeOrSelf(cast.getY()));
            return x.kind != Lifted::Unknown && (isFloat || x.kind == Lifted::Tokens) ? x
                   : x.culprit ? x
                               : fail(cast, x.reason);
          })
          .Case([&](TransposeOp transpose) { return liftTranspose(transpose); })
          .Case([&](ExpandOp expand) { return liftExpand(expand); })
          .Case([&](SliceOp slice) { return liftSlice(slice); })
          .Case([&](GatherOp gather) { return liftGather(gather); })
          .Case([&](ConcatOp concat) { return liftConcat(concat); })
          .Case([&](UnaryOp unary) { return liftUnary(unary); })
          .Case([&](BinaryOp binary) { return liftBinary(binary); })
          .Case([&](RmsNormOp norm) {
            return liftNorm(norm, norm.getX(), norm.getScale(), Value(), norm.getAxis(),
                            norm.getEpsilon().convertToFloat());
          })
          .Case([&](LayerNormOp norm) {
            return liftNorm(norm, norm.getX(), norm.getScale(), norm.getBias(), norm.getAxis(),
                            norm.getEpsilon().convertToFloat());
          })
          .Case([&](MatMulOp matmul) { return liftMatMul(matmul); })
          .Case([&](GemmOp gemm) { return liftGemm(gemm); })
          .Case([&](MatMulNBitsOp matmul) {
            return liftLinear(matmul, matmul.getA(), matmul.getB(), matmul.getBias());
          })
          .Case([&](RotaryEmbeddingOp rope) { return liftRotary(rope); })
          .Case([&](ReduceOp reduce) {
            Lifted mixture = liftMixture(reduce, reduce.getY());
            return mixture.kind == Lifted::Rows || mixture.culprit
                       ? mixture
                       : fail(reduce, "a reduction is understood as part of a norm, a softmax or a "
                                      "mixture of experts only");
          })
          .Default([&](Operation *other) {
            if (const Lifted *unknown = firstUnknown(other->getOperands());
                unknown && unknown->culprit)
              return *unknown;
            return fail(
                other,
                "the operation is not part of a decoder that can be raised; the raise passes know "
                "linear layers, norms, rotary embedding, attention with a cache, and activations");
          });
}

LogicalResult Step::report(const Lifted &what, StringRef output) {
  Operation *at = what.culprit ? what.culprit : main.getOperation();
  InFlightDiagnostic error = at->emitError();
  if (what.culprit)
    error << describeNode(at) << ": ";
  error << what.reason;
  error.attachNote(main.getLoc()) << "output '" << output << "' needs it";
  return failure();
}

LogicalResult Step::finish() {
  auto terminator = cast<func::ReturnOp>(main.getBody().front().getTerminator());
  Value logits;
  int64_t vocabulary = 0;
  for (auto [i, result] : llvm::enumerate(terminator.getOperands())) {
    StringRef name = resultName(main, i);
    Binding binding = bindName(name);
    Lifted &lifted = of(result);
    if (binding.role == Role::PresentKey || binding.role == Role::PresentValue) {
      if (lifted.kind == Lifted::Cache && lifted.layer == binding.layer &&
          lifted.isKey == (binding.role == Role::PresentKey))
        continue;
      if (lifted.kind == Lifted::Unknown && lifted.culprit)
        return report(lifted, name);
      return main.emitError("output '")
             << name << "' is not the cache of layer " << binding.layer
             << " with the new tokens added, which is what its name says";
    }
    if (binding.role != Role::Logits)
      return main.emitError("output '")
             << name << "' is not one that a decoder step gives; known: logits, present.N.key, "
             << "present.N.value";
    std::string problem;
    logits = lifted.kind == Lifted::Rows ? tokenRows(lifted, problem) : Value();
    if (!logits)
      return report(lifted.kind == Lifted::Unknown ? lifted : fail(result.getDefiningOp(), problem),
                    name);
    vocabulary = llm::dim(logits, 1);
  }
  if (!logits)
    return main.emitError("the graph has no output 'logits'");
  // Rows are picked as near to the tokens as is plain: before the head.
  Value head = logits;
  if (auto linear = logits.getDefiningOp<llm::LinearOp>();
      linear && !linear.getResidual() && linear->hasOneUse() == false && linear->use_empty()) {
    builder.setInsertionPoint(linear);
    linear.getInputMutable().assign(
        llm::GatherRowsOp::create(builder, linear.getLoc(), linear.getInput()));
  } else {
    head = llm::GatherRowsOp::create(builder, main.getLoc(), logits);
  }
  builder.setInsertionPointToEnd(&step.getBody().front());
  func::ReturnOp::create(builder, main.getLoc(), head);
  step.setFunctionType(builder.getFunctionType(step.getArgumentTypes(), head.getType()));
  module->setAttr(llm::kFilesAttr, builder.getArrayAttr(files));
  module->setAttr(llm::kModelAttr, modelAttributes(vocabulary));
  module->removeAttr(kFolderAttr);
  main.erase();
  // Rows and weights that nothing came to use.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(step.getBody().front())))
    if (op.use_empty() && isMemoryEffectFree(&op) && !op.hasTrait<OpTrait::IsTerminator>())
      op.erase();
  return success();
}

DictionaryAttr Step::modelAttributes(int64_t vocabulary) {
  NamedAttrList attributes;
  int64_t maxContext = 0;
  if (auto known = module->getAttrOfType<DictionaryAttr>("graph.model"))
    if (auto context = known.getAs<IntegerAttr>("max_context"))
      maxContext = context.getInt();
  // A rotary table has no rows beyond its end.
  if (tableRows > 0)
    maxContext = maxContext > 0 ? std::min(maxContext, tableRows) : tableRows;
  auto set = [&](StringRef name, int64_t value) {
    if (value > 0)
      attributes.set(name, builder.getI64IntegerAttr(value));
  };
  attributes.set("architecture", builder.getStringAttr("decoder"));
  set("layers", layers.size());
  set("hidden_size", hiddenSize);
  set("intermediate_size", intermediateSize);
  set("vocab_size", vocabulary);
  set("max_context", maxContext);
  set("rotary_size", rotarySize);
  set("rope_original_context", originalContext);
  if (!layers.empty()) {
    const Layer &first = layers.begin()->second;
    set("heads", first.heads);
    set("kv_heads", first.kvHeads);
    set("key_size", first.keySize);
    set("value_size", first.valueSize);
    int64_t window = 0;
    for (auto &[number, layer] : layers)
      if (layer.window)
        window = std::max(window, *layer.window);
    set("sliding_window", window);
  }
  if (ropeTheta > 0)
    attributes.set("rope_theta", builder.getF64FloatAttr(ropeTheta));
  return attributes.getDictionary(builder.getContext());
}

namespace {

struct RaiseStep : raise::impl::RaiseStepPassBase<RaiseStep> {
  void runOnOperation() override {
    auto main = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!main || main.isDeclaration()) {
      getOperation().emitError("the module has no graph function 'main' to raise");
      return signalPassFailure();
    }
    auto &samples = getChildAnalysis<SampleEvaluation>(main);
    if (failed(Step(getOperation(), main, samples).run()))
      signalPassFailure();
  }
};

} // namespace
