//===- StepLowering.cpp - operations of the step to commands -----------------------===//

#include "compiler/passes/plan/StepLowering.h"
#include "compiler/passes/plan/KernelFormat.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

int64_t llmc::rowBytes(Value value) {
  RankedTensorType type = tensorType(value);
  if (auto q8 = dyn_cast<Q8Type>(type.getElementType()))
    return type.getDimSize(1) + 8 * (type.getDimSize(1) / q8.getGroup());
  int64_t elements = 1;
  for (int64_t size : type.getShape().drop_front())
    elements *= size;
  return 4 * elements;
}

int64_t llmc::rowElements(Value value) {
  int64_t elements = 1;
  for (int64_t size : tensorType(value).getShape().drop_front())
    elements *= size;
  return elements;
}

LogicalResult StepLowering::lower(func::FuncOp step) {
  Operation *terminator = step.getBody().front().getTerminator();
  if (terminator->getNumOperands() != 1)
    return step.emitOpError() << "must return the logits, and only them";
  returned = terminator->getOperand(0);
  findLayers(step);
  for (Operation &op : step.getBody().front().without_terminator()) {
    if (auto it = layerBefore.find(&op); it != layerBefore.end())
      layer = it->second;
    if (failed(lowerOp(&op)))
      return failure();
  }
  auto it = values.find(returned);
  if (it == values.end() || it->second.kind != RowKind::Logit)
    return step.emitOpError()
           << "must return rows chosen by llm.gather_rows (is llmc-raise-step missing?)";
  return success();
}

LogicalResult StepLowering::lowerOp(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      // Weights are cloned where they are used; a cache is memory that the runtime owns.
      .Case<WeightOp, WeightConstantOp, WeightTransposeOp, WeightConcatOp, WeightStackOp,
            WeightInterleaveOp, WeightRowsOp, WeightUnpermuteOp, WeightReshapeOp>(
          [](auto) { return success(); })
      .Case<KvCacheOp>([&](KvCacheOp cache) {
        cacheLayer[cache] = cache.getLayer();
        return success();
      })
      .Case<EmbeddingOp, GatherRowsOp, LinearOp, QuantizeOp, RmsNormOp, LayerNormOp, RopeAnglesOp,
            RopeGatherOp, RopeSelectOp, RopeAppendOp, AttentionOp, ColumnsOp, RouteOp,
            ExpertLinearOp, CombineOp, HeadLinearOp, LatentAppendOp>(
          [&](auto typed) { return lowerOp(typed); })
      .Case<AddOp>([&](auto) { return lowerElementwise(op, "add"); })
      .Case<MulOp>([&](auto) { return lowerElementwise(op, "mul"); })
      .Case<ActivateOp>([&](ActivateOp o) {
        return lowerElementwise(op, stringifyActivation(o.getActivation()));
      })
      .Case<GluOp>([&](GluOp o) {
        return lowerElementwise(op, (stringifyActivation(o.getActivation()) + "_mul").str());
      })
      .Case<ScaleOp>(
          [&](ScaleOp o) { return lowerElementwise(op, "scale", o.getFactor().convertToDouble()); })
      .Case([&](SoftcapOp o) {
        return lowerElementwise(op, "softcap", o.getCap().convertToDouble());
      })
      .Default([](Operation *other) {
        return other->emitError() << "'" << other->getName()
                                  << "' has no kernel; is a pass of the pipeline missing?";
      });
}

void StepLowering::findLayers(func::FuncOp step) {
  // Back from what is appended to the projections of the layer's input, and to the norm of it.
  auto note = [&](Operation *append, Value cache, bool isLatent) {
    auto source = cache.getDefiningOp<KvCacheOp>();
    if (!source)
      return;
    SmallVector<Value> work;
    for (Value operand : append->getOperands())
      if (isa<RankedTensorType>(operand.getType()) && !tensorType(operand).hasStaticShape())
        work.push_back(operand);
    while (!work.empty()) {
      Operation *op = work.pop_back_val().getDefiningOp();
      if (!isa_and_present<ColumnsOp, LinearOp, HeadLinearOp, QuantizeOp, RmsNormOp, LayerNormOp>(
              op))
        continue;
      layerBefore.try_emplace(op, source.getLayer());
      // MLA has norms between its projections as well.
      bool isInner = isLatent && isa_and_present<LinearOp>(op->getOperand(0).getDefiningOp()) &&
                     !cast<LinearOp>(op->getOperand(0).getDefiningOp()).getResidual();
      if (!isa<RmsNormOp, LayerNormOp>(op) || isInner)
        work.push_back(op->getOperand(0));
    }
  };
  step.walk([&](Operation *op) {
    if (auto append = dyn_cast<RopeAppendOp>(op))
      note(append, append.getCache(), false);
    else if (auto append = dyn_cast<LatentAppendOp>(op))
      note(append, append.getCache(), true);
  });
}

