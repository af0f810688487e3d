//===- LlamaBuilder.h - decoders of the Llama kind in the llm dialect -----------===//
#ifndef LLMC_IMPORT_DECODER_LLAMABUILDER_H
#define LLMC_IMPORT_DECODER_LLAMABUILDER_H

#include "compiler/import/common/DecoderConfig.h"
#include "compiler/import/decoder/TensorTable.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace llmc {

/// The tensors of a decoder of the Llama kind.
enum class LlamaPart {
  Embedding,
  FinalNorm,
  Head,
  AttentionNorm,
  Query,
  Key,
  Value,
  Output,
  QueryNorm,
  KeyNorm,
  MlpNorm,
  Gate,
  Up,
  Down
};

/// How a file format names a part: without ".weight" or ".bias". The layer means nothing for the
/// first three.
using LlamaNames = llvm::function_ref<std::string(LlamaPart part, uint64_t layer)>;

/// Builds the module of \p config (checked) from the tensors. Null, with an error, when a tensor is
/// missing, has another shape, or is left over.
mlir::OwningOpRef<mlir::ModuleOp> buildLlama(mlir::MLIRContext *context,
                                             const DecoderConfig &config, TensorTable &tensors,
                                             LlamaNames names);

} // namespace llmc

#endif // LLMC_IMPORT_DECODER_LLAMABUILDER_H
