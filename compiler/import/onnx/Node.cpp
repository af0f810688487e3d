//===- Node.cpp - an ONNX node as the operator families see it ----------------===//
#include "compiler/import/onnx/Node.h"

#include "compiler/import/onnx/Importer.h"

using namespace llmc::onnx;
using namespace mlir;
using llvm::StringRef;
using llvm::Twine;

Type llmc::onnx::mlirElementType(MLIRContext *context, DataType type) {
  auto integer = [&](unsigned width) -> Type { return IntegerType::get(context, width); };
  auto natural = [&](unsigned width) -> Type {
    return IntegerType::get(context, width, IntegerType::Unsigned);
  };
  switch (type) {
  case DataType::float_:
    return Float32Type::get(context);
  case DataType::float16_:
    return Float16Type::get(context);
  case DataType::bfloat16_:
    return BFloat16Type::get(context);
  case DataType::double_:
    return Float64Type::get(context);
  case DataType::float8e4m3fn_:
    return Float8E4M3FNType::get(context);
  case DataType::float8e4m3fnuz_:
    return Float8E4M3FNUZType::get(context);
  case DataType::float8e5m2_:
    return Float8E5M2Type::get(context);
  case DataType::float8e5m2fnuz_:
    return Float8E5M2FNUZType::get(context);
  case DataType::float8e8m0_:
    return Float8E8M0FNUType::get(context);
  case DataType::float4e2m1_:
    return Float4E2M1FNType::get(context);
  case DataType::bool_:
    return integer(1);
  case DataType::int8_:
    return integer(8);
  case DataType::int16_:
    return integer(16);
  case DataType::int32_:
    return integer(32);
  case DataType::int64_:
    return integer(64);
  case DataType::int4_:
    return integer(4);
  case DataType::int2_:
    return integer(2);
  case DataType::uint8_:
    return natural(8);
  case DataType::uint16_:
    return natural(16);
  case DataType::uint32_:
    return natural(32);
  case DataType::uint64_:
    return natural(64);
  case DataType::uint4_:
    return natural(4);
  case DataType::uint2_:
    return natural(2);
  default:
    return {};
  }
}

Node::Node(Importer &importer, const NodeView &view, Scope &scope, const Frame &frame, Location loc,
           int64_t version)
    : view(view), scope(scope), frame(frame), importer(importer), loc(loc), version(version),
      builder(importer.builder) {}

Type Node::elementType(unsigned i) const {
  Value value = input(i);
  return value ? elementOf(value.getType()) : Type();
}

Type Node::elementOf(Type type) {
  if (auto optional = mlir::dyn_cast<graph::OptionalType>(type))
    type = optional.getContent();
  if (auto sequence = mlir::dyn_cast<graph::SequenceType>(type))
    return sequence.getElement();
  return mlir::cast<TensorType>(type).getElementType();
}

std::optional<int64_t> Node::rank(unsigned i) const {
  Value value = input(i);
  auto type = value ? mlir::dyn_cast<RankedTensorType>(value.getType()) : RankedTensorType();
  return type ? std::optional(type.getRank()) : std::nullopt;
}

const ShapeInference &Node::shapes() const { return importer.shapes; }

LogicalResult Node::fail(const Twine &reason) {
  if (hasFailed)
    return failure();
  hasFailed = true;
  std::string name =
      (frame.prefix + (view.name.empty() && !view.outputs.empty() ? view.outputs[0] : view.name))
          .str();
  return importer.fail(loc, "node '" + name + "' (" +
                                (view.domain.empty() ? Twine() : view.domain + ".") + view.opType +
                                "): " + reason);
}

