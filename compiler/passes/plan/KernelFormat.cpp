//===- KernelFormat.cpp - a weight's format as constants of a kernel ------------===//

#include "compiler/passes/plan/KernelFormat.h"

using namespace mlir;
using namespace llmc;

WeightFormat llmc::weightFormat(llm::FormatAttr format) {
  WeightFormat result;
  if (!format) {
    result.packing = Packing::Rows;
    return result;
  }
  // The enums of the dialect and of the packing have the numbers of plan.fbs.
  result.element = static_cast<Element>(format.getElement());
  result.packing = format.isInteger() ? Packing::N16K4 : Packing::N16;
  result.group = static_cast<uint32_t>(format.getGroup());
  if (format.isInteger())
    result.scale = static_cast<Element>(format.getScale());
  result.hasMin = format.getHasMin();
  if (result.hasMin)
    result.min = result.scale;
  return result;
}

int64_t llmc::packedBytes(llm::FormatAttr format, int64_t rows, int64_t columns) {
  return static_cast<int64_t>(
      packedBytes(weightFormat(format), static_cast<uint64_t>(rows), static_cast<uint64_t>(columns))
          .value_or(0));
}

void llmc::appendFormat(SmallVectorImpl<PlanConstant> &constants, llm::FormatAttr format) {
  WeightFormat f = weightFormat(format);
  constants.push_back({"w_element", static_cast<int64_t>(f.element)});
  constants.push_back({"w_packing", static_cast<int64_t>(f.packing)});
  constants.push_back({"w_group", static_cast<int64_t>(f.group)});
  constants.push_back({"w_scale", static_cast<int64_t>(f.scale)});
  constants.push_back({"w_has_min", static_cast<int64_t>(f.hasMin)});
  constants.push_back({"w_min", static_cast<int64_t>(f.min)});
}
