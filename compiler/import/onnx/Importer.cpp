//===- Importer.cpp - names, order, functions, arguments ----------------------===//
#include "compiler/import/onnx/Importer.h"

#include "compiler/import/onnx/Operators.h"
#include "dialects/graph/NodeLocation.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/Path.h"

using namespace llmc;
using namespace llmc::onnx;
using namespace mlir;
using llvm::StringRef;
using llvm::Twine;

namespace {
/// Branches in branches and functions in functions; deeper than any exporter nests them, and
/// shallow enough for the stack.
constexpr unsigned maxGraphDepth = 32;
constexpr unsigned maxCallDepth = 128;
} // namespace

Importer::Importer(std::string path, llvm::ArrayRef<uint8_t> file, const ModelView &model,
                   MLIRContext *context, const OnnxImportOptions &options)
    : builder(context), path(path), fileName(llvm::sys::path::filename(path)), model(model),
      options(options), tensors(path, file) {}

LogicalResult Importer::fail(Location loc, const Twine &message) {
  emitError(loc) << fileName << ": " << message;
  return failure();
}

LogicalResult Importer::checkOpsets(Frame &frame, llvm::ArrayRef<OpsetView> opsets,
                                    StringRef where) {
  Location loc = UnknownLoc::get(builder.getContext());
  for (const OpsetView &opset : opsets) {
    auto [entry, isNew] = frame.opsets.try_emplace(opset.domain, opset.version);
    if (!isNew && entry->second != opset.version)
      return fail(loc, where + " imports domain '" + opset.domain + "' in versions " +
                           Twine(entry->second) + " and " + Twine(opset.version));
    if (opset.version < 1 || (opset.domain.empty() && opset.version > OperatorTable::newestOpset))
      return fail(loc, where + " needs version " + Twine(opset.version) + " of operator set '" +
                           (opset.domain.empty() ? StringRef("ai.onnx") : opset.domain) +
                           "'; known are 1 to " + Twine(OperatorTable::newestOpset) +
                           ". Export with opset_version=" + Twine(OperatorTable::newestOpset) +
                           " or lower");
  }
  return success();
}

static std::string functionKey(StringRef domain, StringRef name, StringRef overload) {
  return (domain + "\n" + name + "\n" + overload).str();
}

LogicalResult Importer::indexFunctions() {
  Location loc = UnknownLoc::get(builder.getContext());
  for (const FunctionView &function : model.functions) {
    if (!functions
             .try_emplace(functionKey(function.domain, function.name, function.overload), &function)
             .second)
      return fail(loc, "local function '" + function.name + "' is defined twice");
    if (!OperatorTable::get().rows(function.domain, function.name).empty())
      return fail(loc, "local function '" + function.name +
                           "' has the name of a standard operator; rename one of them");
  }
  return success();
}