StringRef StepLowering::roleOf(LinearOp op) const {
  Operation *last = returned.getDefiningOp();
  while (isa_and_present<GatherRowsOp, ScaleOp, SoftcapOp>(last))
    last = last->getOperand(0).getDefiningOp();
  if (op.getOperation() == last)
    return "head";
  if (layerBefore.contains(op))
    return "qkv";
  if (op.getGlu())
    return "gate_up";
  Operation *source = op.getInput().getDefiningOp();
  while (isa_and_present<QuantizeOp, GatherRowsOp>(source))
    source = source->getOperand(0).getDefiningOp();
  if (isa_and_present<AttentionOp>(source))
    return "output";
  return isa_and_present<LinearOp, GluOp, ActivateOp>(source) ? "down" : "linear";
}

std::string StepLowering::name(StringRef what) const {
  return layer < 0 ? what.str() : ("layers." + Twine(layer) + "." + what).str();
}

FailureOr<Value> StepLowering::whole(Operation *op, Value value) {
  const PlanRows &r = rows(value);
  if (r.offset == 0 && r.rowElements == r.columns)
    return r.memory;
  return op->emitError() << "'" << op->getName() << "' reads columns " << r.offset << " to "
                         << r.offset + r.columns << " of a wider row, which it has no kernel for";
}

Value StepLowering::result(Value value, RowKind kind, StringRef what) {
  Value memory;
  if (value == returned)
    memory =
        plan::OutputOp::create(b.builder(), value.getLoc(), plan::OutputType::get(b.context()),
                               b.builder().getStringAttr("logits"), b.perRow(kind, rowBytes(value)),
                               b.builder().getI64IntegerAttr(rowElements(value)));
  else
    memory = b.buffer(what, kind, rowBytes(value));
  int64_t elements = rowElements(value);
  values[value] = {memory, kind, elements, 0, elements};
  return memory;
}

Value StepLowering::vector(Value expression, StringRef what) {
  return b.weight(expression, nullptr, name(what));
}

LogicalResult StepLowering::lowerOp(EmbeddingOp op) {
  int64_t d = dim(op.getTable(), 1);
  FormatAttr format = op.getFormatAttr();
  if (!format)
    return op.emitOpError() << "has no format (is llmc-quantize-weights missing?)";
  // The step's second argument is the positions.
  auto ids = dyn_cast<BlockArgument>(op.getTokens());
  const bool ofPositions = ids && ids.getArgNumber() == 1;
  Value table = b.weight(op.getTable(), format, ofPositions ? "positions" : "embedding");
  Value y = result(op, RowKind::Token, ofPositions ? "places" : "hidden");
  SmallVector<PlanConstant> constants = {
      {"d", d}, {"scale", 1.0}, {"positions", ofPositions ? dim(op.getTable(), 0) : 0}};
  appendFormat(constants, format);
  b.command(op.getLoc(), ofPositions ? "positions" : "embedding", "embed", {{"w", table}, {"y", y}},
            constants, b.perRow(RowKind::Token, 1));
  return success();
}

LogicalResult StepLowering::lowerOp(GatherRowsOp op) {
  FailureOr<Value> x = whole(op, op.getInput());
  if (failed(x))
    return failure();
  Value y = result(op, RowKind::Logit, "rows");
  b.command(op.getLoc(), name("gather_rows"), "gather_rows", {{"x", *x}, {"y", y}},
            {{"d", dim(op, 1)}}, b.perRow(RowKind::Logit, 1));
  return success();
}

