#include "codegen/cpu/GraphKernels.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/ADT/bit.h"

using namespace llmc;
using namespace llmc::graph;
using namespace mlir;

int32_t llmc::graphElementType(Type element) {
  if (auto integer = dyn_cast<IntegerType>(element)) {
    bool isUnsigned = integer.isUnsigned();
    switch (integer.getWidth()) {
    case 1:
      return 9;
    case 2:
      return isUnsigned ? 25 : 26;
    case 4:
      return isUnsigned ? 21 : 22;
    case 8:
      return isUnsigned ? 2 : 3;
    case 16:
      return isUnsigned ? 4 : 5;
    case 32:
      return isUnsigned ? 12 : 6;
    case 64:
      return isUnsigned ? 13 : 7;
    default:
      return 0;
    }
  }
  return llvm::TypeSwitch<Type, int32_t>(element)
      .Case<Float32Type>([](auto) { return 1; })
      .Case<Float16Type>([](auto) { return 10; })
      .Case<Float64Type>([](auto) { return 11; })
      .Case<BFloat16Type>([](auto) { return 16; })
      .Case<Float8E4M3FNType>([](auto) { return 17; })
      .Case<Float8E4M3FNUZType>([](auto) { return 18; })
      .Case<Float8E5M2Type>([](auto) { return 19; })
      .Case<Float8E5M2FNUZType>([](auto) { return 20; })
      .Case<Float4E2M1FNType>([](auto) { return 23; })
      .Case<Float8E8M0FNUType>([](auto) { return 24; })
      .Default([](Type) { return 0; });
}

namespace {

int64_t typeOf(Value value) {
  auto tensor = dyn_cast<TensorType>(value.getType());
  return tensor ? graphElementType(tensor.getElementType()) : 0;
}
int64_t bits(double value) { return llvm::bit_cast<int64_t>(value); }
int64_t bits(const APFloat &value) { return bits(value.convertToDouble()); }

/// The one element of a splat as a value of its type, in the low bytes.
int64_t elementBits(ElementsAttr value) {
  auto dense = dyn_cast<DenseElementsAttr>(value);
  if (!dense || dense.getNumElements() != 1)
    return 0;
  Type element = dense.getElementType();
  if (isa<FloatType>(element))
    return static_cast<int64_t>((*dense.value_begin<APFloat>()).bitcastToAPInt().getZExtValue());
  APInt number = *dense.value_begin<APInt>();
  auto integer = cast<IntegerType>(element);
  return integer.isUnsigned() || integer.getWidth() == 1 ? int64_t(number.getZExtValue())
                                                         : number.getSExtValue();
}

/// Fills the call for one operation; false for one without a kernel.
struct CallBuilder {
  GraphKernelCall call;

  void make(StringRef name, int64_t type, std::vector<int64_t> attributes = {}) {
    call.name = name.str();
    call.type = type;
    call.attributes = std::move(attributes);
  }
  void operands(std::initializer_list<Value> values) { call.operands.assign(values); }

  bool build(Operation *op);
  bool buildShape(Operation *op);
  bool buildIndexed(Operation *op);
  bool buildReduction(Operation *op);
  bool buildComposite(Operation *op);
};

bool CallBuilder::build(Operation *op) {
  // Ops with optional operands say their order themselves.
  call.operands.assign(op->operand_begin(), op->operand_end());
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](UnaryOp o) {
        make(("unary_" + stringifyUnaryKind(o.getKind())).str(), typeOf(o.getX()));
        return true;
      })
      .Case([&](BinaryOp o) {
        make(("binary_" + stringifyBinaryKind(o.getKind())).str(), typeOf(o.getA()));
        return true;
      })
      .Case([&](CompareOp o) {
        make(("compare_" + stringifyCompareKind(o.getKind())).str(), typeOf(o.getA()));
        return true;
      })
      .Case([&](SelectOp o) {
        make("select", typeOf(o.getA()));
        return true;
      })
      .Case([&](ClipOp o) {
        make("clip", typeOf(o.getX()));
        operands({o.getX(), o.getLow(), o.getHigh()});
        return true;
      })
      .Case([&](CastOp o) {
        make("cast", typeOf(o.getX()) | typeOf(o.getY()) << 8,
             {o.getSaturate(), static_cast<int64_t>(o.getRounding())});
        return true;
      })
      .Case([&](LibraryOp o) {
        make(o.getKernel(), graphElementType(o.getElement()));
        for (double real : o.getReals())
          call.attributes.push_back(bits(real));
        llvm::append_range(call.attributes, o.getIntegers());
        call.operands.clear();
        unsigned next = 0;
        for (bool isPresent : o.getPresent())
          call.operands.push_back(isPresent ? o.getInputs()[next++] : Value());
        return true;
      })
      .Default([&](Operation *other) {
        return buildShape(other) || buildIndexed(other) || buildReduction(other) ||
               buildComposite(other);
      });
}

