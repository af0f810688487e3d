//===- StepLoweringMoe.cpp - mixtures of experts and latent attention --------------===//

#include "compiler/passes/plan/KernelFormat.h"
#include "compiler/passes/plan/StepLowering.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

/// Tiles of a matrix in one task of grouped_gemm: as for gemm, and both halves of a GLU together.
static constexpr int64_t kTilesATask = 4;

LogicalResult StepLowering::lowerOp(RouteOp op) {
  RowKind kind = rows(op.getLogits()).kind;
  FailureOr<Value> x = whole(op, op.getLogits());
  if (failed(x))
    return failure();
  SmallVector<std::pair<StringRef, Value>> bindings = {{"logits", *x}};
  if (op.getCorrection())
    bindings.push_back({"correction", vector(op.getCorrection(), "router_correction")});
  bindings.push_back({"ids", result(op.getExperts(), kind, "experts")});
  bindings.push_back({"weights", result(op.getWeights(), kind, "expert_weights")});
  b.command(op.getLoc(), name("route"), "route", bindings,
            {{"experts", dim(op.getLogits(), 1)},
             {"chosen", static_cast<int64_t>(op.getChosen())},
             {"scoring", static_cast<int64_t>(op.getScoring())},
             {"normalize", int64_t(op.getNormalize())},
             {"correction", int64_t(bool(op.getCorrection()))},
             {"groups", static_cast<int64_t>(op.getGroups().value_or(0))},
             {"top_groups", static_cast<int64_t>(op.getTopGroups().value_or(0))},
             {"group_best_two", int64_t(op.getGroupBestTwo())},
             {"scale", op.getScale().convertToDouble()},
             {"rows", int64_t(kind == RowKind::Logit)}},
            b.perRow(kind, 1));
  return success();
}

LogicalResult StepLowering::lowerOp(ExpertLinearOp op) {
  FormatAttr format = op.getFormatAttr();
  if (!format)
    return op.emitOpError() << "has no format (is llmc-quantize-weights missing?)";
  RowKind kind = rows(op.getInput()).kind;
  if (rows(op.getExperts()).kind != kind)
    return op.emitOpError() << "mixes rows of tokens and logit rows";
  FailureOr<Value> x = whole(op, op.getInput()), ids = whole(op, op.getExperts());
  if (failed(x) || failed(ids))
    return failure();
  int64_t stored = dim(op.getWeight(), 0), k = dim(op.getWeight(), 1);
  int64_t count = op.getCount(), chosen = op.getChosen(), n = op.getOutputs();
  auto q8 = dyn_cast<Q8Type>(tensorType(op.getInput()).getElementType());
  StringRef role = op.hasOwnInputs() ? "experts_down" : "experts_up";
  SmallVector<std::pair<StringRef, Value>> bindings = {
      {"x", *x}, {"w", b.weight(op.getWeight(), format, name(role))}, {"ids", *ids}};
  if (op.getBias())
    bindings.push_back({"bias", vector(op.getBias(), (role + "_bias").str())});
  bindings.push_back({"y", result(op, kind, role)});
  SmallVector<PlanConstant> constants = {
      {"k", k},
      {"n", op.getGlu() ? 2 * n : n},
      {"x_int8", int64_t(bool(q8))},
      {"group", q8 ? q8.getGroup() : 0},
      {"rows", int64_t(kind == RowKind::Logit)},
      {"bias", int64_t(bool(op.getBias()))},
      {"activation", static_cast<int64_t>(op.getActivation())},
      {"glu", int64_t(op.getGlu())},
      {"alpha", op.getAlpha() ? op.getAlpha()->convertToDouble() : 0.0},
      {"limit", op.getLimit() ? op.getLimit()->convertToDouble() : 0.0},
      {"groups", count},
      {"slots", chosen},
      {"chosen", int64_t(1)},
      {"x_stride", op.hasOwnInputs() ? k : 0},
      {"task_tiles", kTilesATask}};
  appendFormat(constants, format);
  int64_t expertRows = stored / count, tiles = expertRows / 16;
  // A token reads the experts that it chose; where many tokens choose, arithmetic bounds a step.
  auto cost = plan::CostAttr::get(b.context(), packedBytes(format, expertRows * chosen, k),
                                  2 * expertRows * k * chosen,
                                  rowBytes(op.getInput()) + rowBytes(op), 0, bool(q8));
  b.command(op.getLoc(), name(role), "grouped_gemm", bindings, constants,
            b.constant((tiles + kTilesATask - 1) / kTilesATask), {}, cost);
  return success();
}

