//===- KernelFormat.h - a weight's format as constants of a kernel --------------===//
#ifndef LLMC_COMPILER_PASSES_PLAN_KERNELFORMAT_H
#define LLMC_COMPILER_PASSES_PLAN_KERNELFORMAT_H

#include "compiler/passes/plan/ProgramBuilder.h"
#include "compiler/quantize/Pack.h"

namespace llmc {

/// The packing of a matrix in \p format (null: f32 rows).
WeightFormat weightFormat(llm::FormatAttr format);

/// Bytes of a packed [rows, columns] matrix.
int64_t packedBytes(llm::FormatAttr format, int64_t rows, int64_t columns);

/// Adds w_element, w_packing, ... to a kernel's constants.
void appendFormat(llvm::SmallVectorImpl<PlanConstant> &constants, llm::FormatAttr format);

} // namespace llmc

#endif // LLMC_COMPILER_PASSES_PLAN_KERNELFORMAT_H
