//===- ConstantOps.cpp - constants and generated tensors ----------------------===//
#include "compiler/import/onnx/Importer.h"
#include "compiler/import/onnx/Operators.h"

using namespace llmc::onnx;
using namespace llmc::graph;
using namespace mlir;
using llvm::Twine;

namespace {

/// Constant has exactly one attribute, and which one says what it holds.
LogicalResult constant(Node &node) {
  auto report = [&](const Twine &why) { return node.fail(why); };
  if (node.view.attributes.size() != 1)
    return node.fail("needs exactly one value, has " + Twine(node.view.attributes.size()));
  llvm::StringRef name = node.view.attributes.front().name;
  const AttributeView *value = node.attribute(name);
  if (!value)
    return node.fail("attribute '" + name + "' refers to one that the function call doesn't give");
  OpBuilder &builder = node.builder;
  if (name == "value") {
    auto tensor = value->tensor();
    if (!tensor)
      return node.fail(llvm::toString(tensor.takeError()));
    Value result = node.importer.materialize(*tensor, node.loc, /*isNamed=*/false, report);
    if (!result)
      return failure();
    node.set(0, result);
  } else if (name == "value_int") {
    node.set(0,
             node.constant(DenseElementsAttr::get(RankedTensorType::get({}, builder.getI64Type()),
                                                  llvm::ArrayRef(node.intAttr(name, 0)))));
  } else if (name == "value_float") {
    node.set(0, node.scalar(builder.getF32Type(), node.floatAttr(name, 0)));
  } else if (name == "value_ints") {
    if (auto values = node.intsAttr(name))
      node.set(0, node.indices(*values));
  } else if (name == "value_floats") {
    auto values = value->floats();
    if (!values)
      return node.fail(llvm::toString(values.takeError()));
    auto type = RankedTensorType::get({static_cast<int64_t>(values->size())}, builder.getF32Type());
    node.set(0, node.constant(DenseElementsAttr::get(type, llvm::ArrayRef<float>(*values))));
  } else {
    return node.fail("'" + name +
                     "' is not supported; supported: value, value_int, value_ints, value_float, "
                     "value_floats");
  }
  return success();
}

LogicalResult constantOfShape(Node &node) {
  ElementsAttr value;
  if (const AttributeView *attribute = node.attribute("value")) {
    auto tensor = attribute->tensor();
    if (!tensor)
      return node.fail(llvm::toString(tensor.takeError()));
    value = node.importer.elements(*tensor, [&](const Twine &why) { return node.fail(why); });
    if (!value)
      return failure();
    if (value.getNumElements() != 1)
      return node.fail("its value has " + Twine(value.getNumElements()) + " elements, not 1");
  } else {
    value = DenseElementsAttr::get(RankedTensorType::get({1}, node.builder.getF32Type()), 0.0f);
  }
  node.set(0, node.emit<FillOp>(value.getElementType(), node.input(0), value));
  return success();
}

LogicalResult range(Node &node) {
  // In what precision halves are summed: the graph operation computes start + i * step in f32.
  if (node.intAttr("stash_type", 1) != 1)
    return node.fail("stash_type is not 1 (float), which is what is supported");
  if (const Dims *step = node.shapes().elements(node.input(2));
      step && step->size() == 1 && (*step)[0].is(0))
    return node.fail("a step of 0");
  node.set(0, node.emit<RangeOp>(node.elementType(), node.input(0), node.input(1), node.input(2)));
  return success();
}

LogicalResult identity(Node &node) {
  node.set(0, node.input(0));
  return success();
}

/// At inference everything passes; the mask, if anyone asks, is all true.
LogicalResult dropout(Node &node) {
  node.ignore("ratio");
  node.ignore("seed");
  node.ignore("is_test");
  node.ignore("consumed_inputs");
  if (node.input(2)) {
    auto training = node.shapes().elements(node.input(2));
    if (!training || training->size() != 1 || !(*training)[0].is(0))
      return node.fail("training_mode is not a constant false");
  }
  node.set(0, node.input(0));
  if (node.hasOutput(1)) {
    Value shape =
        node.emit<ShapeOp>(node.builder.getI64Type(), node.input(0), uint64_t(0), IntegerAttr());
    auto one = DenseElementsAttr::get(RankedTensorType::get({1}, node.builder.getI1Type()), true);
    node.set(1, node.emit<FillOp>(node.builder.getI1Type(), shape, ElementsAttr(one)));
  }
  return success();
}

LogicalResult eyeLike(Node &node) {
  int64_t k = node.intAttr("k", 0);
  Type type = node.elementType();
  if (node.has("dtype")) {
    auto number = static_cast<DataType>(node.intAttr("dtype", 1));
    type = mlirElementType(node.builder.getContext(), number);
    if (!type)
      return node.fail("dtype " + dataTypeName(number) + " is not supported");
  }
  int64_t one = 1;
  if (auto floatType = dyn_cast<FloatType>(type))
    one = static_cast<int64_t>(
        llvm::APFloat(floatType.getFloatSemantics(), 1).bitcastToAPInt().getZExtValue());
  node.set(0, node.libraryOne("eye_like", type, node.input(0), {k, one}));
  return success();
}

} // namespace

void llmc::onnx::addConstantOps(OperatorTable &table) {
  table.add("", "Constant", {1, 0, 0, 1, constant});
  table.add("", "ConstantOfShape", {9, 1, 1, 1, constantOfShape});
  table.add("", "Range", {11, 3, 3, 1, range});
  table.add("", "Identity", {1, 1, 1, 1, identity, /*takesAny=*/true});
  table.add("", "Dropout", {7, 1, 1, 2, dropout});
  table.add("", "Dropout", {12, 1, 3, 2, dropout});
  table.add("", "EyeLike", {9, 1, 1, 1, eyeLike});
}
