//===- ModelInputs.h - What each input and output of a decoder graph is -*- C++ -*-===//

#ifndef LLMC_COMPILER_PASSES_RAISE_MODELINPUTS_H
#define LLMC_COMPILER_PASSES_RAISE_MODELINPUTS_H

#include "dialects/graph/GraphDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace llmc::raise {

enum class Role {
  TokenIds,
  AttentionMask,
  PositionIds,
  PastKey,
  PastValue,
  Logits,
  PresentKey,
  PresentValue,
  Other
};

/// A role and, for caches, the number in the name, which is the layer.
struct Binding {
  Role role = Role::Other;
  int64_t layer = -1;
};

/// The role that a name has in the files of optimum, the torch exporter and ONNX Runtime GenAI:
/// input_ids, attention_mask, position_ids, past_key_values.N.key, past.N.value, past_key_N,
/// logits, present.N.key, ...
Binding bindName(llvm::StringRef name);

/// The name of an argument or result, "" if it has none.
llvm::StringRef argumentName(mlir::func::FuncOp func, unsigned index);
llvm::StringRef resultName(mlir::func::FuncOp func, unsigned index);

} // namespace llmc::raise

#endif
