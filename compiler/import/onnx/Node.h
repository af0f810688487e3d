//===- Node.h - an ONNX node as the operator families see it ------------------===//
//
// A handler reads a node's inputs and attributes from this view and emits graph operations. The
// first failure is reported, with the node's name, and sticks: what is read after it is a default,
// so that a handler needs no check after every line.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_IMPORT_ONNX_NODE_H
#define LLMC_IMPORT_ONNX_NODE_H

#include "compiler/import/onnx/Model.h"
#include "compiler/import/onnx/ShapeInference.h"
#include "dialects/graph/GraphDialect.h"
#include "llvm/ADT/StringSet.h"

namespace llmc::onnx {

class Importer;
struct Frame;
struct Scope;

/// The MLIR type of an element type; null for those that tensors of the graph dialect don't have.
mlir::Type mlirElementType(mlir::MLIRContext *context, DataType type);

class Node {
public:
  Node(Importer &importer, const NodeView &view, Scope &scope, const Frame &frame,
       mlir::Location loc, int64_t version);

  const NodeView &view;
  Scope &scope;
  const Frame &frame;
  Importer &importer;
  mlir::Location loc;
  int64_t version; ///< of the operator set that the node's domain is imported with
  mlir::OpBuilder &builder;

  // Inputs. A missing one, or one named "", is null; the required ones are there.
  unsigned numInputs() const { return static_cast<unsigned>(inputs.size()); }
  mlir::Value input(unsigned i) const { return i < inputs.size() ? inputs[i] : mlir::Value(); }
  mlir::Type elementType(unsigned i = 0) const;
  /// Rank of an input; none if not known.
  std::optional<int64_t> rank(unsigned i = 0) const;
  const ShapeInference &shapes() const;
  llvm::SmallVector<mlir::Value, 4> inputs;

  // Outputs.
  bool hasOutput(unsigned i) const { return i < view.outputs.size() && !view.outputs[i].empty(); }
  unsigned numOutputs() const { return static_cast<unsigned>(view.outputs.size()); }
  /// Gives output \p i its value; a handler does this for every output that hasOutput.
  void set(unsigned i, mlir::Value value);

  // Attributes, looked up through the enclosing function's where they refer to one. A wrong type
  // is a failure. An attribute that no handler asked for is a failure, too.
  bool has(llvm::StringRef name);
  int64_t intAttr(llvm::StringRef name, int64_t fallback);
  bool boolAttr(llvm::StringRef name, bool fallback) { return intAttr(name, fallback) != 0; }
  int64_t requiredInt(llvm::StringRef name);
  float floatAttr(llvm::StringRef name, float fallback);
  llvm::StringRef stringAttr(llvm::StringRef name, llvm::StringRef fallback);
  std::optional<llvm::SmallVector<int64_t>> intsAttr(llvm::StringRef name);
  std::optional<llvm::SmallVector<float>> floatsAttr(llvm::StringRef name);
  std::optional<std::vector<llvm::StringRef>> stringsAttr(llvm::StringRef name);
  /// The attribute itself; null if there is none.
  const AttributeView *attribute(llvm::StringRef name);
  /// Says that the attribute has no bearing on the result.
  void ignore(llvm::StringRef name) { (void)attribute(name); }
  /// Fails unless every attribute was asked for.
  void checkAttributes();

  // Failure.
  bool failed() const { return hasFailed; }
  mlir::LogicalResult fail(const llvm::Twine &reason);

  // Emitting operations. Results get the shapes that follow from the operands.
  /// An operation with one result of the element type \p element.
  template <typename Op, typename... Args> mlir::Value emit(mlir::Type element, Args &&...args) {
    if (hasFailed)
      return placeholder(element);
    auto op = Op::create(builder, loc, mlir::UnrankedTensorType::get(element),
                         std::forward<Args>(args)...);
    infer(op);
    return op->getResult(0);
  }
  /// Gives the results of \p op their shapes.
  void infer(mlir::Operation *op);
  mlir::Value constant(mlir::ElementsAttr value);
  /// A one-dimensional i64 constant.
  mlir::Value indices(llvm::ArrayRef<int64_t> values);
  /// A constant scalar of any element type.
  mlir::Value scalar(mlir::Type element, double value);
  mlir::Value unary(graph::UnaryKind kind, mlir::Value x);
  mlir::Value binary(graph::BinaryKind kind, mlir::Value a, mlir::Value b);
  mlir::Value compare(graph::CompareKind kind, mlir::Value a, mlir::Value b);
  mlir::Value cast(mlir::Value x, mlir::Type element);
  /// A graph.library: operands may be null, results have the types \p results (an element type
  /// stands for a tensor of any shape).
  llvm::SmallVector<mlir::Value> library(llvm::StringRef kernel, mlir::Type element,
                                         llvm::ArrayRef<mlir::Type> results,
                                         llvm::ArrayRef<mlir::Value> operands,
                                         llvm::ArrayRef<int64_t> integers = {},
                                         llvm::ArrayRef<double> reals = {});
  /// The same with one tensor of \p element as its result.
  mlir::Value libraryOne(llvm::StringRef kernel, mlir::Type element,
                         llvm::ArrayRef<mlir::Value> operands,
                         llvm::ArrayRef<int64_t> integers = {}, llvm::ArrayRef<double> reals = {}) {
    return library(kernel, element, element, operands, integers, reals)[0];
  }
  /// The element type of any value, of a sequence's tensors too.
  static mlir::Type elementOf(mlir::Type type);
  mlir::Value shapeOf(mlir::Value x);
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<int64_t> shape);
  mlir::Value reduce(graph::ReduceKind kind, mlir::Value x, mlir::Value axes, bool keepdims = true);
  mlir::Value add(mlir::Value a, mlir::Value b) { return binary(graph::BinaryKind::Add, a, b); }
  mlir::Value sub(mlir::Value a, mlir::Value b) { return binary(graph::BinaryKind::Sub, a, b); }
  mlir::Value mul(mlir::Value a, mlir::Value b) { return binary(graph::BinaryKind::Mul, a, b); }
  mlir::Value div(mlir::Value a, mlir::Value b) { return binary(graph::BinaryKind::Div, a, b); }

private:
  mlir::Value placeholder(mlir::Type element);

  bool hasFailed = false;
  llvm::StringSet<> asked;
  /// What attribute() returned for a name that a function attribute is bound to.
  llvm::StringMap<AttributeView> bound;
};

} // namespace llmc::onnx

#endif // LLMC_IMPORT_ONNX_NODE_H
