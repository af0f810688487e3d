//===- QuantOps.cpp - quantized weights and activations -----------------------===//
#include "compiler/import/onnx/Operators.h"
#include "llvm/Support/MathExtras.h"

using namespace llmc::onnx;
using namespace llmc::graph;
using namespace mlir;
using llvm::Twine;

namespace {

/// Number of elements of an input, if its shape is static.
std::optional<int64_t> count(const Node &node, unsigned i) {
  auto type =
      node.input(i) ? dyn_cast<RankedTensorType>(node.input(i).getType()) : RankedTensorType();
  return type && type.hasStaticShape() ? std::optional(type.getNumElements()) : std::nullopt;
}

/// Inputs: A, B, scales, zero_points, g_idx, bias.
LogicalResult matmulNBits(Node &node) {
  int64_t k = node.requiredInt("K"), n = node.requiredInt("N");
  int64_t bits = node.intAttr("bits", 4), block = node.requiredInt("block_size");
  int64_t accuracy = node.intAttr("accuracy_level", 0);
  if (node.intAttr("weight_prepacked", 0) != 0)
    return node.fail("prepacked weights are not supported; export with weight_prepacked=0");
  constexpr int64_t limit = int64_t(1) << 31;
  if (k <= 0 || n <= 0 || k >= limit || n >= limit)
    return node.fail("K is " + Twine(k) + " and N is " + Twine(n) +
                     "; they are positive and below 2^31");
  if (bits != 2 && bits != 4 && bits != 8)
    return node.fail(Twine(bits) + " bits are not supported; supported: 2, 4, 8");
  if (block < 16 || block >= limit || !llvm::isPowerOf2_64(static_cast<uint64_t>(block)))
    return node.fail("block_size is " + Twine(block) + "; it is a power of two of at least 16");
  int64_t blocks = llvm::divideCeil(k, block);
  if (auto has = count(node, 1);
      has && static_cast<__int128>(n) * blocks * (block * bits / 8) != *has)
    return node.fail("B has " + Twine(*has) +
                     " bytes, which is not N * ceil(K / block_size) * block_size * bits / 8");
  if (auto has = count(node, 2); has && static_cast<__int128>(n) * blocks != *has)
    return node.fail("scales has " + Twine(*has) + " elements, not N * ceil(K / block_size)");
  if (auto has = count(node, 3)) {
    // Integers are packed, each row on whole bytes; floats are one an element.
    int64_t perRow =
        isa<IntegerType>(node.elementType(3)) ? llvm::divideCeil(blocks * bits, 8) : blocks;
    if (static_cast<__int128>(n) * perRow != *has)
      return node.fail("zero_points has " + Twine(*has) + " elements, not N * " + Twine(perRow));
  }
  if (!node.elementType(1).isUnsignedInteger(8))
    return node.fail("B is not of uint8");
  if (!isa<FloatType>(node.elementType(0)))
    return node.fail("A is not of floats");
  node.set(0, node.emit<MatMulNBitsOp>(node.elementType(), node.input(0), node.input(1),
                                       node.input(2), node.input(3), node.input(4), node.input(5),
                                       static_cast<uint64_t>(k), static_cast<uint64_t>(n),
                                       static_cast<uint64_t>(bits), static_cast<uint64_t>(block),
                                       static_cast<uint64_t>(accuracy)));
  return success();
}

/// Inputs: data, indices, scales, zero_points. Rows of a table that is quantized along its columns;
/// uint8 data is packed, `bits` a value, with zero point 2^(bits-1); 4-bit types are as they are,
/// with zero point 0.
LogicalResult gatherBlockQuantized(Node &node) {
  int64_t gatherAxis = node.intAttr("gather_axis", 0), axis = node.intAttr("quantize_axis", 1);
  int64_t block = node.intAttr("block_size", 128), bits = node.intAttr("bits", 4);
  auto rank = node.rank(0);
  if (!rank)
    return node.fail("data has no known rank");
  if (axis < 0)
    axis += *rank;
  if (gatherAxis < 0)
    gatherAxis += *rank;
  if (axis < 0 || axis >= *rank || gatherAxis < 0 || gatherAxis >= *rank || axis == gatherAxis)
    return node.fail("gather_axis and quantize_axis are two different axes of data, of rank " +
                     Twine(*rank));
  if (block < 16 || block >= int64_t(1) << 31 || !llvm::isPowerOf2_64(static_cast<uint64_t>(block)))
    return node.fail("block_size is " + Twine(block) + "; it is a power of two of at least 16");
  if (!isa<FloatType>(node.elementType(2)))
    return node.fail("scales is not of floats");
  auto codes = dyn_cast<IntegerType>(node.elementType(0));
  Value table;
  if (codes && codes.isUnsigned() && codes.getWidth() == 8) {
    if (bits != 2 && bits != 4 && bits != 8)
      return node.fail(Twine(bits) + " bits are not supported; supported: 2, 4, 8");
    if (*rank != 2 || axis != 1)
      return node.fail("packed data is supported as a matrix that is quantized along its columns");
    table = node.emit<DequantizeNBitsOp>(node.elementType(2), node.input(0), node.input(2),
                                         node.input(3), static_cast<uint64_t>(bits),
                                         static_cast<uint64_t>(block));
  } else if (codes && codes.getWidth() == 4) {
    table =
        node.emit<DequantizeOp>(node.elementType(2), node.input(0), node.input(2), node.input(3),
                                static_cast<uint64_t>(axis), static_cast<uint64_t>(block));
  } else {
    return node.fail("data is of neither uint8, int4 nor uint4");
  }
  node.set(0, node.emit<GatherOp>(node.elementType(2), table, node.input(1), gatherAxis));
  return success();
}

/// Inputs: x, x_scale, x_zero_point. The axis came with opset 13, blocks with 21.
LogicalResult dequantizeLinear(Node &node) {
  int64_t axis = node.version >= 13 ? node.intAttr("axis", 1) : 1;
  int64_t block = node.version >= 21 ? node.intAttr("block_size", 0) : 0;
  int64_t output = node.version >= 23 ? node.intAttr("output_dtype", 0) : 0;
  if (!isa<FloatType>(node.elementType(1)))
    return node.fail("x_scale is not of floats");
  if (block < 0)
    return node.fail("block_size is negative");
  auto x = node.shapes().shape(node.input(0)), scale = node.shapes().shape(node.input(1));
  bool isScalar = scale && llvm::all_of(*scale, [](Dim dim) { return dim.is(1); }) && block == 0;
  if (x && scale && !isScalar) {
    int64_t rank = static_cast<int64_t>(x->size()), at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank)
      return node.fail("axis " + Twine(axis) + " is out of range for rank " + Twine(rank));
    if (block == 0 && (scale->size() != 1 || (scale->front().isNumber() && (*x)[at].isNumber() &&
                                              scale->front().value != (*x)[at].value)))
      return node.fail("x_scale is neither a scalar nor of the size of axis " + Twine(axis));
    for (int64_t i = 0; block > 0 && i < rank; ++i) {
      Dim size = (*x)[i];
      if (static_cast<int64_t>(scale->size()) != rank)
        return node.fail("x_scale of blocks needs the rank of x");
      int64_t wanted =
          size.isNumber() && i == at ? llvm::divideCeil(size.value, block) : size.value;
      if (size.isNumber() && (*scale)[i].isNumber() && (*scale)[i].value != wanted)
        return node.fail("x_scale has " + Twine((*scale)[i].value) + " blocks along dimension " +
                         Twine(i) + ", not " + Twine(wanted));
    }
  }
  Value y =
      node.emit<DequantizeOp>(node.elementType(1), node.input(0), node.input(1), node.input(2),
                              static_cast<uint64_t>(axis), static_cast<uint64_t>(block));
  if (output != 0) {
    Type element = mlirElementType(node.builder.getContext(), static_cast<DataType>(output));
    if (!element || !isa<FloatType>(element))
      return node.fail("output_dtype " + dataTypeName(static_cast<DataType>(output)) +
                       " is not supported");
    y = node.cast(y, element);
  }
  node.set(0, y);
  return success();
}

