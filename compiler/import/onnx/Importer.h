//===- Importer.h - what stands behind importOnnx -----------------------------===//
#ifndef LLMC_IMPORT_ONNX_IMPORTER_H
#define LLMC_IMPORT_ONNX_IMPORTER_H

#include "compiler/import/onnx/Import.h"
#include "compiler/import/onnx/Node.h"
#include "compiler/import/onnx/Tensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace llmc::onnx {

/// The values that names stand for in a graph, a branch or a function body.
struct Scope {
  Scope *outer = nullptr; ///< the graph that a branch is part of; none for a function body
  llvm::StringMap<mlir::Value> values;
  /// Initializers that no node has used yet.
  llvm::StringMap<const TensorView *> initializers;
  /// Outputs of later nodes, by name, with the node's name: for the message about a wrong order.
  llvm::StringMap<llvm::StringRef> later;
};

/// A call of a local function, or the main graph.
struct Frame {
  const FunctionView *function = nullptr;
  const Frame *caller = nullptr;
  llvm::StringMap<int64_t> opsets;
  /// The attributes of the call, defaults included.
  llvm::StringMap<AttributeView> attributes;
  std::string prefix; ///< before the names of nodes
  unsigned depth = 0;
};

class Importer {
public:
  Importer(std::string path, llvm::ArrayRef<uint8_t> file, const ModelView &model,
           mlir::MLIRContext *context, const OnnxImportOptions &options);

  mlir::OwningOpRef<mlir::ModuleOp> run();

  // For Node and the operator families.
  mlir::OpBuilder builder;
  ShapeInference shapes;
  mlir::LogicalResult fail(mlir::Location loc, const llvm::Twine &message);
  /// A constant or a weight for \p tensor; null after a failure, which names \p loc and \p where.
  /// \p isNamed: it is an initializer, which may be a weight even if it is small.
  mlir::Value materialize(const TensorView &tensor, mlir::Location loc, bool isNamed,
                          llvm::function_ref<mlir::LogicalResult(const llvm::Twine &)> report);
  /// Values of a tensor that is small.
  mlir::ElementsAttr elements(const TensorView &tensor,
                              llvm::function_ref<mlir::LogicalResult(const llvm::Twine &)> report);
  /// Imports a branch of the node as part of the present block and returns its outputs.
  mlir::FailureOr<llvm::SmallVector<mlir::Value>> inlineBranch(Node &node, const GraphView &graph);
  /// The same for a body whose inputs have the values \p arguments.
  mlir::FailureOr<llvm::SmallVector<mlir::Value>> inlineBody(Node &node, const GraphView &graph,
                                                             llvm::ArrayRef<mlir::Value> arguments);
  /// The type of a value as a graph declares it; null after a report.
  mlir::Type declaredType(const ValueView &value,
                          llvm::function_ref<mlir::LogicalResult(const llvm::Twine &)> report);

private:
  mlir::LogicalResult checkOpsets(Frame &frame, llvm::ArrayRef<OpsetView> opsets,
                                  llvm::StringRef where);
  mlir::LogicalResult indexFunctions();
  mlir::LogicalResult declareInitializers(const GraphView &graph, Scope &scope);
  mlir::LogicalResult importNodes(llvm::ArrayRef<NodeView> nodes, Scope &scope, const Frame &frame);
  mlir::LogicalResult importNode(const NodeView &view, unsigned index, Scope &scope,
                                 const Frame &frame);
  mlir::LogicalResult importOperator(Node &node);
  mlir::LogicalResult inlineFunction(Node &node, const FunctionView &function);
  mlir::LogicalResult resolveInputs(Node &node);
  mlir::FailureOr<mlir::Value>
  lookup(llvm::StringRef name, Scope &scope, mlir::Location user,
         llvm::function_ref<mlir::LogicalResult(const llvm::Twine &)> report);
  // Interface.cpp: what the graph takes and gives.
  mlir::LogicalResult addArguments(mlir::func::FuncOp function, Scope &scope);
  mlir::FailureOr<mlir::DictionaryAttr>
  addArgument(const ValueView &input, const TensorView *fallback, mlir::Block &entry, Scope &scope);
  mlir::LogicalResult addResults(mlir::func::FuncOp function, Scope &scope);

  std::string path;
  std::string fileName;
  const ModelView &model;
  const OnnxImportOptions &options;
  TensorReader tensors;
  llvm::StringMap<const FunctionView *> functions;
  mlir::Block *entryBlock = nullptr; ///< of the function
  uint64_t numNodes = 0;
  unsigned graphDepth = 0;
};

} // namespace llmc::onnx

#endif // LLMC_IMPORT_ONNX_IMPORTER_H
