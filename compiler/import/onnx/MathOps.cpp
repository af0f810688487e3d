//===- MathOps.cpp - element by element, and matrix products ------------------===//
#include "compiler/import/onnx/Operators.h"

using namespace llmc::onnx;
using namespace llmc::graph;
using namespace mlir;

namespace {

template <UnaryKind kind> LogicalResult unary(Node &node) {
  node.set(0, node.unary(kind, node.input(0)));
  return success();
}

template <BinaryKind kind> LogicalResult binary(Node &node) {
  node.set(0, node.binary(kind, node.input(0), node.input(1)));
  return success();
}

template <CompareKind kind> LogicalResult compare(Node &node) {
  node.set(0, node.compare(kind, node.input(0), node.input(1)));
  return success();
}

/// Min, Max, Sum of any number of tensors: from the left.
template <BinaryKind kind> LogicalResult fold(Node &node) {
  Value result = node.input(0);
  for (Value next : llvm::ArrayRef<Value>(node.inputs).drop_front()) {
    if (!next)
      return node.fail("an input in the middle is missing");
    result = node.binary(kind, result, next);
  }
  node.set(0, result);
  return success();
}

LogicalResult mean(Node &node) {
  if (!isa<FloatType>(node.elementType()))
    return node.fail("the mean of integers");
  Value total = node.input(0);
  for (Value next : llvm::ArrayRef<Value>(node.inputs).drop_front()) {
    if (!next)
      return node.fail("an input in the middle is missing");
    total = node.binary(BinaryKind::Add, total, next);
  }
  node.set(0, node.binary(BinaryKind::Div, total,
                          node.scalar(node.elementType(), static_cast<double>(node.numInputs()))));
  return success();
}

/// The exponent may have a type of its own; the result has the base's.
LogicalResult pow(Node &node) {
  Value base = node.input(0), exponent = node.input(1);
  Type baseType = node.elementType(0), exponentType = node.elementType(1);
  if (isa<IntegerType>(baseType) && isa<FloatType>(exponentType)) {
    // An integer to a fractional power: computed as a float, then truncated.
    Value power = node.binary(BinaryKind::Pow, node.cast(base, exponentType), exponent);
    node.set(0, node.cast(power, baseType));
    return success();
  }
  node.set(0, node.binary(BinaryKind::Pow, base, node.cast(exponent, baseType)));
  return success();
}

LogicalResult mod(Node &node) {
  bool isFMod = node.boolAttr("fmod", false);
  if (!isFMod && isa<FloatType>(node.elementType()) && node.version < 28)
    return node.fail("floats need fmod=1");
  node.set(0,
           node.binary(isFMod ? BinaryKind::FMod : BinaryKind::Mod, node.input(0), node.input(1)));
  return success();
}

LogicalResult bitShift(Node &node) {
  llvm::StringRef direction = node.stringAttr("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return node.fail("direction is '" + direction + "'; supported: LEFT, RIGHT");
  node.set(0, node.binary(direction == "LEFT" ? BinaryKind::ShiftLeft : BinaryKind::ShiftRight,
                          node.input(0), node.input(1)));
  return success();
}

LogicalResult isInf(Node &node) {
  bool negative = node.boolAttr("detect_negative", true);
  bool positive = node.boolAttr("detect_positive", true);
  Value x = node.input(0), result = node.unary(UnaryKind::IsInf, x);
  if (!negative || !positive) {
    // Of one sign only; of neither, nothing is.
    Value zero = node.scalar(node.elementType(), 0);
    CompareKind sign = positive ? CompareKind::Gt : CompareKind::Lt;
    result = node.binary(BinaryKind::And, result, node.compare(sign, x, zero));
    if (!positive && !negative)
      result = node.binary(BinaryKind::And, result, node.compare(CompareKind::Gt, x, zero));
  }
  node.set(0, result);
  return success();
}

LogicalResult where(Node &node) {
  node.set(0,
           node.emit<SelectOp>(node.elementType(1), node.input(0), node.input(1), node.input(2)));
  return success();
}

/// Bounds as attributes; without them there is no bound.
LogicalResult clip6(Node &node) {
  auto bound = [&](llvm::StringRef name) -> Value {
    return node.has(name) ? node.scalar(node.elementType(), node.floatAttr(name, 0)) : Value();
  };
  Value low = bound("min"), high = bound("max");
  node.set(0, node.emit<ClipOp>(node.elementType(), node.input(0), low, high));
  return success();
}

LogicalResult clip11(Node &node) {
  for (unsigned i : {1u, 2u})
    if (node.input(i) && node.rank(i).value_or(0) != 0)
      return node.fail("its bounds have to be scalars");
  node.set(0, node.emit<ClipOp>(node.elementType(), node.input(0), node.input(1), node.input(2)));
  return success();
}

/// To \p element with what the attributes say of 8-bit floats beyond their range.
LogicalResult castTo(Node &node, Type element) {
  bool saturate = node.boolAttr("saturate", true);
  llvm::StringRef mode = node.stringAttr("round_mode", "up");
  int64_t rounding = mode == "up" ? 0 : mode == "down" ? 1 : mode == "nearest" ? 2 : -1;
  if (rounding < 0)
    return node.fail("round_mode is '" + mode + "'; supported: up, down, nearest");
  if (node.elementType() == element)
    node.set(0, node.input(0));
  else
    node.set(0,
             node.emit<CastOp>(element, node.input(0), saturate, static_cast<uint64_t>(rounding)));
  return success();
}

LogicalResult cast(Node &node) {
  int64_t to = node.requiredInt("to");
  Type element = mlirElementType(node.builder.getContext(), static_cast<DataType>(to));
  if (!element)
    return node.fail("a cast to " + dataTypeName(static_cast<DataType>(to)) + " is not supported");
  return castTo(node, element);
}

LogicalResult castLike(Node &node) { return castTo(node, node.elementType(1)); }

LogicalResult matmul(Node &node) {
  node.set(0, node.emit<MatMulOp>(node.elementType(), node.input(0), node.input(1)));
  return success();
}

LogicalResult gemm(Node &node) {
  float alpha = node.floatAttr("alpha", 1), beta = node.floatAttr("beta", 1);
  bool transA = node.boolAttr("transA", false), transB = node.boolAttr("transB", false);
  node.set(0, node.emit<GemmOp>(node.elementType(), node.input(0), node.input(1), node.input(2),
                                llvm::APFloat(alpha), llvm::APFloat(beta), transA, transB));
  return success();
}

LogicalResult bitCast(Node &node) {
  auto number = static_cast<DataType>(node.requiredInt("to"));
  Type to = mlirElementType(node.builder.getContext(), number);
  if (!to)
    return node.fail("a cast to " + dataTypeName(number) + " is not supported");
  auto bits = [](Type type) { return type.isInteger(1) ? 8 : type.getIntOrFloatBitWidth(); };
  if (bits(to) != bits(node.elementType()))
    return node.fail("the types have different sizes");
  node.set(0, node.libraryOne("bit_cast", to, node.input(0)));
  return success();
}

} // namespace

void llmc::onnx::addMathOps(OperatorTable &table) {
  auto unaryRow = [&](const char *name, int64_t since, Handler handler) {
    table.add("", name, {since, 1, 1, 1, handler});
  };
  auto binaryRow = [&](const char *name, int64_t since, Handler handler) {
    table.add("", name, {since, 2, 2, 1, handler});
  };
  // Before opset 6 these had an attribute about memory, before 7 the binary ones an axis to
  // broadcast along.
  unaryRow("Neg", 6, unary<UnaryKind::Neg>);
  unaryRow("Abs", 6, unary<UnaryKind::Abs>);
  unaryRow("Exp", 6, unary<UnaryKind::Exp>);
  unaryRow("Log", 6, unary<UnaryKind::Log>);
  unaryRow("Sqrt", 6, unary<UnaryKind::Sqrt>);
  unaryRow("Reciprocal", 6, unary<UnaryKind::Reciprocal>);
  unaryRow("Floor", 6, unary<UnaryKind::Floor>);
  unaryRow("Ceil", 6, unary<UnaryKind::Ceil>);
  unaryRow("Sin", 7, unary<UnaryKind::Sin>);
  unaryRow("Cos", 7, unary<UnaryKind::Cos>);
  unaryRow("Tan", 7, unary<UnaryKind::Tan>);
  unaryRow("Erf", 9, unary<UnaryKind::Erf>);
  unaryRow("Sign", 9, unary<UnaryKind::Sign>);
  unaryRow("IsNaN", 9, unary<UnaryKind::IsNaN>);
  unaryRow("Round", 11, unary<UnaryKind::Round>);
  unaryRow("Not", 1, unary<UnaryKind::Not>);
  unaryRow("BitwiseNot", 18, unary<UnaryKind::BitNot>);
  unaryRow("IsInf", 10, isInf);

  binaryRow("Add", 7, binary<BinaryKind::Add>);
  binaryRow("Sub", 7, binary<BinaryKind::Sub>);
  binaryRow("Mul", 7, binary<BinaryKind::Mul>);
  binaryRow("Div", 7, binary<BinaryKind::Div>);
  binaryRow("Pow", 7, pow);
  binaryRow("Mod", 10, mod);
  binaryRow("And", 7, binary<BinaryKind::And>);
  binaryRow("Or", 7, binary<BinaryKind::Or>);
  binaryRow("Xor", 7, binary<BinaryKind::Xor>);
  binaryRow("BitwiseAnd", 18, binary<BinaryKind::BitAnd>);
  binaryRow("BitwiseOr", 18, binary<BinaryKind::BitOr>);
  binaryRow("BitwiseXor", 18, binary<BinaryKind::BitXor>);
  binaryRow("BitShift", 11, bitShift);
  binaryRow("Equal", 7, compare<CompareKind::Eq>);
  binaryRow("Less", 7, compare<CompareKind::Lt>);
  binaryRow("Greater", 7, compare<CompareKind::Gt>);
  binaryRow("LessOrEqual", 12, compare<CompareKind::Le>);
  binaryRow("GreaterOrEqual", 12, compare<CompareKind::Ge>);
  // Since 8 they broadcast.
  table.add("", "Min", {8, 1, variadic, 1, fold<BinaryKind::Min>});
  table.add("", "Max", {8, 1, variadic, 1, fold<BinaryKind::Max>});
  table.add("", "Sum", {8, 1, variadic, 1, fold<BinaryKind::Add>});
  table.add("", "Mean", {8, 1, variadic, 1, mean});

  table.add("", "Where", {9, 3, 3, 1, where});
  table.add("", "Clip", {6, 1, 1, 1, clip6});
  table.add("", "Clip", {11, 1, 3, 1, clip11});
  table.add("", "Cast", {6, 1, 1, 1, cast});
  table.add("", "CastLike", {15, 2, 2, 1, castLike});
  table.add("", "MatMul", {1, 2, 2, 1, matmul});
  table.add("", "Gemm", {7, 2, 3, 1, gemm});
  table.add("", "Asin", {7, 1, 1, 1, unary<UnaryKind::Asin>});
  table.add("", "Acos", {7, 1, 1, 1, unary<UnaryKind::Acos>});
  table.add("", "Atan", {7, 1, 1, 1, unary<UnaryKind::Atan>});
  table.add("", "Sinh", {9, 1, 1, 1, unary<UnaryKind::Sinh>});
  table.add("", "Cosh", {9, 1, 1, 1, unary<UnaryKind::Cosh>});
  table.add("", "Asinh", {9, 1, 1, 1, unary<UnaryKind::Asinh>});
  table.add("", "Acosh", {9, 1, 1, 1, unary<UnaryKind::Acosh>});
  table.add("", "Atanh", {9, 1, 1, 1, unary<UnaryKind::Atanh>});
  table.add("", "BitCast", {26, 1, 1, 1, bitCast});
}
