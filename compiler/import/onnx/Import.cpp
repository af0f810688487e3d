//===- Import.cpp - from an ONNX file to the graph dialect --------------------===//
#include "compiler/import/onnx/Import.h"

#include "compiler/import/common/MappedFile.h"
#include "compiler/import/onnx/Importer.h"
#include "compiler/import/onnx/ModelConfig.h"
#include "dialects/graph/NodeLocation.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/Path.h"

using namespace llmc;
using namespace llmc::onnx;
using namespace mlir;

/// Verifies \p module; the first failure is reported under the name of its node.
static LogicalResult verifyNamingNodes(ModuleOp module, llvm::StringRef fileName) {
  std::string message;
  Location place = module.getLoc();
  {
    ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
      if (message.empty() && diagnostic.getSeverity() == DiagnosticSeverity::Error) {
        message = diagnostic.str();
        place = diagnostic.getLocation();
      }
      return success();
    });
    if (succeeded(mlir::verify(module)))
      return success();
  }
  std::string node = graph::nodeName(place).str();
  emitError(place) << fileName << ": " << (node.empty() ? "" : "node '" + node + "': ") << message;
  return failure();
}

OwningOpRef<ModuleOp> llmc::importOnnx(llvm::StringRef path, MLIRContext *context,
                                       const OnnxImportOptions &options) {
  context->loadDialect<graph::GraphDialect, func::FuncDialect>();
  auto error = [&](const llvm::Twine &message) {
    emitError(UnknownLoc::get(context)) << message;
    return OwningOpRef<ModuleOp>();
  };
  auto file = MappedFile::open(path.str());
  if (!file)
    return error(file.status().message());
  llvm::ArrayRef<uint8_t> bytes(file->bytes().data(), file->bytes().size());
  llvm::Expected<ModelView> model = parseModel(bytes);
  if (!model)
    return error(path + ": " + llvm::toString(model.takeError()));
  OwningOpRef<ModuleOp> module = Importer(path.str(), bytes, *model, context, options).run();
  llvm::StringRef fileName = llvm::sys::path::filename(path);
  if (!module || failed(verifyNamingNodes(*module, fileName)) ||
      failed(attachModelConfig(*module, llvm::sys::path::parent_path(path))))
    return nullptr;
  return module;
}
