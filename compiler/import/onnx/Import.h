//===- Import.h - from an ONNX file to the graph dialect ----------------------===//
#ifndef LLMC_IMPORT_ONNX_IMPORT_H
#define LLMC_IMPORT_ONNX_IMPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringRef.h"

namespace llmc {

struct OnnxImportOptions {
  /// Since IR version 4 an initializer that is also a graph input is a default that the caller
  /// may override; it becomes an argument. With this flag it becomes a constant.
  bool foldDefaults = false;
  /// Nodes after local functions are inlined; what exceeds it is refused.
  uint64_t maxNodes = uint64_t(1) << 18;
};

/// Reads the model at \p path into a module with one `func.func @main` of the graph dialect, which
/// verifies. Arguments and results carry `graph.name` and `graph.dims`; the module carries
/// `graph.model`, a dictionary with `producer`, `ir_version`, `opset` and, from the JSON files
/// beside the model (genai_config.json, config.json, generation_config.json), `max_context` and
/// `eos_ids` where they say so. Large tensors stay in their files as `graph.weight`, named relative to the
/// folder in the module's `graph.folder`.
///
/// A failure is one diagnostic that names the file, the node where there is one, the reason and
/// what would work; the result is null then. Nothing outside the model's folder is opened.
mlir::OwningOpRef<mlir::ModuleOp> importOnnx(llvm::StringRef path, mlir::MLIRContext *context,
                                             const OnnxImportOptions &options = {});

} // namespace llmc

#endif // LLMC_IMPORT_ONNX_IMPORT_H
