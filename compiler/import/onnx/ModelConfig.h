//===- ModelConfig.h - what the JSON files beside an ONNX model say -----------===//
#ifndef LLMC_IMPORT_ONNX_MODELCONFIG_H
#define LLMC_IMPORT_ONNX_MODELCONFIG_H

#include "mlir/IR/BuiltinOps.h"

namespace llmc::onnx {

/// Adds `max_context` (i64) and `eos_ids` (array of i64) to `graph.model` from the files in \p
/// folder that are there: genai_config.json (ONNX Runtime GenAI) first, then
/// generation_config.json and config.json (Hugging Face). A file that is there but is not what it
/// should be is an error.
mlir::LogicalResult attachModelConfig(mlir::ModuleOp module, llvm::StringRef folder);

} // namespace llmc::onnx

#endif // LLMC_IMPORT_ONNX_MODELCONFIG_H
