//===- LlmDialect.h - the llm dialect ----------------------------------------===//
#ifndef LLMC_DIALECTS_LLM_LLMDIALECT_H
#define LLMC_DIALECTS_LLM_LLMDIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Attributes.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/llm/LlmDialect.h.inc"
#include "dialects/llm/LlmEnums.h.inc"

namespace llmc::llm {

/// The ranked tensor type of \p value, and its dimension \p i.
inline mlir::RankedTensorType tensorType(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}
inline int64_t dim(mlir::Value value, unsigned i) { return tensorType(value).getDimSize(i); }

} // namespace llmc::llm

#define GET_ATTRDEF_CLASSES
#include "dialects/llm/LlmAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/llm/LlmTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/llm/LlmOps.h.inc"

namespace llmc::llm {

/// Names of the module attributes (see the dialect's description).
inline constexpr llvm::StringLiteral kFilesAttr = "llm.files";
inline constexpr llvm::StringLiteral kModelAttr = "llm.model";
/// The function that a module in the llm dialect defines.
inline constexpr llvm::StringLiteral kStepFunction = "step";

} // namespace llmc::llm

#endif // LLMC_DIALECTS_LLM_LLMDIALECT_H