LogicalResult Importer::declareInitializers(const GraphView &graph, Scope &scope) {
  Location loc = UnknownLoc::get(builder.getContext());
  if (graph.hasSparseInitializers)
    return fail(loc, "graph '" + graph.name +
                         "' has sparse initializers, which are not supported; "
                         "store them as dense tensors");
  for (const TensorView &tensor : graph.initializers) {
    if (tensor.name.empty())
      return fail(loc, "graph '" + graph.name + "' has an initializer without a name");
    if (!scope.initializers.try_emplace(tensor.name, &tensor).second)
      return fail(loc, "initializer '" + tensor.name + "' is defined twice");
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

FailureOr<Value> Importer::lookup(StringRef name, Scope &scope, Location user,
                                  llvm::function_ref<LogicalResult(const Twine &)> report) {
  for (Scope *at = &scope; at; at = at->outer) {
    if (auto found = at->values.find(name); found != at->values.end())
      return found->second;
    if (auto found = at->initializers.find(name); found != at->initializers.end()) {
      // Inside of a branch or body: for uses after it, too.
      OpBuilder::InsertionGuard guard(builder);
      if (builder.getInsertionBlock() != entryBlock)
        builder.setInsertionPointToStart(entryBlock);
      Value value = materialize(*found->second, NameLoc::get(builder.getStringAttr(name)),
                                /*isNamed=*/true, report);
      if (!value)
        return failure();
      at->values[name] = value;
      return value;
    }
    if (auto found = at->later.find(name); found != at->later.end())
      return report("it uses '" + name + "', which the later node '" + found->second +
                    "' defines; nodes must be in topological order, without cycles");
  }
  return report("it uses '" + name + "', which nothing defines");
}

LogicalResult Importer::resolveInputs(Node &node) {
  for (StringRef name : node.view.inputs) {
    if (name.empty()) {
      node.inputs.push_back({});
      continue;
    }
    auto value =
        lookup(name, node.scope, node.loc, [&](const Twine &why) { return node.fail(why); });
    if (failed(value))
      return failure();
    node.inputs.push_back(*value);
  }
  // An exporter may spell out a missing tail as empty names.
  while (!node.inputs.empty() && !node.inputs.back())
    node.inputs.pop_back();
  return success();
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

LogicalResult Importer::importNodes(llvm::ArrayRef<NodeView> nodes, Scope &scope,
                                    const Frame &frame) {
  for (const NodeView &node : nodes)
    for (StringRef output : node.outputs)
      if (!output.empty())
        scope.later.try_emplace(output, node.name.empty() ? output : node.name);
  unsigned index = 0;
  for (const NodeView &node : nodes) {
    if (failed(importNode(node, index++, scope, frame)))
      return failure();
    for (StringRef output : node.outputs)
      scope.later.erase(output);
  }
  return success();
}

LogicalResult Importer::importNode(const NodeView &view, unsigned index, Scope &scope,
                                   const Frame &frame) {
  std::string name =
      frame.prefix +
      (view.name.empty() && !view.outputs.empty() ? view.outputs[0] : view.name).str();
  Location loc = graph::nodeLocation(builder.getContext(), fileName, index, view.opType, name);
  auto opset = frame.opsets.find(view.domain);
  // Before IR version 3 a model had no opset_import: it is version 1.
  int64_t version = opset != frame.opsets.end() ? opset->second : 1;
  Node node(*this, view, scope, frame, loc, version);
  if (++numNodes > options.maxNodes)
    return node.fail("more than " + Twine(options.maxNodes) +
                     " nodes once local functions are inlined");
  for (StringRef output : view.outputs)
    if (!output.empty() && (scope.values.contains(output) || scope.initializers.contains(output)))
      return node.fail("its output '" + output + "' is defined already");
  if (failed(resolveInputs(node)))
    return failure();
  if (auto function = functions.find(functionKey(view.domain, view.opType, view.overload));
      function != functions.end())
    return inlineFunction(node, *function->second);
  return importOperator(node);
}

LogicalResult Importer::importOperator(Node &node) {
  const OperatorTable &table = OperatorTable::get();
  const NodeView &view = node.view;
  llvm::ArrayRef<Operator> rows = table.rows(view.domain, view.opType);
  if (rows.empty()) {
    if (!table.knowsDomain(view.domain))
      return node.fail("unknown operator: domain '" + view.domain +
                       "' is not known and the model has no function of this name; supported are "
                       "'ai.onnx' (opset 1 to " +
                       Twine(OperatorTable::newestOpset) +
                       "), 'com.microsoft', some of 'ai.onnx.ml' and local functions");
    StringRef like = table.nearest(view.domain, view.opType);
    return node.fail("unsupported operator in opset " + Twine(node.version) +
                     (like.empty() ? Twine() : "; did you mean '" + like + "'?") +
                     (like.empty()
                          ? Twine("; give it as a local function of supported operators, or "
                                  "export without it")
                          : Twine()));
  }
  const Operator *row = nullptr;
  for (const Operator &candidate : rows)
    if (candidate.since <= node.version)
      row = &candidate;
  if (!row)
    return node.fail("not supported in opset " + Twine(node.version) + "; supported from opset " +
                     Twine(rows.front().since) + " on");
  for (unsigned i = 0; i < row->minInputs; ++i)
    if (!node.input(i))
      return node.fail("input " + Twine(i) + " is missing; it is required");
  if (node.numInputs() > row->maxInputs)
    return node.fail(Twine(node.numInputs()) + " inputs; there are at most " +
                     Twine(row->maxInputs) + " in opset " + Twine(node.version));
  if (node.numOutputs() > row->maxOutputs)
    return node.fail(Twine(node.numOutputs()) + " outputs; there are at most " +
                     Twine(row->maxOutputs));
  if (!row->takesAny)
    for (unsigned i = 0; i < node.numInputs(); ++i)
      if (node.input(i) && !isa<TensorType>(node.input(i).getType()))
        return node.fail("input " + Twine(i) + " is not a tensor");
  if (failed(row->handler(node)))
    return failure();
  node.checkAttributes();
  for (unsigned i = 0; i < node.numOutputs() && !node.failed(); ++i)
    if (node.hasOutput(i) && !node.scope.values.contains(view.outputs[i]))
      return node.fail("output " + Twine(i) + " ('" + view.outputs[i] + "') is not supported");
  return failure(node.failed());
}

LogicalResult Importer::inlineFunction(Node &node, const FunctionView &function) {
  for (const Frame *at = &node.frame; at; at = at->caller)
    if (at->function == &function)
      return node.fail("recursive function: '" + function.name + "' calls itself");
  if (node.frame.depth >= maxCallDepth)
    return node.fail("functions call each other more than " + Twine(maxCallDepth) + " deep");
  Frame frame;
  frame.function = &function;
  frame.caller = &node.frame;
  frame.depth = node.frame.depth + 1;
  frame.prefix = node.frame.prefix + node.view.name.str() + "/";
  if (failed(checkOpsets(frame, function.opsets, ("local function '" + function.name + "'").str())))
    return failure();
  for (const AttributeView &attribute : function.defaults)
    frame.attributes[attribute.name] = attribute;
  for (const AttributeView &attribute : node.view.attributes)
    if (llvm::is_contained(function.attributes, attribute.name) ||
        frame.attributes.contains(attribute.name))
      if (const AttributeView *value = node.attribute(attribute.name))
        frame.attributes[attribute.name] = *value;
  node.checkAttributes();
  if (node.failed())
    return failure();
  if (node.numInputs() > function.inputs.size() || node.numOutputs() > function.outputs.size())
    return node.fail("function '" + function.name + "' has " + Twine(function.inputs.size()) +
                     " inputs and " + Twine(function.outputs.size()) + " outputs");
  Scope scope;
  for (auto [i, name] : llvm::enumerate(function.inputs))
    if (!scope.values.try_emplace(name, node.input(static_cast<unsigned>(i))).second)
      return node.fail("function '" + function.name + "' has two inputs '" + name + "'");
  if (failed(importNodes(function.nodes, scope, frame)))
    return failure();
  for (unsigned i = 0; i < node.numOutputs(); ++i) {
    if (!node.hasOutput(i))
      continue;
    auto value = lookup(function.outputs[i], scope, node.loc, [&](const Twine &why) {
      return node.fail("output of function '" + function.name + "': " + why);
    });
    if (failed(value))
      return failure();
    if (!*value)
      return node.fail("output '" + function.outputs[i] + "' of function '" + function.name +
                       "' has no value");
    node.set(i, *value);
  }
  return failure(node.failed());
}

FailureOr<llvm::SmallVector<Value>> Importer::inlineBranch(Node &node, const GraphView &graph) {
  return inlineBody(node, graph, {});
}

FailureOr<llvm::SmallVector<Value>> Importer::inlineBody(Node &node, const GraphView &graph,
                                                         llvm::ArrayRef<Value> arguments) {
  if (graphDepth >= maxGraphDepth)
    return node.fail("graphs in graphs more than " + Twine(maxGraphDepth) + " deep");
  ++graphDepth;
  llvm::scope_exit leave([&] { --graphDepth; });
  Scope scope;
  scope.outer = &node.scope;
  if (arguments.size() != graph.inputs.size())
    return node.fail("its body '" + graph.name + "' has " + Twine(graph.inputs.size()) +
                     " inputs, not " + Twine(arguments.size()));
  for (auto [input, value] : llvm::zip_equal(graph.inputs, arguments))
    if (!scope.values.try_emplace(input.name, value).second)
      return node.fail("its body '" + graph.name + "' has two inputs '" + input.name + "'");
  if (failed(declareInitializers(graph, scope)) ||
      failed(importNodes(graph.nodes, scope, node.frame)))
    return failure();
  llvm::SmallVector<Value> values;
  for (const ValueView &output : graph.outputs) {
    auto value = lookup(output.name, scope, node.loc, [&](const Twine &why) {
      return node.fail("output of its branch '" + graph.name + "': " + why);
    });
    if (failed(value))
      return failure();
    if (!*value)
      return node.fail("output '" + output.name + "' of its branch has no value");
    values.push_back(*value);
  }
  return values;
}

//===----------------------------------------------------------------------===//
// The module
//===----------------------------------------------------------------------===//

OwningOpRef<ModuleOp> Importer::run() {
  MLIRContext *context = builder.getContext();
  Location loc = FileLineColLoc::get(context, fileName, 0, 0);
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  builder.setInsertionPointToEnd(module->getBody());
  auto function = func::FuncOp::create(builder, loc, "main", builder.getFunctionType({}, {}));
  entryBlock = function.addEntryBlock();
  builder.setInsertionPointToEnd(entryBlock);

  Frame frame;
  Scope scope;
  if (failed(checkOpsets(frame, model.opsets, "the model")) || failed(indexFunctions()) ||
      failed(declareInitializers(model.graph, scope)))
    return nullptr;
  if (failed(addArguments(function, scope)))
    return nullptr;
  if (failed(importNodes(model.graph.nodes, scope, frame)) || failed(addResults(function, scope)))
    return nullptr;

  llvm::SmallVector<NamedAttribute> opsets;
  for (const auto &entry : frame.opsets)
    opsets.push_back(builder.getNamedAttr(entry.getKey().empty() ? "ai.onnx" : entry.getKey(),
                                          builder.getI64IntegerAttr(entry.getValue())));
  llvm::sort(opsets, [](NamedAttribute a, NamedAttribute b) {
    return a.getName().getValue() < b.getName().getValue();
  });
  StringRef folder = llvm::sys::path::parent_path(path);
  module->getOperation()->setAttr(graph::kFolderAttr, builder.getStringAttr(folder));
  module->getOperation()->setAttr(
      "graph.model",
      builder.getDictionaryAttr(
          {builder.getNamedAttr(
               "producer", builder.getStringAttr(model.producer + " " + model.producerVersion)),
           builder.getNamedAttr("ir_version", builder.getI64IntegerAttr(model.irVersion)),
           builder.getNamedAttr("opset", builder.getDictionaryAttr(opsets))}));
  return module;
}
