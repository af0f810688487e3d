//===- ShapeRules.h - how each operation's shape follows from its operands ----===//
#ifndef LLMC_IMPORT_ONNX_SHAPERULES_H
#define LLMC_IMPORT_ONNX_SHAPERULES_H

#include "compiler/import/onnx/ShapeInference.h"

namespace llmc::onnx {

/// One rule an operation; a rule leaves a result's entry of `results` empty when not even the
/// rank is known, and reports operands that can't go together.
struct ShapeRules {
  ShapeInference &known;
  ShapeInference::Report report;
  llvm::MutableArrayRef<std::optional<Dims>> results;

  mlir::LogicalResult apply(mlir::Operation *op);

  // ShapeRules.cpp: shapes and indices
  mlir::LogicalResult rule(graph::ReshapeOp op);
  mlir::LogicalResult rule(graph::FlattenOp op);
  mlir::LogicalResult rule(graph::SqueezeOp op);
  mlir::LogicalResult rule(graph::UnsqueezeOp op);
  mlir::LogicalResult rule(graph::ExpandOp op);
  mlir::LogicalResult rule(graph::TileOp op);
  mlir::LogicalResult rule(graph::TransposeOp op);
  mlir::LogicalResult rule(graph::ConcatOp op);
  // ShapeRulesSlice.cpp
  mlir::LogicalResult rule(graph::SplitOp op);
  mlir::LogicalResult rule(graph::SliceOp op);
  mlir::LogicalResult rule(graph::PadOp op);
  mlir::LogicalResult rule(graph::RangeOp op);
  // ShapeRulesMath.cpp: everything else
  mlir::LogicalResult rule(graph::GatherOp op);
  mlir::LogicalResult rule(graph::GatherNDOp op);
  mlir::LogicalResult rule(graph::OneHotOp op);
  mlir::LogicalResult rule(graph::TopKOp op);
  mlir::LogicalResult rule(graph::ReduceOp op);
  mlir::LogicalResult rule(graph::ArgReduceOp op);
  mlir::LogicalResult rule(graph::MatMulOp op);
  mlir::LogicalResult rule(graph::GemmOp op);
  mlir::LogicalResult rule(graph::DequantizeNBitsOp op);
  mlir::LogicalResult rule(graph::MatMulNBitsOp op);
  mlir::LogicalResult rule(graph::AttentionOp op);
  mlir::LogicalResult rule(graph::GroupQueryAttentionOp op);

  // Helpers of the rules.
  std::optional<Dims> shape(mlir::Value value) { return known.shape(value); }
  /// \p axis counted from the front; none, with a report, if it is outside [-rank, rank).
  std::optional<int64_t> axis(int64_t axis, int64_t rank);
  /// The same for a list, with a report for one that comes twice.
  std::optional<llvm::SmallVector<int64_t>> axes(llvm::ArrayRef<int64_t> axes, int64_t rank);
  /// Broadcasts \p more into \p dims.
  mlir::LogicalResult broadcastInto(Dims &dims, const Dims &more);
  mlir::LogicalResult broadcastAll(mlir::ValueRange operands);
  Dim sum(Dim a, Dim b) { return known.sum(a, b); }
  /// Number of elements of the one-dimensional \p value, if known.
  std::optional<int64_t> length(mlir::Value value);
  mlir::LogicalResult set(Dims dims) {
    results[0] = std::move(dims);
    return mlir::success();
  }
  mlir::LogicalResult unknown() { return mlir::success(); }
};

/// "[?, 3, 64]"
std::string toString(llvm::ArrayRef<Dim> dims);

} // namespace llmc::onnx

#endif // LLMC_IMPORT_ONNX_SHAPERULES_H
