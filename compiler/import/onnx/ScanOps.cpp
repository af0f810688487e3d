//===- ScanOps.cpp - Scan as a loop -------------------------------------------===//
#include "compiler/import/onnx/Importer.h"
#include "compiler/import/onnx/Operators.h"

using namespace llmc::onnx;
using namespace llmc::graph;
using namespace mlir;
using llvm::Twine;

namespace {

/// What a Scan's attributes say of its inputs and outputs.
struct ScanSpec {
  llvm::SmallVector<int64_t> inputAxes, inputDirections, outputAxes, outputDirections;
  size_t numScans = 0, numStates = 0;
};

/// Emits a loop over dimension spec.inputAxes of the scanned values. Results: the last states,
/// then what was gathered.
FailureOr<llvm::SmallVector<Value>> scanLoop(Node &node, const GraphView &body,
                                             llvm::ArrayRef<Value> states,
                                             llvm::ArrayRef<Value> scanned, const ScanSpec &spec) {
  OpBuilder &builder = node.builder;
  Type i64 = builder.getI64Type();
  Value trips =
      node.emit<GatherOp>(i64, node.shapeOf(scanned[0]),
                          node.scalar(i64, static_cast<double>(spec.inputAxes[0])), uint64_t(0));
  Region region;
  Block &block = region.emplaceBlock();
  block.addArgument(RankedTensorType::get({}, i64), node.loc);
  block.addArgument(RankedTensorType::get({}, builder.getI1Type()), node.loc);
  llvm::SmallVector<Type> types;
  for (auto [i, state] : llvm::enumerate(states)) {
    // States keep their shape.
    Type type = state.getType();
    if (auto ranked = dyn_cast<RankedTensorType>(type))
      type =
          RankedTensorType::get(llvm::SmallVector<int64_t>(ranked.getRank(), ShapedType::kDynamic),
                                ranked.getElementType());
    types.push_back(type);
    block.addArgument(type, node.loc);
  }
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&block);
    llvm::SmallVector<Value> arguments(block.args_begin() + 2, block.args_end());
    for (auto [i, value] : llvm::enumerate(scanned)) {
      Value at = block.getArgument(0);
      if (spec.inputDirections[i])
        at = node.sub(node.sub(trips, node.scalar(i64, 1)), at);
      arguments.push_back(node.emit<GatherOp>(Node::elementOf(value.getType()), value, at,
                                              static_cast<uint64_t>(spec.inputAxes[i])));
    }
    auto values = node.importer.inlineBody(node, body, arguments);
    if (failed(values))
      return failure();
    for (size_t i = states.size(); i < values->size(); ++i) {
      auto tensor = dyn_cast<TensorType>((*values)[i].getType());
      if (!tensor)
        return node.fail("it stacks what is not a tensor");
      types.push_back(tensor.hasRank() ? Type(RankedTensorType::get(
                                             llvm::SmallVector<int64_t>(tensor.getRank() + 1,
                                                                        ShapedType::kDynamic),
                                             tensor.getElementType()))
                                       : Type(UnrankedTensorType::get(tensor.getElementType())));
    }
    Value yes = node.scalar(builder.getI1Type(), 1);
    llvm::SmallVector<Value> yielded{yes};
    llvm::append_range(yielded, *values);
    YieldOp::create(builder, node.loc, yielded);
  }
  auto op =
      LoopOp::create(builder, node.loc, types, trips, Value(), states,
                     scanShapes(builder, body, llvm::ArrayRef(types).drop_front(states.size())));
  op.getBody().takeBody(region);
  return llvm::SmallVector<Value>(op.getResults());
}

llvm::SmallVector<int64_t> listOr(Node &node, llvm::StringRef name, size_t size) {
  auto list = node.intsAttr(name);
  if (!list)
    return llvm::SmallVector<int64_t>(size, 0);
  if (list->size() != size)
    (void)node.fail(name + " has " + Twine(list->size()) + " entries, not " + Twine(size));
  return std::move(*list);
}

