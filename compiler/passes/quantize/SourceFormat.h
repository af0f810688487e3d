//===- SourceFormat.h - the format that holds a weight exactly -------------------===//
#ifndef LLMC_COMPILER_PASSES_QUANTIZE_SOURCEFORMAT_H
#define LLMC_COMPILER_PASSES_QUANTIZE_SOURCEFORMAT_H

#include "dialects/llm/LlmDialect.h"

namespace llmc {

/// The narrowest plan format that holds every value of the weight expression \p weight with no
/// rounding: a float type for floats, groups of integers for what the source has quantized. Views
/// keep it; a join of different ones is f32. Null for a
/// transposed quantized weight, whose groups lie across the rows.
llm::FormatAttr sourceFormat(mlir::Value weight);

} // namespace llmc

#endif // LLMC_COMPILER_PASSES_QUANTIZE_SOURCEFORMAT_H
