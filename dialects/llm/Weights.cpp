//===- Weights.cpp - verifiers and folders of weights ------------------------===//

#include "dialects/llm/LlmDialect.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace llmc::llm;

static ArrayRef<int64_t> shapeOf(Value value) { return tensorType(value).getShape(); }

static int64_t elementsOf(Value value) { return tensorType(value).getNumElements(); }

//===----------------------------------------------------------------------===//
// WeightOp
//===----------------------------------------------------------------------===//

/// Bytes of \p count values in \p encoding; 0 where that depends on more than the count, -1 when
/// the count does not fill whole blocks.
static int64_t encodedBytes(Encoding encoding, int64_t count) {
  struct Block {
    int64_t values, bytes;
  };
  Block block{1, 0};
  switch (encoding) {
  case Encoding::F32:
    block = {1, 4};
    break;
  case Encoding::F64:
    block = {1, 8};
    break;
  case Encoding::F16:
  case Encoding::BF16:
    block = {1, 2};
    break;
  case Encoding::Q4_0:
    block = {32, 18};
    break;
  case Encoding::Q4_1:
    block = {32, 20};
    break;
  case Encoding::Q5_0:
    block = {32, 22};
    break;
  case Encoding::Q5_1:
    block = {32, 24};
    break;
  case Encoding::Q8_0:
    block = {32, 34};
    break;
  case Encoding::Q4_K:
    block = {256, 144};
    break;
  case Encoding::Q5_K:
    block = {256, 176};
    break;
  case Encoding::Q6_K:
    block = {256, 210};
    break;
  case Encoding::NBits:
  case Encoding::BlockInt4:
  case Encoding::BlockInt8:
  case Encoding::Gptq:
  case Encoding::GptqV2:
  case Encoding::Awq:
  case Encoding::PackedInt:
  case Encoding::NF4:
  case Encoding::RowInt8:
  case Encoding::FP8:
  case Encoding::SplitMXFP4:
    return 0;
  case Encoding::Q2_K:
    block = {256, 84};
    break;
  case Encoding::Q3_K:
    block = {256, 110};
    break;
  case Encoding::Q8_K:
    block = {256, 292};
    break;
  case Encoding::IQ4_NL:
    block = {32, 18};
    break;
  case Encoding::IQ4_XS:
    block = {256, 136};
    break;
  case Encoding::TQ1_0:
    block = {256, 54};
    break;
  case Encoding::TQ2_0:
    block = {256, 66};
    break;
  case Encoding::MXFP4:
    block = {32, 17};
    break;
  case Encoding::IQ1_S:
    block = {256, 50};
    break;
  case Encoding::IQ1_M:
    block = {256, 56};
    break;
  case Encoding::IQ2_XXS:
    block = {256, 66};
    break;
  case Encoding::IQ2_XS:
    block = {256, 74};
    break;
  case Encoding::IQ2_S:
    block = {256, 82};
    break;
  case Encoding::IQ3_XXS:
    block = {256, 98};
    break;
  case Encoding::IQ3_S:
    block = {256, 110};
    break;
  }
  return count % block.values ? -1 : count / block.values * block.bytes;
}

void WeightOp::build(OpBuilder &builder, OperationState &state, Type type, StringRef name,
                     SourceAttr source, Encoding encoding) {
  build(builder, state, type, builder.getStringAttr(name), builder.getArrayAttr({source}),
        EncodingAttr::get(builder.getContext(), encoding), IntegerAttr(), EncodingAttr(),
        IntegerAttr(), UnitAttr(), UnitAttr(), FloatAttr());
}

/// The fewest and the most sources of a form of pre-quantized checkpoints; {0, 0} for others.
static std::pair<size_t, size_t> checkpointSources(Encoding encoding) {
  switch (encoding) {
  case Encoding::Gptq:
  case Encoding::GptqV2:
    return {3, 4};
  case Encoding::Awq:
    return {3, 3};
  case Encoding::PackedInt:
    return {2, 3};
  case Encoding::NF4:
    return {3, 5};
  case Encoding::RowInt8:
  case Encoding::FP8:
  case Encoding::SplitMXFP4:
    return {2, 2};
  default:
    return {0, 0};
  }
}