LogicalResult StepLowering::lowerOp(LinearOp op) {
  FormatAttr format = op.getFormatAttr();
  if (!format)
    return op.emitOpError() << "has no format (is llmc-quantize-weights missing?)";
  RowKind kind = rows(op.getInput()).kind;
  int64_t n = dim(op.getWeight(), 0), k = dim(op.getWeight(), 1);
  auto q8 = dyn_cast<Q8Type>(tensorType(op.getInput()).getElementType());
  FailureOr<Value> x = whole(op, op.getInput());
  if (failed(x))
    return failure();
  StringRef role = roleOf(op);
  std::string label = role == "head" ? "head" : name(role);
  SmallVector<std::pair<StringRef, Value>> bindings = {
      {"x", *x}, {"w", b.weight(op.getWeight(), format, label)}};
  if (op.getBias())
    bindings.push_back({"bias", vector(op.getBias(), "bias")});
  if (op.getResidual()) {
    if (rows(op.getResidual()).kind != kind)
      return op.emitOpError() << "adds rows of another kind (tokens and logit rows)";
    FailureOr<Value> residual = whole(op, op.getResidual());
    if (failed(residual))
      return failure();
    bindings.push_back({"residual", *residual});
  }
  Value y = result(op, kind, role);
  bindings.push_back({"y", y});
  // Some tiles a task: fewer hand-outs for a wide matrix, and both halves of a GLU pair together.
  constexpr int64_t tilesATask = 4;
  int64_t tiles = (n + 15) / 16;
  SmallVector<PlanConstant> constants = {{"k", k},
                                         {"n", op.getGlu() ? 2 * dim(op, 1) : n},
                                         {"x_int8", int64_t(bool(q8))},
                                         {"group", q8 ? q8.getGroup() : 0},
                                         {"rows", int64_t(kind == RowKind::Logit)},
                                         {"bias", int64_t(bool(op.getBias()))},
                                         {"residual", int64_t(bool(op.getResidual()))},
                                         {"activation", static_cast<int64_t>(op.getActivation())},
                                         {"glu", int64_t(op.getGlu())},
                                         {"task_tiles", tilesATask}};
  appendFormat(constants, format);
  auto cost = plan::CostAttr::get(b.context(), packedBytes(format, n, k), 2 * n * k,
                                  rowBytes(op.getInput()) + rowBytes(op), 0, bool(q8));
  b.command(op.getLoc(), label, "gemm", bindings, constants,
            b.constant((tiles + tilesATask - 1) / tilesATask), {}, cost);
  return success();
}

LogicalResult StepLowering::lowerOp(QuantizeOp op) {
  RowKind kind = rows(op.getInput()).kind;
  FailureOr<Value> x = whole(op, op.getInput());
  if (failed(x))
    return failure();
  Value y = result(op, kind, "int8_rows");
  auto q8 = cast<Q8Type>(tensorType(op).getElementType());
  int64_t slots = op.getSlots().value_or(1);
  b.command(op.getLoc(), name("quantize"), "quantize", {{"x", *x}, {"y", y}},
            {{"k", dim(op, 1) / slots},
             {"group", q8.getGroup()},
             {"rows", int64_t(kind == RowKind::Logit)},
             {"slots", slots > 1 ? slots : 0}},
            b.perRow(kind, slots));
  return success();
}

LogicalResult StepLowering::lowerNorm(Operation *op, Value input, Value weight, Value bias,
                                      int64_t normKind, double eps, bool plusOne) {
  RowKind kind = rows(input).kind;
  FailureOr<Value> x = whole(op, input);
  if (failed(x))
    return failure();
  auto q8 = dyn_cast<Q8Type>(tensorType(op->getResult(0)).getElementType());
  Value y = result(op->getResult(0), kind, "normed");
  SmallVector<std::pair<StringRef, Value>> bindings = {{"x", *x}, {"w", vector(weight, "norm")}};
  if (bias)
    bindings.push_back({"b", vector(bias, "norm_bias")});
  bindings.push_back({"y", y});
  b.command(op->getLoc(), name("norm"), "norm", bindings,
            {{"d", dim(input, 1)},
             {"rows", int64_t(kind == RowKind::Logit)},
             {"norm", normKind},
             {"eps", eps},
             {"plus_one", int64_t(plusOne)},
             {"bias", int64_t(bool(bias))},
             {"out", int64_t(bool(q8))},
             {"group", q8 ? q8.getGroup() : 0}},
            b.perRow(kind, 1));
  return success();
}

