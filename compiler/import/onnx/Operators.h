//===- Operators.h - the table of ONNX operators ------------------------------===//
//
// One row says from which operator set on an operator has the meaning that its handler gives it.
// A row is added for every version that changed the meaning, not for those that only allowed more
// element types. To add an operator: write its handler in the file of its family and add its row
// at the end of that file.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_IMPORT_ONNX_OPERATORS_H
#define LLMC_IMPORT_ONNX_OPERATORS_H

#include "compiler/import/onnx/Node.h"

namespace llmc::onnx {

using Handler = mlir::LogicalResult (*)(Node &);

constexpr unsigned variadic = ~0u;

struct Operator {
  int64_t since;      ///< version of the operator set
  unsigned minInputs; ///< so many inputs must be given
  unsigned maxInputs;
  unsigned maxOutputs;
  Handler handler;
  bool takesAny = false; ///< its inputs may be sequences and optionals
};

class OperatorTable {
public:
  void add(llvm::StringRef domain, llvm::StringRef name, Operator row);

  /// The rows of an operator by version, oldest first; empty for an unknown one.
  llvm::ArrayRef<Operator> rows(llvm::StringRef domain, llvm::StringRef name) const;
  /// Whether any operator of \p domain is known.
  bool knowsDomain(llvm::StringRef domain) const { return domains.contains(domain); }
  /// Known operators whose name is like \p name, for messages.
  llvm::StringRef nearest(llvm::StringRef domain, llvm::StringRef name) const;

  /// All operators there are.
  static const OperatorTable &get();
  /// The newest version of ai.onnx whose changes the table takes into account.
  static constexpr int64_t newestOpset = 28;

private:
  llvm::StringMap<llvm::SmallVector<Operator, 2>> table;
  llvm::StringSet<> domains;
};

/// What the body of a loop declares of the tensors that it stacks, its last outputs, to \p scans,
/// as graph.loop has it.
mlir::ArrayAttr scanShapes(mlir::OpBuilder &builder, const GraphView &body, mlir::TypeRange scans);

// One function a family; each adds the family's rows.
void addMathOps(OperatorTable &table);
void addActivationOps(OperatorTable &table);
void addConstantOps(OperatorTable &table);
void addShapeOps(OperatorTable &table);
void addIndexOps(OperatorTable &table);
void addReduceOps(OperatorTable &table);
void addNormOps(OperatorTable &table);
void addAttentionOps(OperatorTable &table);
void addQuantOps(OperatorTable &table);
void addContribOps(OperatorTable &table);
void addControlOps(OperatorTable &table);
void addScanOps(OperatorTable &table);
void addSequenceOps(OperatorTable &table);
void addSpatialOps(OperatorTable &table);
void addResizeOps(OperatorTable &table);
void addSignalOps(OperatorTable &table);
void addRecurrentOps(OperatorTable &table);
void addLossOps(OperatorTable &table);
void addWindowOps(OperatorTable &table);
void addLinearAttentionOps(OperatorTable &table);
void addFeatureOps(OperatorTable &table);
void addMixtureOps(OperatorTable &table);

} // namespace llmc::onnx

#endif // LLMC_IMPORT_ONNX_OPERATORS_H