LogicalResult StepLowering::lowerOp(CombineOp op) {
  RowKind kind = rows(op.getValues()).kind;
  SmallVector<std::pair<StringRef, Value>> bindings;
  static constexpr StringLiteral roles[] = {"values", "weights", "residual"};
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    if (rows(operand).kind != kind)
      return op.emitOpError() << "mixes rows of tokens and logit rows";
    FailureOr<Value> memory = whole(op, operand);
    if (failed(memory))
      return failure();
    bindings.push_back({roles[i], *memory});
  }
  bindings.push_back({"y", result(op, kind, "combined")});
  b.command(op.getLoc(), name("combine"), "combine", bindings,
            {{"d", dim(op, 1)},
             {"slots", dim(op.getWeights(), 1)},
             {"residual", int64_t(bool(op.getResidual()))},
             {"rows", int64_t(kind == RowKind::Logit)}},
            b.perRow(kind, 1));
  return success();
}

LogicalResult StepLowering::lowerOp(HeadLinearOp op) {
  FormatAttr format = op.getFormatAttr();
  if (!format)
    return op.emitOpError() << "has no format (is llmc-quantize-weights missing?)";
  RowKind kind = rows(op.getInput()).kind;
  FailureOr<Value> x = whole(op, op.getInput());
  if (failed(x))
    return failure();
  int64_t heads = op.getHeads(), k = dim(op.getWeight(), 1), stored = dim(op.getWeight(), 0);
  bool isValue = isa_and_present<AttentionOp>(op.getInput().getDefiningOp());
  StringRef role = isValue ? "latent_values" : "latent_queries";
  SmallVector<PlanConstant> constants = {{"k", k},
                                         {"n", dim(op, 1) / heads},
                                         {"rows", int64_t(kind == RowKind::Logit)},
                                         {"groups", heads},
                                         {"slots", heads},
                                         {"x_stride", dim(op.getInput(), 1) / heads},
                                         {"task_tiles", kTilesATask}};
  appendFormat(constants, format);
  Value weight = b.weight(op.getWeight(), format, name(role));
  int64_t tiles = stored / heads / 16;
  auto cost = plan::CostAttr::get(b.context(), packedBytes(format, stored, k), 2 * stored * k,
                                  rowBytes(op.getInput()) + rowBytes(op), 0, false);
  b.command(op.getLoc(), name(role), "grouped_gemm",
            {{"x", *x}, {"w", weight}, {"y", result(op, kind, role)}}, constants,
            b.constant(heads * ((tiles + kTilesATask - 1) / kTilesATask)), {}, cost);
  return success();
}

LogicalResult StepLowering::lowerOp(LatentAppendOp op) {
  layer = cacheLayer.lookup(op.getCache());
  cacheLayer[op.getResult()] = layer;
  KvType kv = op.getCache().getType();
  SmallVector<std::pair<StringRef, Value>> bindings;
  for (auto [role, value] : {std::pair<StringRef, Value>{"absorbed", op.getAbsorbed()},
                             {"query", op.getQuery()},
                             {"latent", op.getLatent()},
                             {"key", op.getKey()}}) {
    FailureOr<Value> memory = whole(op, value);
    if (failed(memory))
      return failure();
    bindings.push_back({role, *memory});
  }
  bindings.push_back({"angles", rows(op.getAngles()).memory});
  bindings.push_back({"queries", result(op.getQueries(), RowKind::Token, "queries")});
  int64_t heads = op.getHeads();
  b.command(op.getLoc(), name("latent_append"), "latent_append", bindings,
            {{"heads", heads},
             {"latent", kv.getValueSize()},
             {"rotary", kv.getKeySize() - kv.getValueSize()},
             {"stride", dim(op.getQuery(), 1) / heads},
             {"interleaved", int64_t(op.getInterleaved())},
             {"kv_element", static_cast<int64_t>(kv.getElement())}},
            b.perRow(RowKind::Token, 1), {kvPrefixBytes[layer]});
  return success();
}