LogicalResult StepLowering::lowerOp(RmsNormOp op) {
  if (op.getGroupSize())
    return op.emitOpError() << "of each head stands where no kernel takes it: heads are normalised "
                               "just before RoPE and the KV append";
  return lowerNorm(op, op.getInput(), op.getWeight(), Value(), 0, op.getEps().convertToDouble(),
                   op.getPlusOne());
}

LogicalResult StepLowering::lowerOp(LayerNormOp op) {
  return lowerNorm(op, op.getInput(), op.getWeight(), op.getBias(), 1,
                   op.getEps().convertToDouble(), false);
}

LogicalResult StepLowering::lowerOp(RopeAnglesOp op) {
  Value y = result(op, RowKind::Token, "angles");
  b.command(op.getLoc(), "rope_angles", "rope_angles",
            {{"inv_freq", vector(op.getFrequencies(), "rope.frequencies")}, {"y", y}},
            {{"half", dim(op, 2)}, {"scale", op.getScale().convertToDouble()}},
            b.perRow(RowKind::Token, 1));
  return success();
}

LogicalResult StepLowering::lowerOp(RopeGatherOp op) {
  Value y = result(op, RowKind::Token, "angles");
  b.command(op.getLoc(), "rope_gather", "rope_gather",
            {{"cos", vector(op.getCos(), "rope.cos")},
             {"sin", vector(op.getSin(), "rope.sin")},
             {"y", y}},
            {{"half", dim(op, 2)}, {"positions", dim(op.getCos(), 0)}},
            b.perRow(RowKind::Token, 1));
  return success();
}

LogicalResult StepLowering::lowerOp(RopeSelectOp op) {
  Value y = result(op, RowKind::Token, "angles");
  b.command(op.getLoc(), "rope_select", "rope_select",
            {{"short", rows(op.getShortAngles()).memory},
             {"long", rows(op.getLongAngles()).memory},
             {"y", y}},
            {{"half", dim(op, 2)}}, b.perRow(RowKind::Token, 1));
  return success();
}

LogicalResult StepLowering::lowerOp(RopeAppendOp op) {
  layer = cacheLayer.lookup(op.getCache());
  cacheLayer[op.getResult()] = layer;
  KvType kv = op.getCache().getType();
  PlanRows q = rows(op.getQuery()), k = rows(op.getKeys()), v = rows(op.getValues());
  Value rotated = result(op.getRotated(), RowKind::Token, "queries");
  // One row of q, k and v side by side, as a joined projection gives it, or three tensors.
  bool joined = q.memory == k.memory && k.memory == v.memory && q.offset == 0 &&
                k.offset == q.columns && v.offset == k.offset + k.columns &&
                q.rowElements == v.offset + v.columns;
  SmallVector<std::pair<StringRef, Value>> bindings;
  if (joined) {
    bindings.push_back({"qkv", q.memory});
  } else {
    for (auto [role, value] : {std::pair<StringRef, Value>{"q", op.getQuery()},
                               {"k", op.getKeys()},
                               {"v", op.getValues()}}) {
      FailureOr<Value> memory = whole(op, value);
      if (failed(memory))
        return failure();
      bindings.push_back({role, *memory});
    }
  }
  if (op.getAngles())
    bindings.push_back({"angles", rows(op.getAngles()).memory});
  if (op.getQueryNorm()) {
    bindings.push_back({"q_norm", vector(op.getQueryNorm(), "q_norm")});
    bindings.push_back({"k_norm", vector(op.getKeyNorm(), "k_norm")});
  }
  bindings.push_back({"q_out", rotated});
  b.command(op.getLoc(), name("rope_append"), "rope_append", bindings,
            {{"heads", static_cast<int64_t>(op.getHeads())},
             {"kv_heads", kv.getHeads()},
             {"head_size", kv.getKeySize()},
             {"value_size", kv.getValueSize()},
             {"rotary", op.getAngles() ? 2 * dim(op.getAngles(), 2) : 0},
             {"interleaved", int64_t(op.getInterleaved())},
             {"kv_element", static_cast<int64_t>(kv.getElement())},
             {"split", int64_t(!joined)},
             {"q_norm", int64_t(bool(op.getQueryNorm()))},
             {"eps", op.getNormEps() ? op.getNormEps()->convertToDouble() : 0.0},
             {"plus_one", int64_t(op.getNormPlusOne())}},
            b.perRow(RowKind::Token, 1), {kvPrefixBytes[layer]});
  return success();
}

