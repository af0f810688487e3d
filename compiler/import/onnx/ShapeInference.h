//===- ShapeInference.h - shapes of graph operations at import ----------------===//
//
// Gives the results of a graph operation the shapes that follow from its operands. A dimension is
// a number, a symbol (the same symbol always has the same value at run time) or unknown; symbols
// begin as the named dimensions of the model's inputs. Exporters compute shapes with tensors
// (Shape, Gather, Concat, Reshape), so the elements of small integer tensors are followed too:
// that is what turns Reshape(x, [batch, sequence, -1]) into [?, ?, 576].
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_IMPORT_ONNX_SHAPEINFERENCE_H
#define LLMC_IMPORT_ONNX_SHAPEINFERENCE_H

#include "dialects/graph/GraphDialect.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include <optional>

namespace llmc::onnx {

/// A dimension, or an element of a small integer tensor.
struct Dim {
  enum Kind : uint8_t { Unknown, Number, Symbol } kind = Unknown;
  int64_t value = 0; ///< the number, or which symbol; a symbol is never negative at run time

  static Dim number(int64_t value) { return {Number, value}; }
  static Dim symbol(int64_t id) { return {Symbol, id}; }
  bool isNumber() const { return kind == Number; }
  bool is(int64_t number) const { return kind == Number && value == number; }
  /// Both have the same value at run time, for certain.
  bool same(Dim other) const {
    return kind != Unknown && kind == other.kind && value == other.value;
  }
};
using Dims = llvm::SmallVector<Dim, 4>;

class ShapeInference {
public:
  /// Reports what is wrong with the operation at hand.
  using Report = llvm::function_ref<mlir::LogicalResult(const llvm::Twine &)>;

  /// The symbol that \p name stands for.
  Dim named(llvm::StringRef name);
  /// Declares the dimensions of a value that no operation defines.
  void declare(mlir::Value value, Dims dims) { shapes[value] = std::move(dims); }
  /// To be called before \p value goes away: its address may be used again.
  void forget(mlir::Value value) {
    shapes.erase(value);
    known.erase(value);
  }
  /// Sets the shapes in the result types of \p op and notes what its results hold. Operands that
  /// can't go together (no broadcast, an axis beyond the rank) are reported.
  mlir::LogicalResult infer(mlir::Operation *op, Report report);

  /// The dimensions of \p value; none if its rank is not known.
  std::optional<Dims> shape(mlir::Value value) const;
  /// The elements of \p value in row-major order, if it is a small integer or boolean tensor of
  /// rank 0 or 1 of known size.
  const Dims *elements(mlir::Value value) const;
  /// The same as numbers, if they all are.
  std::optional<llvm::SmallVector<int64_t>> numbers(mlir::Value value) const;

private:
  friend struct ShapeRules;
  /// Follows elements through \p op; in KnownElements.cpp.
  std::optional<Dims> inferElements(mlir::Operation *op) const;
  Dim sum(Dim a, Dim b) const;
  /// a - b, where it is certain not to be negative.
  Dim difference(Dim a, Dim b) const;

  llvm::DenseMap<mlir::Value, Dims> shapes;
  llvm::DenseMap<mlir::Value, Dims> known;
  mutable llvm::StringMap<int64_t> symbols;
  /// The two parts of a symbol that is a sum.
  mutable llvm::DenseMap<int64_t, std::pair<Dim, Dim>> sums;
};

/// The type with these dimensions; null if it has more than 2^60 elements.
mlir::RankedTensorType rankedType(llvm::ArrayRef<Dim> dims, mlir::Type element);
/// Dimension of the broadcast of \p a and \p b; none if they don't go together.
std::optional<Dim> broadcast(Dim a, Dim b);

} // namespace llmc::onnx

#endif // LLMC_IMPORT_ONNX_SHAPEINFERENCE_H
