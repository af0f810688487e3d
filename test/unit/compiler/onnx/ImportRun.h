//===- ImportRun.h - importing a test model, with its diagnostics -------------===//
#ifndef LLMC_TEST_ONNX_IMPORTRUN_H
#define LLMC_TEST_ONNX_IMPORTRUN_H

#include "OnnxBuilder.h"
#include "TempFolder.h"
#include "compiler/import/onnx/Import.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"

namespace onnxtest {

struct ImportRun {
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  TempFolder folder;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string ir;                  ///< the printed module
  std::vector<std::string> errors; ///< a failed import has exactly one
  std::vector<std::string> warnings;

  explicit ImportRun() = default;
  explicit ImportRun(const Model &model, const llmc::OnnxImportOptions &options = {}) {
    importFile(folder.write("model.onnx", model.file()), options);
  }
  void importFile(const std::string &path, const llmc::OnnxImportOptions &options = {}) {
    mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
      (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error ? errors : warnings)
          .push_back(diagnostic.str());
      return mlir::success();
    });
    module = llmc::importOnnx(path, &context, options);
    if (module) {
      llvm::raw_string_ostream stream(ir);
      module->print(stream);
    }
  }
  /// The one error, or what is there instead.
  std::string error() const {
    if (errors.size() == 1 && !module)
      return errors[0];
    return module ? "imported: " + ir : std::to_string(errors.size()) + " errors";
  }
  bool has(const std::string &text) const { return ir.find(text) != std::string::npos; }
};

/// A model of one node with float inputs of the given shapes, and one output of any shape.
inline Model oneNode(int64_t opset, const Message &theNode, const std::vector<Message> &inputs,
                     const std::vector<Message> &initializers = {}, int outputType = Float) {
  Model model;
  model.opset = opset;
  model.nodes = {theNode};
  model.inputs = inputs;
  model.initializers = initializers;
  model.outputs = {anyShape("y", outputType)};
  return model;
}

} // namespace onnxtest

#endif // LLMC_TEST_ONNX_IMPORTRUN_H