bool CallBuilder::buildShape(Operation *op) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](ShapeOp o) {
        make("shape", 0,
             {int64_t(o.getStart()), o.getEnd().has_value(), int64_t(o.getEnd().value_or(0))});
        return true;
      })
      .Case([&](SizeOp) {
        make("size", 0);
        return true;
      })
      .Case([&](ReshapeOp o) {
        make("reshape", 0, {o.getAllowZero()});
        return true;
      })
      .Case([&](FlattenOp o) {
        make("flatten", 0, {int64_t(o.getAxis())});
        return true;
      })
      .Case([&](SqueezeOp o) {
        make("squeeze", 0);
        operands({o.getX(), o.getAxes()});
        return true;
      })
      .Case([&](UnsqueezeOp) {
        make("unsqueeze", 0);
        return true;
      })
      .Case([&](ExpandOp o) {
        make("expand", typeOf(o.getX()));
        return true;
      })
      .Case([&](TileOp o) {
        make("tile", typeOf(o.getX()));
        return true;
      })
      .Case([&](TransposeOp o) {
        make("transpose", typeOf(o.getX()), {int64_t(o.getPerm().size())});
        llvm::append_range(call.attributes, o.getPerm());
        return true;
      })
      .Case([&](ConcatOp o) {
        make("concat", typeOf(o.getY()), {int64_t(o.getAxis()), int64_t(o.getParts().size())});
        return true;
      })
      .Case([&](SplitOp o) {
        make("split", typeOf(o.getX()), {int64_t(o.getAxis()), int64_t(o.getParts().size())});
        operands({o.getX(), o.getSizes()});
        return true;
      })
      .Case([&](SliceOp o) {
        make("slice", typeOf(o.getX()));
        operands({o.getX(), o.getStarts(), o.getEnds(), o.getAxes(), o.getSteps()});
        return true;
      })
      .Case([&](PadOp o) {
        make("pad", typeOf(o.getX()), {int64_t(o.getMode())});
        operands({o.getX(), o.getPads(), o.getValue(), o.getAxes()});
        return true;
      })
      .Case([&](RangeOp o) {
        make("range", typeOf(o.getStart()));
        return true;
      })
      .Case([&](FillOp o) {
        make("fill", typeOf(o.getY()), {elementBits(o.getValue())});
        return true;
      })
      .Case([&](TriluOp o) {
        make("trilu", typeOf(o.getX()), {o.getUpper()});
        operands({o.getX(), o.getK()});
        return true;
      })
      .Default([](Operation *) { return false; });
}

bool CallBuilder::buildIndexed(Operation *op) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](GatherOp o) {
        make("gather", typeOf(o.getX()), {int64_t(o.getAxis())});
        return true;
      })
      .Case([&](GatherElementsOp o) {
        make("gather_elements", typeOf(o.getX()), {int64_t(o.getAxis())});
        return true;
      })
      .Case([&](GatherNDOp o) {
        make("gather_nd", typeOf(o.getX()), {int64_t(o.getBatchDims())});
        return true;
      })
      .Case([&](ScatterElementsOp o) {
        make("scatter_elements", typeOf(o.getX()), {int64_t(o.getKind()), int64_t(o.getAxis())});
        return true;
      })
      .Case([&](ScatterNDOp o) {
        make("scatter_nd", typeOf(o.getX()), {int64_t(o.getKind())});
        return true;
      })
      .Case([&](OneHotOp o) {
        make("one_hot", typeOf(o.getY()), {int64_t(o.getAxis())});
        return true;
      })
      .Case([&](NonZeroOp o) {
        make("nonzero", typeOf(o.getX()));
        return true;
      })
      .Case([&](TopKOp o) {
        make("top_k", typeOf(o.getX()), {int64_t(o.getAxis()), o.getLargest(), o.getSorted()});
        return true;
      })
      .Default([](Operation *) { return false; });
}

