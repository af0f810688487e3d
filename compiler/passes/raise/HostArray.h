//===- HostArray.h - A small array that the compiler computes with -*- C++ -*-===//
//
// The values that raise passes look at: shapes, masks, positions, rotary tables. Floats are kept as
// doubles that are rounded to their element type after every operation, integers (and bools) as
// int64 wrapped to their width, so that a folded value has the bits that a run would have given.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_PASSES_RAISE_HOSTARRAY_H
#define LLMC_COMPILER_PASSES_RAISE_HOSTARRAY_H

#include "dialects/graph/GraphDialect.h"
#include <memory>
#include <optional>
#include <vector>

namespace llmc::raise {

using Shape = llvm::SmallVector<int64_t, 6>;

/// Elements of a shape, or nothing if it has a negative dimension or more than `limit` elements.
std::optional<int64_t> countElements(llvm::ArrayRef<int64_t> shape, int64_t limit = int64_t(1)
                                                                                    << 40);

/// Row-major strides in elements.
Shape stridesOf(llvm::ArrayRef<int64_t> shape);

struct HostArray {
  Shape shape;
  mlir::Type type; ///< Element type: FloatType or IntegerType.
  std::vector<double> floats;
  std::vector<int64_t> ints;

  HostArray() = default;
  HostArray(mlir::Type type, llvm::ArrayRef<int64_t> shape);

  bool isFloat() const { return llvm::isa<mlir::FloatType>(type); }
  int64_t size() const { return isFloat() ? floats.size() : ints.size(); }
  double number(int64_t i) const { return isFloat() ? floats[i] : static_cast<double>(ints[i]); }
  /// Stores with rounding or wrapping to the element type.
  void set(int64_t i, double value);
  void set(int64_t i, int64_t value);
  /// Copies element `j` of an array of the same type, bit for bit.
  void copy(int64_t i, const HostArray &from, int64_t j) {
    if (isFloat())
      floats[i] = from.floats[j];
    else
      ints[i] = from.ints[j];
  }
  bool equals(const HostArray &other) const;
};

using HostArrayRef = std::shared_ptr<const HostArray>;

/// A double rounded to a float type, to nearest even; infinities as they come.
double roundTo(mlir::Type type, double value);
/// An integer wrapped to the width and sign of an integer type (i1: 0 or 1).
int64_t wrapTo(mlir::Type type, int64_t value);

/// The values of a constant, or null for element types wider than 64 bits.
HostArrayRef fromElements(mlir::ElementsAttr attr);
/// The array as a dense constant of type tensor<shape x type>.
mlir::DenseElementsAttr toElements(const HostArray &array);

/// Reads a weight from its file; null if the file cannot be read, is too short, or has more than
/// `maxElements`.
HostArrayRef readWeight(graph::WeightOp weight, int64_t maxElements);

} // namespace llmc::raise

#endif