/// x / scale in f32, rounded half to even, plus the zero point, saturated to \p target.
Value quantize(Node &node, Value x, Value scale, Value zero, IntegerType target) {
  Type f32 = node.builder.getF32Type();
  Value q = node.unary(UnaryKind::Round,
                       node.binary(BinaryKind::Div, node.cast(x, f32), node.cast(scale, f32)));
  if (zero)
    q = node.binary(BinaryKind::Add, q, node.cast(zero, f32));
  bool isUnsigned = target.isUnsigned();
  double low = isUnsigned ? 0 : -std::ldexp(1.0, static_cast<int>(target.getWidth()) - 1);
  double high = std::ldexp(1.0, static_cast<int>(target.getWidth()) - (isUnsigned ? 0 : 1)) - 1;
  return node.cast(node.emit<ClipOp>(f32, q, node.scalar(f32, low), node.scalar(f32, high)),
                   target);
}

/// A vector over the axis of x, as something that broadcasts with x.
Value alongAxis(Node &node, Value vector, int64_t axis) {
  auto type = vector ? dyn_cast<RankedTensorType>(vector.getType()) : RankedTensorType();
  if (!type || type.getRank() == 0 || type.getNumElements() == 1)
    return vector;
  auto rank = node.rank(0);
  if (!rank) {
    (void)node.fail("scales by axis for an input of unknown rank");
    return vector;
  }
  int64_t at = axis < 0 ? axis + *rank : axis;
  if (at < 0 || at >= *rank || type.getRank() != 1) {
    (void)node.fail("axis " + Twine(axis) + " is out of range, or the scale is not a vector");
    return vector;
  }
  llvm::SmallVector<int64_t> shape(*rank - at, 1);
  shape[0] = -1;
  return node.emit<ReshapeOp>(type.getElementType(), vector, node.indices(shape), false);
}