void Node::set(unsigned i, Value value) {
  if (hasFailed || !hasOutput(i))
    return;
  if (!scope.values.try_emplace(view.outputs[i], value).second)
    (void)fail("its output '" + view.outputs[i] + "' is defined already");
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

const AttributeView *Node::attribute(StringRef name) {
  asked.insert(name);
  const AttributeView *found = nullptr;
  for (const AttributeView &attribute : view.attributes) {
    if (attribute.name != name)
      continue;
    if (found) {
      (void)fail("attribute '" + name + "' is given twice");
      return nullptr;
    }
    found = &attribute;
  }
  if (!found || found->reference.empty())
    return found;
  // The attribute of the enclosing function; if the call has none, this node has none.
  auto outer = frame.attributes.find(found->reference);
  if (outer == frame.attributes.end())
    return nullptr;
  AttributeView value = outer->second;
  value.name = found->name;
  return &(bound[name] = value);
}

bool Node::has(StringRef name) { return attribute(name) != nullptr; }

void Node::checkAttributes() {
  for (const AttributeView &attribute : view.attributes)
    if (!asked.contains(attribute.name)) {
      (void)fail("attribute '" + attribute.name + "' is not known for this operator in version " +
                 Twine(version) + " of its operator set");
      return;
    }
}

int64_t Node::intAttr(StringRef name, int64_t fallback) {
  const AttributeView *found = attribute(name);
  if (!found)
    return fallback;
  if (found->kind != AttributeView::Int) {
    (void)fail("attribute '" + name + "' is not an integer");
    return fallback;
  }
  return found->i;
}

int64_t Node::requiredInt(StringRef name) {
  if (!has(name))
    (void)fail("attribute '" + name + "' is missing");
  return intAttr(name, 0);
}

float Node::floatAttr(StringRef name, float fallback) {
  const AttributeView *found = attribute(name);
  if (!found)
    return fallback;
  if (found->kind != AttributeView::Float) {
    (void)fail("attribute '" + name + "' is not a float");
    return fallback;
  }
  return found->f;
}

StringRef Node::stringAttr(StringRef name, StringRef fallback) {
  const AttributeView *found = attribute(name);
  if (!found)
    return fallback;
  if (found->kind != AttributeView::String) {
    (void)fail("attribute '" + name + "' is not a string");
    return fallback;
  }
  return found->s;
}

std::optional<llvm::SmallVector<int64_t>> Node::intsAttr(StringRef name) {
  const AttributeView *found = attribute(name);
  if (!found)
    return std::nullopt;
  auto values = found->ints();
  if (!values) {
    (void)fail(llvm::toString(values.takeError()));
    return std::nullopt;
  }
  return std::move(*values);
}

std::optional<llvm::SmallVector<float>> Node::floatsAttr(StringRef name) {
  const AttributeView *found = attribute(name);
  if (!found)
    return std::nullopt;
  auto values = found->floats();
  if (!values) {
    (void)fail(llvm::toString(values.takeError()));
    return std::nullopt;
  }
  return std::move(*values);
}

std::optional<std::vector<StringRef>> Node::stringsAttr(StringRef name) {
  const AttributeView *found = attribute(name);
  if (!found)
    return std::nullopt;
  auto values = found->strings();
  if (!values) {
    (void)fail(llvm::toString(values.takeError()));
    return std::nullopt;
  }
  return std::move(*values);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

llvm::SmallVector<Value> Node::library(StringRef kernel, Type element, llvm::ArrayRef<Type> results,
                                       llvm::ArrayRef<Value> operands,
                                       llvm::ArrayRef<int64_t> integers,
                                       llvm::ArrayRef<double> reals) {
  llvm::SmallVector<Type> types;
  for (Type result : results)
    types.push_back(mlir::isa<TensorType, graph::SequenceType, graph::OptionalType>(result)
                        ? result
                        : Type(UnrankedTensorType::get(result)));
  llvm::SmallVector<Value> values;
  if (hasFailed) {
    for (Type type : types)
      values.push_back(placeholder(elementOf(type)));
    return values;
  }
  llvm::SmallVector<bool> present;
  for (Value operand : operands) {
    present.push_back(static_cast<bool>(operand));
    if (operand)
      values.push_back(operand);
  }
  auto op = graph::LibraryOp::create(builder, loc, types, builder.getStringAttr(kernel), values,
                                     TypeAttr::get(element), builder.getDenseBoolArrayAttr(present),
                                     builder.getDenseI64ArrayAttr(integers),
                                     builder.getDenseF64ArrayAttr(reals));
  return llvm::SmallVector<Value>(op.getOutputs());
}

Value Node::shapeOf(Value x) {
  return emit<graph::ShapeOp>(builder.getI64Type(), x, uint64_t(0), IntegerAttr());
}

Value Node::reshape(Value x, llvm::ArrayRef<int64_t> shape) {
  return emit<graph::ReshapeOp>(elementOf(x.getType()), x, indices(shape), false);
}

Value Node::reduce(graph::ReduceKind kind, Value x, Value axes, bool keepdims) {
  return emit<graph::ReduceOp>(elementOf(x.getType()), kind, x, axes, keepdims, false);
}

void Node::infer(Operation *op) {
  if (hasFailed)
    return;
  (void)importer.shapes.infer(op, [&](const Twine &reason) { return fail(reason); });
}

Value Node::placeholder(Type element) {
  // Nothing of it survives: the import has failed. It keeps handlers free of checks.
  return constant(
      DenseElementsAttr::get(RankedTensorType::get({0}, element), llvm::ArrayRef<Attribute>()));
}

Value Node::constant(ElementsAttr value) {
  auto op = graph::ConstantOp::create(builder, loc, value);
  infer(op);
  return op.getResult();
}

Value Node::indices(llvm::ArrayRef<int64_t> values) {
  auto type = RankedTensorType::get({static_cast<int64_t>(values.size())}, builder.getI64Type());
  return constant(DenseElementsAttr::get(type, values));
}

Value Node::scalar(Type element, double value) {
  auto type = RankedTensorType::get({}, element);
  if (auto floatType = dyn_cast<FloatType>(element)) {
    APFloat number(value);
    bool losesInfo;
    number.convert(floatType.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
    return constant(DenseElementsAttr::get(type, number));
  }
  unsigned width = element.getIntOrFloatBitWidth();
  return constant(DenseElementsAttr::get(
      type, APInt(width, static_cast<uint64_t>(static_cast<int64_t>(value)), /*isSigned=*/true,
                  /*implicitTrunc=*/true)));
}

Value Node::unary(graph::UnaryKind kind, Value x) {
  bool isTest = kind == graph::UnaryKind::IsNaN || kind == graph::UnaryKind::IsInf;
  return emit<graph::UnaryOp>(
      isTest ? builder.getI1Type() : mlir::cast<TensorType>(x.getType()).getElementType(), kind, x);
}

Value Node::binary(graph::BinaryKind kind, Value a, Value b) {
  return emit<graph::BinaryOp>(mlir::cast<TensorType>(a.getType()).getElementType(), kind, a, b);
}

Value Node::compare(graph::CompareKind kind, Value a, Value b) {
  return emit<graph::CompareOp>(builder.getI1Type(), kind, a, b);
}

Value Node::cast(Value x, Type element) {
  if (mlir::cast<TensorType>(x.getType()).getElementType() == element)
    return x;
  return emit<graph::CastOp>(element, x);
}