LogicalResult scan(Node &node, unsigned firstInput) {
  const AttributeView *attribute = node.attribute("body");
  if (!attribute)
    return node.fail("attribute 'body' is missing");
  auto body = attribute->graph();
  if (!body)
    return node.fail(llvm::toString(body.takeError()));
  bool isBatched = firstInput == 1;
  ScanSpec spec;
  int64_t numScans = node.requiredInt("num_scan_inputs");
  size_t given = node.numInputs() - std::min(node.numInputs(), firstInput);
  if (numScans < 1 || static_cast<size_t>(numScans) > given)
    return node.fail("num_scan_inputs is " + Twine(numScans) + " of " + Twine(given) + " inputs");
  spec.numScans = static_cast<size_t>(numScans);
  spec.numStates = given - spec.numScans;
  if (body->outputs.size() != node.numOutputs() || body->outputs.size() < spec.numStates)
    return node.fail("its body has " + Twine(body->outputs.size()) + " outputs for " +
                     Twine(node.numOutputs()));
  size_t outputs = body->outputs.size() - spec.numStates;
  spec.inputDirections =
      listOr(node, isBatched ? "directions" : "scan_input_directions", spec.numScans);
  spec.inputAxes = isBatched ? llvm::SmallVector<int64_t>(spec.numScans, 0)
                             : listOr(node, "scan_input_axes", spec.numScans);
  spec.outputAxes = isBatched ? llvm::SmallVector<int64_t>(outputs, 0)
                              : listOr(node, "scan_output_axes", outputs);
  spec.outputDirections = isBatched ? llvm::SmallVector<int64_t>(outputs, 0)
                                    : listOr(node, "scan_output_directions", outputs);
  if (node.failed())
    return failure();
  llvm::SmallVector<Value> all;
  for (unsigned i = firstInput; i < node.numInputs(); ++i) {
    if (!node.input(i) || !isa<TensorType>(node.input(i).getType()))
      return node.fail("input " + Twine(i) + " is missing, or not a tensor");
    all.push_back(node.input(i));
  }
  llvm::ArrayRef<Value> states = llvm::ArrayRef(all).take_front(spec.numStates);
  llvm::ArrayRef<Value> scanned = llvm::ArrayRef(all).drop_front(spec.numStates);
  if (!isBatched) {
    auto results = scanLoop(node, *body, states, scanned, spec);
    if (failed(results))
      return failure();
    for (auto [i, value] : llvm::enumerate(*results)) {
      Type element = Node::elementOf(value.getType());
      size_t output = i - spec.numStates;
      if (i >= spec.numStates && spec.outputDirections[output])
        value = node.emit<SliceOp>(element, value, node.indices({-1}), node.indices({INT64_MIN}),
                                   node.indices({0}), node.indices({-1}));
      if (i >= spec.numStates && spec.outputAxes[output])
        value = node.libraryOne("move_axis", element, {value}, {0, spec.outputAxes[output]});
      node.set(static_cast<unsigned>(i), value);
    }
    return success();
  }
  // Version 8 has a batch in front of everything: a loop over it around the scan.
  if (node.input(0))
    return node.fail("sequence_lens is not supported before opset 9; pad, or export with opset 9");
  OpBuilder &builder = node.builder;
  Type i64 = builder.getI64Type();
  Value batch = node.emit<GatherOp>(i64, node.shapeOf(all[0]), node.scalar(i64, 0), uint64_t(0));
  Region region;
  Block &block = region.emplaceBlock();
  block.addArgument(RankedTensorType::get({}, i64), node.loc);
  block.addArgument(RankedTensorType::get({}, builder.getI1Type()), node.loc);
  llvm::SmallVector<Type> types;
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&block);
    llvm::SmallVector<Value> one;
    for (Value value : all)
      one.push_back(node.emit<GatherOp>(Node::elementOf(value.getType()), value,
                                        block.getArgument(0), uint64_t(0)));
    auto results = scanLoop(node, *body, llvm::ArrayRef(one).take_front(spec.numStates),
                            llvm::ArrayRef(one).drop_front(spec.numStates), spec);
    if (failed(results))
      return failure();
    llvm::SmallVector<Value> yielded{node.scalar(builder.getI1Type(), 1)};
    for (Value value : *results) {
      types.push_back(UnrankedTensorType::get(Node::elementOf(value.getType())));
      yielded.push_back(value);
    }
    YieldOp::create(builder, node.loc, yielded);
  }
  auto op = LoopOp::create(builder, node.loc, types, batch, Value(), ValueRange(), ArrayAttr());
  op.getBody().takeBody(region);
  for (auto [i, value] : llvm::enumerate(op.getResults()))
    node.set(static_cast<unsigned>(i), value);
  return success();
}

LogicalResult scan8(Node &node) { return scan(node, 1); }
LogicalResult scan9(Node &node) { return scan(node, 0); }

} // namespace

void llmc::onnx::addScanOps(OperatorTable &table) {
  table.add("", "Scan", {8, 0, variadic, variadic, scan8, /*takesAny=*/true});
  table.add("", "Scan", {9, 1, variadic, variadic, scan9});
}
