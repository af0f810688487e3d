//===- SourceFormat.cpp - the format that holds a weight exactly ------------------===//

#include "compiler/passes/quantize/SourceFormat.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

static FormatAttr integers(MLIRContext *context, Element element, int64_t group, Element scale,
                           bool hasMin = false) {
  return FormatAttr::get(context, element, group, scale, hasMin);
}

static FormatAttr floats(MLIRContext *context, Element element) {
  return FormatAttr::get(context, element, 0, Element::F32, false);
}

static FormatAttr formatOf(WeightOp op) {
  MLIRContext *context = op.getContext();
  switch (op.getEncoding()) {
  case Encoding::F64:
  case Encoding::F32:
    return floats(context, Element::F32);
  case Encoding::F16:
    return floats(context, Element::F16);
  case Encoding::BF16:
    return floats(context, Element::BF16);
  // One f16 scale (and one f16 minimum) for 32 values.
  case Encoding::Q4_0:
    return integers(context, Element::I4, 32, Element::F16);
  case Encoding::Q4_1:
    return integers(context, Element::I4, 32, Element::F16, true);
  case Encoding::Q8_0:
    return integers(context, Element::I8, 32, Element::F16);
  case Encoding::Q5_0:
    return integers(context, Element::I8, 32, Element::F16);
  case Encoding::Q5_1:
    return integers(context, Element::I8, 32, Element::F16, true);
  // An f16 super-scale times a 6-bit (8-bit for Q6_K) integer: exact in f32, not in f16.
  case Encoding::Q4_K:
    return integers(context, Element::I4, 32, Element::F32, true);
  case Encoding::Q5_K:
    return integers(context, Element::I8, 32, Element::F32, true);
  case Encoding::Q6_K:
    return integers(context, Element::I8, 16, Element::F32);
  case Encoding::Q2_K:
    return integers(context, Element::I4, 16, Element::F32, true);
  case Encoding::Q3_K:
    return integers(context, Element::I4, 16, Element::F32);
  case Encoding::Q8_K:
    return integers(context, Element::I8, 256, Element::F32);
  case Encoding::IQ4_NL:
    return integers(context, Element::I8, 32, Element::F16);
  case Encoding::MXFP4:
  case Encoding::SplitMXFP4:
    return integers(context, Element::E2M1, 32, Element::E8M0);
  case Encoding::IQ4_XS:
  case Encoding::IQ1_S:
  case Encoding::IQ2_XXS:
  case Encoding::IQ3_XXS:
  case Encoding::IQ3_S:
    return integers(context, Element::I8, 32, Element::F32);
  case Encoding::IQ1_M:
  case Encoding::IQ2_XS:
  case Encoding::IQ2_S:
    return integers(context, Element::I8, 16, Element::F32);
  case Encoding::TQ1_0:
  case Encoding::TQ2_0:
    return integers(context, Element::I4, 256, Element::F16);
  // Codes times levels that are no integers, or two scales: only the f32 values are exact.
  case Encoding::NF4:
  case Encoding::RowInt8:
  case Encoding::FP8:
    return floats(context, Element::F32);
  case Encoding::Gptq:
  case Encoding::GptqV2:
  case Encoding::Awq:
  case Encoding::PackedInt: {
    // As CheckpointForm::quantizedFormat. Columns of one group lie apart in act-order.
    int64_t block = *op.getBlock();
    if (op.getSources().size() > 3 || block % 16 != 0 || block > 4096)
      return floats(context, Element::F32);
    bool zeroPoints = op.getSources().size() == 3;
    return integers(context, op.getBits().value_or(4) == 8 ? Element::I8 : Element::I4, block,
                    op.getScaleEncoding() == Encoding::F16 && !zeroPoints ? Element::F16
                                                                          : Element::F32,
                    zeroPoints);
  }
  case Encoding::NBits:
  case Encoding::BlockInt4:
  case Encoding::BlockInt8: {
    // Groups run along the rows as `llm.linear` has them; blocks down the columns are seen through
    // a transpose only.
    bool eight = op.getEncoding() == Encoding::BlockInt8 || op.getBits().value_or(4) == 8;
    Element element = eight ? Element::I8 : Element::I4;
    bool zeroPoints = op.getSources().size() == 3;
    Element scale =
        op.getScaleEncoding() == Encoding::F16 && !zeroPoints ? Element::F16 : Element::F32;
    return integers(context, element, *op.getBlock(), scale, zeroPoints);
  }
  }
  llvm_unreachable("all encodings are handled");
}

/// What holds the values of both: different integer formats have no such format but f32 (the
/// fusions do not join them).
static FormatAttr join(FormatAttr a, FormatAttr b) {
  if (!a || !b)
    return nullptr;
  return a == b ? a : floats(a.getContext(), Element::F32);
}

FormatAttr llmc::sourceFormat(Value weight) {
  Operation *op = weight.getDefiningOp();
  if (auto source = dyn_cast_if_present<WeightOp>(op))
    return source.getBlocksDown() ? nullptr : formatOf(source);
  if (auto transpose = dyn_cast_if_present<WeightTransposeOp>(op)) {
    if (auto source = transpose.getWeight().getDefiningOp<WeightOp>();
        source && source.getBlocksDown())
      return formatOf(source);
    FormatAttr format = sourceFormat(transpose.getWeight());
    return format && !format.isInteger() ? format : nullptr;
  }
  // Experts of a layer side by side in one tensor, seen as one matrix.
  if (auto reshape = dyn_cast_if_present<WeightReshapeOp>(op);
      reshape && tensorType(reshape.getWeight()).getRank() == 3 &&
      tensorType(reshape.getResult()).getRank() == 2 &&
      dim(reshape.getWeight(), 2) == dim(reshape.getResult(), 1))
    return sourceFormat(reshape.getWeight());
  if (isa_and_present<WeightConcatOp, WeightStackOp, WeightInterleaveOp, WeightRowsOp,
                      WeightUnpermuteOp>(op)) {
    FormatAttr format = sourceFormat(op->getOperand(0));
    for (Value operand : op->getOperands().drop_front())
      format = join(format, sourceFormat(operand));
    return format;
  }
  return FormatAttr::get(weight.getContext(), Element::F32, 0, Element::F32, false);
}
