//===- StepWeights.cpp - Weights of the graph as weights of the llm dialect ------===//

#include "compiler/passes/raise/Match.h"
#include "compiler/passes/raise/Step.h"
#include "dialects/graph/NodeLocation.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::graph;
using namespace llmc::raise;

std::string llmc::raise::readableName(StringRef weight, StringRef node) {
  if (!weight.starts_with("onnx::") && !weight.starts_with("val_"))
    return weight.str();
  // "/model/layers.0/self_attn/q_proj/MatMul" -> "model.layers.0.self_attn.q_proj.weight"
  SmallVector<StringRef> parts;
  node.split(parts, '/', -1, /*KeepEmpty=*/false);
  if (parts.size() < 2)
    return weight.str();
  return llvm::join(ArrayRef(parts).drop_back(), ".") + ".weight";
}

llm::SourceAttr Step::source(WeightOp op) {
  auto [found, isNew] =
      fileIndex.try_emplace(op.getFile().str(), static_cast<int64_t>(files.size()));
  if (isNew)
    files.push_back(op.getFileAttr());
  return llm::SourceAttr::get(builder.getContext(), found->second, op.getOffset(), op.getBytes());
}

static std::optional<llm::Encoding> encodingOf(Type type) {
  if (type.isF32())
    return llm::Encoding::F32;
  if (type.isF16())
    return llm::Encoding::F16;
  if (type.isBF16())
    return llm::Encoding::BF16;
  if (type.isF64())
    return llm::Encoding::F64;
  return std::nullopt;
}

Value Step::weightConstant(const HostArray &array, Location loc) {
  HostArray single(builder.getF32Type(), array.shape);
  for (int64_t i = 0; i < array.size(); ++i)
    single.set(i, array.number(i));
  DenseElementsAttr values = toElements(single);
  return llm::WeightConstantOp::create(builder, loc, values.getType(), values);
}

Value Step::weightOf(WeightOp op, StringRef nameHint, std::string &problem) {
  auto type = cast<RankedTensorType>(op.getType());
  auto encoding = encodingOf(type.getElementType());
  if (!encoding) {
    problem = llvm::formatv("weight '{0}' of type {1} is not a float", op.getName(),
                            type.getElementType());
    return {};
  }
  llm::SourceAttr place = source(op);
  Value &known = weightsByPlace[{place.getFile(), place.getOffset()}];
  auto want = RankedTensorType::get(type.getShape(), builder.getF32Type());
  if (known && known.getType() == want)
    return known;
  Value result = llm::WeightOp::create(builder, op.getLoc(), want,
                                       readableName(op.getName(), nameHint), place, *encoding);
  return known = result;
}

Value Step::dequantized(DequantizeOp op, StringRef nameHint, std::string &problem) {
  auto data = op.getX().getDefiningOp<WeightOp>(), scale = op.getScale().getDefiningOp<WeightOp>();
  auto zero = op.getZeroPoint() ? op.getZeroPoint().getDefiningOp<WeightOp>() : nullptr;
  auto type = dyn_cast<RankedTensorType>(op.getX().getType());
  if (!data || !scale || (op.getZeroPoint() && !zero) || !type || type.getRank() != 2) {
    problem = "only matrices that are dequantized from tensors of the file are supported";
    return {};
  }
  auto codes = cast<IntegerType>(type.getElementType());
  auto axis = placeAxis(op.getAxis(), 2);
  auto scales = encodingOf(getElementTypeOrSelf(op.getScale()));
  if (op.getBlockSize() < 16 || !axis || !scales ||
      (codes.getWidth() != 4 && codes.getWidth() != 8)) {
    problem = llvm::formatv("dequantization of {0}-bit codes in blocks of {1} is not supported; "
                            "supported: 4 and 8 bits in "
                            "blocks of at least 16",
                            codes.getWidth(), op.getBlockSize());
    return {};
  }
  SmallVector<Attribute> sources = {source(data), source(scale)};
  if (zero)
    sources.push_back(source(zero));
  MLIRContext *context = builder.getContext();
  auto encoding = codes.getWidth() == 4 ? llm::Encoding::BlockInt4 : llm::Encoding::BlockInt8;
  return llm::WeightOp::create(
      builder, op.getLoc(), RankedTensorType::get(type.getShape(), builder.getF32Type()),
      builder.getStringAttr(readableName(data.getName(), nameHint)), builder.getArrayAttr(sources),
      llm::EncodingAttr::get(context, encoding), builder.getI64IntegerAttr(op.getBlockSize()),
      llm::EncodingAttr::get(context, *scales), IntegerAttr(),
      codes.isUnsigned() ? UnitAttr() : builder.getUnitAttr(),
      *axis == 0 ? builder.getUnitAttr() : UnitAttr(), FloatAttr());
}