LogicalResult WeightOp::verify() {
  Encoding encoding = getEncoding();
  if (auto [least, most] = checkpointSources(encoding); least) {
    if (getSources().size() < least || getSources().size() > most)
      return emitOpError() << "of encoding " << stringifyEncoding(encoding) << " needs " << least
                           << " to " << most << " sources, has " << getSources().size();
    if (!getBlock() || *getBlock() < 1 || !getScaleEncoding())
      return emitOpError() << "of encoding " << stringifyEncoding(encoding)
                           << " needs 'block' and 'scales'";
    if (getSignedCodes() || getBlocksDown())
      return emitOpError() << "of encoding " << stringifyEncoding(encoding)
                           << " has neither 'signed_codes' nor 'blocks_down'";
    return success();
  }
  bool blockwise = encoding == Encoding::NBits || encoding == Encoding::BlockInt4 ||
                   encoding == Encoding::BlockInt8;
  size_t sources = getSources().size();
  if (!blockwise) {
    if (sources != 1)
      return emitOpError() << "of encoding " << stringifyEncoding(encoding)
                           << " needs one source, has " << sources;
    if (getBlock() || getScaleEncoding() || getBits() || getSignedCodes() || getBlocksDown())
      return emitOpError() << "of encoding " << stringifyEncoding(encoding)
                           << " has its block size and scales in the encoding";
    int64_t expected = encodedBytes(encoding, elementsOf(getResult()));
    int64_t size = cast<SourceAttr>(getSources()[0]).getSize();
    if (expected < 0)
      return emitOpError() << "of shape " << tensorType(getResult())
                           << " does not fill whole blocks of " << stringifyEncoding(encoding);
    if (expected != size)
      return emitOpError() << "has " << size << " bytes; its shape and encoding need " << expected;
    return success();
  }
  if (sources < 2 || sources > 3)
    return emitOpError() << "of encoding " << stringifyEncoding(encoding)
                         << " needs data, scales and optionally zero points as sources, has "
                         << sources;
  if (!getBlock() || *getBlock() < 16)
    return emitOpError() << "needs 'block', the values a scale covers, of at least 16";
  if (!getScaleEncoding())
    return emitOpError() << "needs 'scales', the encoding of its scales";
  if (*getScaleEncoding() != Encoding::F32 && *getScaleEncoding() != Encoding::F16 &&
      *getScaleEncoding() != Encoding::BF16)
    return emitOpError() << "has scales of " << stringifyEncoding(*getScaleEncoding())
                         << "; supported: f32, f16, bf16";
  if (tensorType(getResult()).getRank() != 2)
    return emitOpError() << "of a blockwise encoding must be a matrix";
  if (getBits() && (encoding != Encoding::NBits || (*getBits() != 4 && *getBits() != 8)))
    return emitOpError() << "has 'bits', which are 4 or 8 and for nbits only";
  return success();
}

//===----------------------------------------------------------------------===//
// WeightConstantOp
//===----------------------------------------------------------------------===//

OpFoldResult WeightConstantOp::fold(FoldAdaptor) { return getValue(); }

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

LogicalResult WeightTransposeOp::verify() {
  ArrayRef<int64_t> in = shapeOf(getWeight()), out = shapeOf(getResult());
  if (in.size() != 2 || out.size() != 2 || in[0] != out[1] || in[1] != out[0])
    return emitOpError() << "must swap the two dimensions of a matrix";
  return success();
}

OpFoldResult WeightTransposeOp::fold(FoldAdaptor) {
  if (auto inner = getWeight().getDefiningOp<WeightTransposeOp>())
    return inner.getWeight();
  return {};
}

LogicalResult WeightConcatOp::verify() {
  if (getWeights().empty())
    return emitOpError() << "needs at least one operand";
  ArrayRef<int64_t> out = shapeOf(getResult());
  int64_t rows = 0;
  for (Value weight : getWeights()) {
    ArrayRef<int64_t> in = shapeOf(weight);
    if (in.size() != out.size() || in.empty() || in.drop_front() != out.drop_front())
      return emitOpError() << "joins along the first dimension; operand of type "
                           << weight.getType() << " does not fit " << getResult().getType();
    rows += in[0];
  }
  if (rows != out[0])
    return emitOpError() << "operands have " << rows << " rows, the result " << out[0];
  return success();
}

OpFoldResult WeightConcatOp::fold(FoldAdaptor) {
  return getWeights().size() == 1 ? OpFoldResult(getWeights()[0]) : OpFoldResult();
}

namespace {
/// concat(a, concat(b, c)) -> concat(a, b, c)
struct FlattenConcat : OpRewritePattern<WeightConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(WeightConcatOp op, PatternRewriter &rewriter) const override {
    SmallVector<Value> flat;
    for (Value weight : op.getWeights()) {
      if (auto inner = weight.getDefiningOp<WeightConcatOp>())
        llvm::append_range(flat, inner.getWeights());
      else
        flat.push_back(weight);
    }
    if (flat.size() == op.getWeights().size())
      return failure();
    rewriter.modifyOpInPlace(op, [&] { op.getWeightsMutable().assign(flat); });
    return success();
  }
};

