//===- Diagnostics.h - MLIR's diagnostics as one message ---------------------------------===//
#ifndef LLMC_COMPILER_DRIVER_DIAGNOSTICS_H
#define LLMC_COMPILER_DRIVER_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"

#include <string>
#include <vector>

namespace llmc {

/// Keeps the errors and remarks of a context for as long as it lives. The first error is the
/// message of a failed compilation: what follows is mostly its consequence.
class DiagnosticCollector {
public:
  DiagnosticCollector(mlir::MLIRContext *context, std::string model);

  /// "model.onnx: node 'layers.3/attn': ...", or \p fallback when nothing was reported.
  std::string error(llvm::StringRef fallback);
  std::vector<std::string> takeRemarks();

private:
  std::string format(mlir::Diagnostic &diagnostic);

  std::string model_;
  std::mutex mutex_;
  std::vector<std::string> errors_, remarks_;
  mlir::ScopedDiagnosticHandler handler_;
};

} // namespace llmc

#endif // LLMC_COMPILER_DRIVER_DIAGNOSTICS_H