LogicalResult quantizeLinear(Node &node) {
  int64_t axis = node.version >= 13 ? node.intAttr("axis", 1) : 1;
  int64_t block = node.version >= 21 ? node.intAttr("block_size", 0) : 0;
  int64_t output = node.version >= 21 ? node.intAttr("output_dtype", 0) : 0;
  int64_t precision = node.version >= 23 ? node.intAttr("precision", 0) : 0;
  bool saturate = node.version < 19 || node.boolAttr("saturate", true);
  if (precision != 0 && precision != 1 && precision != 10 && precision != 16)
    return node.fail("precision is not supported; supported: float, float16, bfloat16");
  Type target = node.input(2) ? node.elementType(2) : Type(node.builder.getIntegerType(8, false));
  if (!node.input(2) && output != 0)
    target = mlirElementType(node.builder.getContext(), static_cast<DataType>(output));
  auto integer = dyn_cast_or_null<IntegerType>(target);
  if (!target || (integer && (integer.getWidth() < 2 || integer.getWidth() > 16)) ||
      (!integer && target.getIntOrFloatBitWidth() > 8))
    return node.fail("the quantized type is not supported; supported: integers of 2 to 16 bits, "
                     "floats of 4 and 8 bits");
  if (!integer || block != 0) {
    node.set(0, node.libraryOne("quantize", target, {node.input(0), node.input(1), node.input(2)},
                                {axis, block, saturate}));
    return success();
  }
  node.set(0, quantize(node, node.input(0), alongAxis(node, node.input(1), axis),
                       alongAxis(node, node.input(2), axis), integer));
  return success();
}

/// Outputs: uint8 values, scale, zero point, from the range of x with 0 in it.
LogicalResult dynamicQuantizeLinear(Node &node) {
  Type f32 = node.builder.getF32Type();
  auto u8 = node.builder.getIntegerType(8, false);
  Value x = node.cast(node.input(0), f32), zero = node.scalar(f32, 0);
  auto extreme = [&](ReduceKind kind, BinaryKind with) {
    return node.binary(with, node.emit<ReduceOp>(f32, kind, x, Value(), false, false), zero);
  };
  Value high = extreme(ReduceKind::Max, BinaryKind::Max),
        low = extreme(ReduceKind::Min, BinaryKind::Min);
  Value scale =
      node.binary(BinaryKind::Div, node.binary(BinaryKind::Sub, high, low), node.scalar(f32, 255));
  // All zeros: any scale will do, but not 0.
  Value isZero = node.compare(CompareKind::Eq, scale, zero);
  Value safe = node.emit<SelectOp>(f32, isZero, node.scalar(f32, 1), scale);
  Value point = quantize(node, node.unary(UnaryKind::Neg, low), safe, Value(), u8);
  node.set(0, quantize(node, x, safe, point, u8));
  node.set(1, scale);
  node.set(2, point);
  return success();
}

/// Inputs: A, B, a_zero_point (a scalar, or one a row), b_zero_point (a scalar, or one a column).
LogicalResult matmulInteger(Node &node) {
  Type i32 = node.builder.getI32Type();
  Value a = node.cast(node.input(0), i32), b = node.cast(node.input(1), i32);
  if (Value zero = node.input(2)) {
    zero = node.cast(zero, i32);
    if (auto rank = node.rank(2); rank && *rank == 1 && count(node, 2) != 1)
      zero = node.emit<UnsqueezeOp>(i32, zero, node.indices({1}));
    a = node.binary(BinaryKind::Sub, a, zero);
  }
  if (Value zero = node.input(3))
    b = node.binary(BinaryKind::Sub, b, node.cast(zero, i32));
  node.set(0, node.emit<MatMulOp>(i32, a, b));
  return success();
}

} // namespace

void llmc::onnx::addQuantOps(OperatorTable &table) {
  table.add("com.microsoft", "MatMulNBits", {1, 3, 6, 1, matmulNBits});
  table.add("com.microsoft", "GatherBlockQuantized", {1, 3, 4, 1, gatherBlockQuantized});
  table.add("", "DequantizeLinear", {10, 2, 3, 1, dequantizeLinear});
  table.add("", "QuantizeLinear", {10, 2, 3, 1, quantizeLinear});
  table.add("", "DynamicQuantizeLinear", {11, 1, 1, 3, dynamicQuantizeLinear});
  table.add("", "MatMulInteger", {10, 2, 4, 1, matmulInteger});
}
