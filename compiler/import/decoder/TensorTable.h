//===- TensorTable.h - the tensors of a checkpoint, each to be used once --------===//
#ifndef LLMC_IMPORT_DECODER_TENSORTABLE_H
#define LLMC_IMPORT_DECODER_TENSORTABLE_H

#include "compiler/import/common/WeightEncoding.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/StringMap.h"

namespace llmc {

/// One tensor of a checkpoint, as the reader of its format found it.
struct TensorEntry {
  std::string name;
  llvm::SmallVector<int64_t, 4> shape; ///< outermost dimension first
  WeightEncoding encoding = WeightEncoding::F32;
  std::string unsupported; ///< why its values can't be read; empty: they can
  uint32_t file = 0;       ///< index into files
  uint64_t offset = 0, size = 0;

  // Forms of pre-quantized checkpoints: what is stored beside the codes, in the order of
  // `llm.weight`, and how to read it.
  struct Part {
    uint32_t file;
    uint64_t offset, size;
  };
  llvm::SmallVector<Part, 0> parts; ///< empty for other encodings
  int64_t block = 0, bits = 4;
  WeightEncoding scaleEncoding = WeightEncoding::F32;
  float scaleOffset = 0;
};

/// What a checkpoint holds. Importers take what a model needs by name and shape; what is left over
/// at the end is an error, since a model with a part that wasn't looked at is another model.
class TensorTable {
public:
  std::vector<std::string> files; ///< names below the model's folder

  void add(TensorEntry entry);
  bool has(llvm::StringRef name) const { return index.contains(name); }

  /// The tensor as an `llm.weight`, made once. Fails, with an error at \p loc, when it is missing,
  /// has another shape than \p shape, or a type that isn't read.
  mlir::FailureOr<mlir::Value> take(mlir::OpBuilder &builder, mlir::Location loc,
                                    llvm::StringRef name, llvm::ArrayRef<int64_t> shape);
  /// Marks a tensor as known and not needed.
  void ignore(llvm::StringRef name);
  /// Marks those that \p isKnown accepts.
  void ignoreIf(llvm::function_ref<bool(llvm::StringRef)> isKnown);
  /// Fails when a tensor was neither taken nor ignored, naming some.
  mlir::LogicalResult checkAllUsed(mlir::Location loc, llvm::StringRef architecture) const;

private:
  struct Slot {
    TensorEntry entry;
    bool used = false;
    mlir::Value value;
  };
  std::vector<Slot> slots;
  llvm::StringMap<size_t> index;
};

} // namespace llmc

#endif // LLMC_IMPORT_DECODER_TENSORTABLE_H
