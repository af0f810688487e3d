//===- OnnxFuzzer.cpp - any bytes as an ONNX model ---------------------------------===//
//
// What imports must verify; what doesn't must say why, in a diagnostic.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/onnx/Import.h"
#include "dialects/graph/GraphDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "test/fuzz/InputFile.h"

using namespace mlir;
using namespace llmc;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static MLIRContext *context = [] {
    auto *made = new MLIRContext(MLIRContext::Threading::DISABLED);
    made->loadDialect<func::FuncDialect, graph::GraphDialect>();
    return made;
  }();
  const fuzz::InputFile input(data, size);
  bool said = false;
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &) { return said = true, success(); });
  OnnxImportOptions options;
  options.maxNodes = 4096;
  OwningOpRef<ModuleOp> module = importOnnx(input.path(), context, options);
  if (!module ? !said : failed(verify(*module)))
    std::abort();
  return 0;
}