/// concat(rows(w, 0, a), rows(w, a, b)) -> rows(w, 0, a + b): what a packed matrix was cut into and
/// is joined from again.
struct JoinAdjacentRows : OpRewritePattern<WeightConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(WeightConcatOp op, PatternRewriter &rewriter) const override {
    Value source;
    int64_t begin = 0, end = 0;
    for (Value weight : op.getWeights()) {
      auto rows = weight.getDefiningOp<WeightRowsOp>();
      if (!rows)
        return failure();
      int64_t offset = rows.getOffset();
      if (!source) {
        source = rows.getWeight();
        begin = end = offset;
      }
      if (rows.getWeight() != source || offset != end)
        return failure();
      end = offset + dim(weight, 0);
    }
    rewriter.replaceOpWithNewOp<WeightRowsOp>(op, op.getType(), source,
                                              rewriter.getI64IntegerAttr(begin));
    return success();
  }
};
} // namespace

void WeightConcatOp::getCanonicalizationPatterns(RewritePatternSet &results, MLIRContext *context) {
  results.add<FlattenConcat, JoinAdjacentRows>(context);
}

LogicalResult WeightInterleaveOp::verify() {
  ArrayRef<int64_t> in = shapeOf(getFirst()), out = shapeOf(getResult());
  if (in.empty() || in.size() != out.size() || in.drop_front() != out.drop_front())
    return emitOpError() << "must keep all dimensions but the first";
  int64_t padded = (in[0] + tileRows - 1) / tileRows * tileRows;
  if (out[0] != 2 * padded)
    return emitOpError() << "result must have " << 2 * padded << " rows, has " << out[0];
  return success();
}

LogicalResult WeightStackOp::verify() {
  if (getWeights().empty())
    return emitOpError() << "needs at least one operand";
  ArrayRef<int64_t> in = shapeOf(getWeights()[0]), out = shapeOf(getResult());
  for (Value weight : getWeights())
    if (weight.getType() != getWeights()[0].getType())
      return emitOpError() << "stacks weights of one shape, not " << getWeights()[0].getType()
                           << " and " << weight.getType();
  if (in.empty() || in.size() != out.size() || in.drop_front() != out.drop_front())
    return emitOpError() << "must keep all dimensions but the first";
  int64_t rows = paddedRows(in[0]) * static_cast<int64_t>(getWeights().size());
  if (out[0] != rows)
    return emitOpError() << "result must have " << rows << " rows, has " << out[0];
  return success();
}

LogicalResult WeightRowsOp::verify() {
  ArrayRef<int64_t> in = shapeOf(getWeight()), out = shapeOf(getResult());
  if (in.empty() || in.size() != out.size() || in.drop_front() != out.drop_front())
    return emitOpError() << "must keep all dimensions but the first";
  int64_t offset = getOffset();
  if (offset < 0 || offset > in[0] || out[0] > in[0] - offset)
    return emitOpError() << "rows [" << offset << ", " << offset + out[0] << ") are outside the "
                         << in[0] << " rows of the operand";
  return success();
}

OpFoldResult WeightRowsOp::fold(FoldAdaptor) {
  if (getWeight().getType() == getResult().getType())
    return getWeight();
  // rows(rows(w)) reads through the inner view.
  if (auto inner = getWeight().getDefiningOp<WeightRowsOp>()) {
    setOffset(getOffset() + inner.getOffset());
    getWeightMutable().assign(inner.getWeight());
    return getResult();
  }
  return {};
}

LogicalResult WeightUnpermuteOp::verify() {
  ArrayRef<int64_t> shape = shapeOf(getWeight());
  int64_t heads = getHeads();
  if (shape.empty() || heads < 1 || shape[0] % heads || shape[0] / heads % 2)
    return emitOpError() << "rows must divide into " << heads << " heads of an even size";
  return success();
}

LogicalResult WeightReshapeOp::verify() {
  if (elementsOf(getWeight()) != elementsOf(getResult()))
    return emitOpError() << "must keep the number of values";
  return success();
}

OpFoldResult WeightReshapeOp::fold(FoldAdaptor) {
  if (getWeight().getType() == getResult().getType())
    return getWeight();
  if (auto inner = getWeight().getDefiningOp<WeightReshapeOp>()) {
    getWeightMutable().assign(inner.getWeight());
    return getResult();
  }
  return {};
}