LogicalResult StepLowering::lowerOp(AttentionOp op) {
  KvType kv = op.getCache().getType();
  if (!op.getKeyTile() || !op.getQueryTile())
    return op.emitOpError() << "is not tiled (is llmc-tile-attention missing?)";
  auto it = cacheLayer.find(op.getCache());
  if (it == cacheLayer.end())
    return op.emitOpError() << "reads a cache that nothing has been appended to";
  FailureOr<Value> q = whole(op, op.getQuery());
  if (failed(q))
    return failure();
  Value y = result(op, RowKind::Token, "attended");
  int64_t heads = op.getHeads(), headTasks = op.headTasks();
  auto cost = plan::CostAttr::get(b.context(), 0, 0, rowBytes(op.getQuery()) + rowBytes(op),
                                  kv.getBytesPerToken(), false);
  SmallVector<std::pair<StringRef, Value>> bindings = {{"q", *q}};
  if (op.getAlibi())
    bindings.push_back({"alibi", vector(op.getAlibi(), "alibi")});
  if (op.getSinks())
    bindings.push_back({"sinks", vector(op.getSinks(), "sinks")});
  bindings.push_back({"y", y});
  b.command(op.getLoc(), name("attention"), "attention", bindings,
            {{"heads", heads},
             {"kv_heads", kv.getHeads()},
             {"key_size", kv.getKeySize()},
             {"value_size", kv.getValueSize()},
             {"scale", op.getScale().convertToDouble()},
             {"softcap", op.getSoftcap() ? op.getSoftcap()->convertToDouble() : 0.0},
             {"window", static_cast<int64_t>(op.getWindow().value_or(0))},
             {"kv_element", static_cast<int64_t>(kv.getElement())},
             {"query_tile", static_cast<int64_t>(*op.getQueryTile())},
             {"alibi", int64_t(bool(op.getAlibi()))},
             {"sinks", int64_t(bool(op.getSinks()))},
             {"latent", int64_t(kv.getLatent())},
             {"head_tasks", headTasks > 1 ? headTasks : 0},
             {"key_split", static_cast<int64_t>(op.getKeySplit().value_or(0))}},
            plan::AffineAttr::get(b.context(), 0, 0, 0, 0, kv.getHeads() * headTasks),
            {kvPrefixBytes[it->second]}, cost);
  return success();
}

LogicalResult StepLowering::lowerOp(ColumnsOp op) {
  PlanRows r = rows(op.getInput());
  values[op] = {r.memory, r.kind, r.rowElements, r.offset + static_cast<int64_t>(op.getOffset()),
                dim(op, 1)};
  return success();
}

LogicalResult StepLowering::lowerElementwise(Operation *op, StringRef opcode, double scale) {
  SmallVector<std::pair<StringRef, Value>> bindings;
  static constexpr StringLiteral roles[] = {"a", "b"};
  RowKind kind = rows(op->getOperand(0)).kind;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    if (rows(operand).kind != kind)
      return op->emitOpError() << "mixes rows of tokens and logit rows";
    FailureOr<Value> memory = whole(op, operand);
    if (failed(memory))
      return failure();
    bindings.push_back({roles[i], *memory});
  }
  bindings.push_back({"y", result(op->getResult(0), kind, opcode)});
  b.command(op->getLoc(), name(opcode), "elementwise", bindings,
            {{"op", opcode.str()},
             {"d", dim(op->getResult(0), 1)},
             {"rows", int64_t(kind == RowKind::Logit)},
             {"scale", scale}},
            b.perRow(kind, 1));
  return success();
}
