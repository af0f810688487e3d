//===- Interface.cpp - what the graph takes and gives -------------------------===//
#include "compiler/import/onnx/Importer.h"

using namespace llmc;
using namespace llmc::onnx;
using namespace mlir;
using llvm::StringRef;
using llvm::Twine;

Type Importer::declaredType(const ValueView &value,
                            llvm::function_ref<LogicalResult(const Twine &)> report) {
  if (!value.isTensor && !value.isSequence && !value.isOptional) {
    (void)report("is neither a tensor nor a sequence of them; others are not supported");
    return {};
  }
  Type element = mlirElementType(builder.getContext(), value.type);
  if (!element) {
    (void)report("has elements of " + dataTypeName(value.type) + ", which is not supported");
    return {};
  }
  Type type = UnrankedTensorType::get(element);
  if (value.isSequence)
    type = graph::SequenceType::get(builder.getContext(), element);
  if (value.isOptional)
    type = graph::OptionalType::get(builder.getContext(), type);
  return type;
}

FailureOr<DictionaryAttr> Importer::addArgument(const ValueView &input, const TensorView *fallback,
                                                Block &entry, Scope &scope) {
  Location loc = NameLoc::get(builder.getStringAttr(input.name));
  auto report = [&](const Twine &why) { return fail(loc, "input '" + input.name + "' " + why); };
  if (input.name.empty())
    return fail(loc, "the graph has an input without a name");
  Type type = declaredType(input, report);
  if (!type)
    return failure();
  Type element = Node::elementOf(type);
  Dims dims;
  llvm::SmallVector<Attribute> names;
  bool hasShape = input.shape && input.isTensor;
  if (hasShape) {
    for (const DimView &dim : *input.shape) {
      // Some exporters write -1 for a dimension that they don't know.
      if (dim.value && *dim.value < -1)
        return report("has the dimension " + Twine(*dim.value));
      bool isNumber = dim.value && *dim.value >= 0;
      dims.push_back(isNumber             ? Dim::number(*dim.value)
                     : !dim.param.empty() ? shapes.named(dim.param)
                                          : Dim());
      names.push_back(builder.getStringAttr(isNumber ? StringRef() : dim.param));
    }
    type = rankedType(dims, element);
    if (!type)
      return report("has more than 2^60 elements");
  }
  llvm::SmallVector<NamedAttribute> attributes{
      builder.getNamedAttr(graph::kNameAttr, builder.getStringAttr(input.name))};
  if (hasShape)
    attributes.push_back(builder.getNamedAttr(graph::kDimsAttr, builder.getArrayAttr(names)));
  if (fallback) {
    Value value = materialize(*fallback, loc, /*isNamed=*/true, report);
    if (!value)
      return failure();
    Operation *op = value.getDefiningOp();
    attributes.push_back(builder.getNamedAttr(
        "graph.default", isa<graph::ConstantOp>(op)
                             ? Attribute(cast<graph::ConstantOp>(op).getValue())
                             : op->getAttrDictionary()));
    shapes.forget(value);
    op->erase();
  }
  Value argument = entry.addArgument(type, loc);
  if (hasShape)
    shapes.declare(argument, std::move(dims));
  if (!scope.values.try_emplace(input.name, argument).second)
    return report("is defined twice");
  return builder.getDictionaryAttr(attributes);
}

LogicalResult Importer::addArguments(func::FuncOp function, Scope &scope) {
  // The function's type is made once: one for each argument more would take quadratic memory.
  Block &entry = function.getBody().front();
  llvm::SmallVector<Attribute> attributes;
  for (const ValueView &input : model.graph.inputs) {
    const TensorView *fallback = scope.initializers.lookup(input.name);
    // Before IR version 4 every initializer had to be listed as an input and was a constant.
    if (fallback && (model.irVersion < 4 || options.foldDefaults))
      continue;
    scope.initializers.erase(input.name);
    FailureOr<DictionaryAttr> dictionary = addArgument(input, fallback, entry, scope);
    if (failed(dictionary))
      return failure();
    attributes.push_back(*dictionary);
  }
  function.setFunctionType(builder.getFunctionType(entry.getArgumentTypes(), {}));
  function.setArgAttrsAttr(builder.getArrayAttr(attributes));
  return success();
}

LogicalResult Importer::addResults(func::FuncOp function, Scope &scope) {
  if (model.graph.outputs.empty())
    return fail(function.getLoc(), "the graph has no outputs");
  llvm::SmallVector<Value> values;
  llvm::SmallVector<Type> types;
  llvm::SmallVector<Attribute> resultAttrs;
  for (const ValueView &output : model.graph.outputs) {
    Location loc = NameLoc::get(builder.getStringAttr(output.name));
    auto report = [&](const Twine &why) {
      return fail(loc, "output '" + output.name + "' of the graph: " + why);
    };
    auto value = lookup(output.name, scope, loc, report);
    if (failed(value))
      return failure();
    if (!*value)
      return report("it has no value");
    Type type = value->getType();
    Type element = Node::elementOf(type);
    llvm::SmallVector<NamedAttribute> attributes{
        builder.getNamedAttr(graph::kNameAttr, builder.getStringAttr(output.name))};
    if (output.isTensor && output.type != DataType::Undefined &&
        mlirElementType(builder.getContext(), output.type) != element) {
      std::string text;
      llvm::raw_string_ostream(text) << element;
      return report("it is declared as " + dataTypeName(output.type) + " but computed as " + text);
    }
    if (output.shape && output.isTensor) {
      llvm::SmallVector<Attribute> names;
      for (const DimView &dim : *output.shape)
        names.push_back(builder.getStringAttr(dim.value ? StringRef() : dim.param));
      attributes.push_back(builder.getNamedAttr(graph::kDimsAttr, builder.getArrayAttr(names)));
      // What the operators say holds; an exporter's annotation may be wrong.
      auto ranked = dyn_cast<RankedTensorType>(type);
      bool agrees = !ranked || ranked.getRank() == static_cast<int64_t>(output.shape->size());
      for (size_t i = 0; agrees && ranked && i < output.shape->size(); ++i) {
        auto declared = (*output.shape)[i].value;
        agrees = !declared || *declared < 0 || ranked.isDynamicDim(i) ||
                 *declared == ranked.getDimSize(i);
      }
      if (!agrees)
        emitWarning(loc) << fileName << ": output '" << output.name
                         << "' is declared with a shape that is not the computed " << ranked
                         << "; the declaration is ignored";
    }
    values.push_back(*value);
    types.push_back(type);
    resultAttrs.push_back(builder.getDictionaryAttr(attributes));
  }
  func::ReturnOp::create(builder, function.getLoc(), values);
  function.setFunctionType(builder.getFunctionType(function.getFunctionType().getInputs(), types));
  function.setResAttrsAttr(builder.getArrayAttr(resultAttrs));
  return success();
}