template <typename Op>
Value Step::nbits(Op op, Value packed, int64_t rows, int64_t columns, std::string &problem) {
  // The same bytes may be shaped in several ways: a tied table is [N, blocks, bytes] for the head.
  while (auto reshape = packed.getDefiningOp<ReshapeOp>())
    packed = reshape.getX();
  auto data = packed.getDefiningOp<WeightOp>();
  auto scale = op.getScales().template getDefiningOp<WeightOp>();
  auto zero =
      op.getZeroPoints() ? op.getZeroPoints().template getDefiningOp<WeightOp>() : WeightOp();
  auto scales = encodingOf(getElementTypeOrSelf(op.getScales()));
  if (!data || !scale || !scales || (op.getZeroPoints() && !zero)) {
    problem = "the quantized weight, its scales and its zero points must be tensors of the file";
    return {};
  }
  if (op.getBits() != 4 && op.getBits() != 8) {
    problem = llvm::formatv("{0} bits are not supported; supported: 4, 8", op.getBits());
    return {};
  }
  SmallVector<Attribute> sources = {source(data), source(scale)};
  if (zero)
    sources.push_back(source(zero));
  MLIRContext *context = builder.getContext();
  return llm::WeightOp::create(
      builder, op.getLoc(), RankedTensorType::get({rows, columns}, builder.getF32Type()),
      data.getNameAttr(), builder.getArrayAttr(sources),
      llm::EncodingAttr::get(context, llm::Encoding::NBits),
      builder.getI64IntegerAttr(op.getBlockSize()), llm::EncodingAttr::get(context, *scales),
      builder.getI64IntegerAttr(op.getBits()), UnitAttr(), UnitAttr(), FloatAttr());
}

Value Step::nbits(MatMulNBitsOp op, std::string &problem) {
  if (op.getGIdx()) {
    problem = "g_idx (activation order) is not supported";
    return {};
  }
  return nbits(op, op.getB(), static_cast<int64_t>(op.getN()), static_cast<int64_t>(op.getK()),
               problem);
}

Value Step::nbits(DequantizeNBitsOp op, std::string &problem) {
  auto shapes = shapesOf(op.getY());
  if (!shapes || shapes->front().size() != 2) {
    problem = "the quantized matrix must have a known size";
    return {};
  }
  if (shapes->front()[1] % static_cast<int64_t>(op.getBlockSize())) {
    problem = llvm::formatv("blocks of {0} that do not divide rows of {1} are not supported",
                            op.getBlockSize(), shapes->front()[1]);
    return {};
  }
  return nbits(op, op.getX(), shapes->front()[0], shapes->front()[1], problem);
}

Value Step::weight(Value value, StringRef nameHint, std::string &problem) {
  if (Value known = weights.lookup(value))
    return known;
  Operation *op = value.getDefiningOp();
  Value result;
  if (!op) {
    problem = "a weight is expected where an input of the graph stands";
    return {};
  }
  Location loc = op->getLoc();
  auto reshaped = [&](Value from) -> Value {
    Value inner = weight(from, nameHint, problem);
    auto shapes = inner ? shapesOf(value) : std::nullopt;
    if (!shapes)
      return {};
    return builder.createOrFold<llm::WeightReshapeOp>(
        loc, RankedTensorType::get(shapes->front(), builder.getF32Type()), inner);
  };
  if (auto leaf = dyn_cast<WeightOp>(op)) {
    result = weightOf(leaf, nameHint, problem);
  } else if (auto constant = dyn_cast<ConstantOp>(op)) {
    if (HostArrayRef array = isa<FloatType>(constant.getValue().getElementType())
                                 ? fromElements(constant.getValue())
                                 : nullptr)
      result = weightConstant(*array, loc);
    else
      problem = "a constant of integers is not a weight";
  } else if (auto transpose = dyn_cast<TransposeOp>(op);
             transpose && ArrayRef<int64_t>(transpose.getPerm()) == ArrayRef<int64_t>{1, 0}) {
    if (Value inner = weight(transpose.getX(), nameHint, problem)) {
      auto type = llm::tensorType(inner);
      result = builder.createOrFold<llm::WeightTransposeOp>(
          loc,
          RankedTensorType::get({type.getDimSize(1), type.getDimSize(0)}, type.getElementType()),
          inner);
    }
  } else if (auto cast = dyn_cast<CastOp>(op)) {
    result = weight(cast.getX(), nameHint, problem);
  } else if (auto dequantize = dyn_cast<DequantizeOp>(op)) {
    result = dequantized(dequantize, nameHint, problem);
  } else if (auto packed = dyn_cast<DequantizeNBitsOp>(op)) {
    result = nbits(packed, problem);
  } else if (isa<ReshapeOp, SqueezeOp, UnsqueezeOp, FlattenOp>(op)) {
    result = reshaped(op->getOperand(0));
  } else if (isWeightLike(value)) {
    // Something computed from small weights (1 + w, say): its numbers become a constant.
    HostArrayRef array = samples.data(value, 0);
    if (array && array->isFloat() && array->size() <= 65536)
      result = weightConstant(*array, loc);
    else
      problem = "a weight that is computed from weights is too large to be folded";
  } else {
    problem = "a weight is expected where a computed value stands";
  }
  if (result)
    weights[value] = result;
  return result;
}