bool CallBuilder::buildReduction(Operation *op) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](ReduceOp o) {
        make(("reduce_" + stringifyReduceKind(o.getKind())).str(), typeOf(o.getX()),
             {o.getKeepdims(), o.getNoopWithEmptyAxes()});
        operands({o.getX(), o.getAxes()});
        return true;
      })
      .Case([&](ArgReduceOp o) {
        make("arg_reduce", typeOf(o.getX()),
             {int64_t(o.getAxis()), o.getLargest(), o.getKeepdims(), o.getSelectLast()});
        return true;
      })
      .Case([&](CumSumOp o) {
        make("cumulate", typeOf(o.getX()), {o.getExclusive(), o.getReverse(), o.getProduct()});
        return true;
      })
      .Case([&](SoftmaxOp o) {
        make("softmax", typeOf(o.getX()), {int64_t(o.getAxis()), o.getLog()});
        return true;
      })
      .Case([&](MatMulOp o) {
        make("matmul", typeOf(o.getA()));
        return true;
      })
      .Case([&](GemmOp o) {
        make("gemm", typeOf(o.getA()),
             {bits(o.getAlpha()), bits(o.getBeta()), o.getTransposeA(), o.getTransposeB()});
        operands({o.getA(), o.getB(), o.getC()});
        return true;
      })
      .Default([](Operation *) { return false; });
}

bool CallBuilder::buildComposite(Operation *op) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](LayerNormOp o) {
        make("layer_norm", typeOf(o.getX()), {bits(o.getEpsilon()), int64_t(o.getAxis()), 1});
        operands({o.getX(), o.getScale(), o.getBias()});
        return true;
      })
      .Case([&](RmsNormOp o) {
        make("layer_norm", typeOf(o.getX()), {bits(o.getEpsilon()), int64_t(o.getAxis()), 0});
        operands({o.getX(), o.getScale(), Value()});
        return true;
      })
      .Case([&](RotaryEmbeddingOp o) {
        make("rotary_embedding", typeOf(o.getX()),
             {o.getInterleaved(), int64_t(o.getNumHeads()), int64_t(o.getRotaryDim())});
        operands({o.getX(), o.getCos(), o.getSin(), o.getPositionIds()});
        return true;
      })
      .Case([&](AttentionOp o) {
        make("attention", typeOf(o.getQ()),
             {bits(o.getScale() ? o.getScale()->convertToDouble() : 0), bits(o.getSoftcap()),
              o.getScale().has_value(), o.getIsCausal(), int64_t(o.getQNumHeads()),
              int64_t(o.getKvNumHeads()), int64_t(o.getQkMatmulOutputMode()),
              o.getPresentKey() != nullptr, o.getQk() != nullptr, -1, -1});
        operands({o.getQ(), o.getK(), o.getV(), o.getMask(), o.getPastKey(), o.getPastValue(),
                  o.getNonpadKvSeqlen()});
        return true;
      })
      .Case([&](GroupQueryAttentionOp o) {
        make("group_query_attention", typeOf(o.getQuery()),
             {bits(o.getScale()), bits(o.getSoftcap()), int64_t(o.getNumHeads()),
              int64_t(o.getKvNumHeads()), int64_t(o.getLocalWindowSize()), o.getDoRotary(),
              o.getRotaryInterleaved(), o.getSmoothSoftmax(), o.getPresentKey() != nullptr, 0, 0,
              0});
        operands({o.getQuery(), o.getKey(), o.getValue(), o.getPastKey(), o.getPastValue(),
                  o.getSeqlensK(), o.getTotalSequenceLength(), o.getCosCache(), o.getSinCache(),
                  o.getPositionIds(), o.getAttentionBias(), o.getHeadSink(), Value(), Value(),
                  Value(), Value()});
        return true;
      })
      .Case([&](DequantizeOp o) {
        make("dequantize", typeOf(o.getX()) | typeOf(o.getY()) << 8,
             {int64_t(o.getAxis()), int64_t(o.getBlockSize())});
        operands({o.getX(), o.getScale(), o.getZeroPoint()});
        return true;
      })
      .Case([&](DequantizeNBitsOp o) {
        make("dequantize_nbits", typeOf(o.getY()),
             {int64_t(o.getBits()), int64_t(o.getBlockSize())});
        operands({o.getX(), o.getScales(), o.getZeroPoints()});
        return true;
      })
      .Case([&](MatMulNBitsOp o) {
        make("matmul_nbits", typeOf(o.getA()),
             {int64_t(o.getK()), int64_t(o.getN()), int64_t(o.getBits()),
              int64_t(o.getBlockSize())});
        operands({o.getA(), o.getB(), o.getScales(), o.getZeroPoints(), o.getGIdx(), o.getBias()});
        return true;
      })
      .Default([](Operation *) { return false; });
}

} // namespace

FailureOr<GraphKernelCall> llmc::graphKernelCall(Operation *op) {
  CallBuilder builder;
  if (builder.build(op))
    return std::move(builder.call);
  return op->emitOpError("has no kernel for a CPU");
}
