//===- DecoderBuilder.h - decoders in the llm dialect ----------------------------===//
#ifndef LLMC_IMPORT_DECODER_DECODERBUILDER_H
#define LLMC_IMPORT_DECODER_DECODERBUILDER_H

#include "compiler/import/common/DecoderConfig.h"
#include "compiler/import/decoder/DecoderNames.h"
#include "compiler/import/decoder/TensorTable.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace llmc {

/// Builds the module of \p config (checked) from the tensors. Null, with an error, when a tensor is
/// missing, has another shape, or is left over.
mlir::OwningOpRef<mlir::ModuleOp> buildDecoder(mlir::MLIRContext *context,
                                               const DecoderConfig &config, TensorTable &tensors,
                                               const DecoderNames &names);

} // namespace llmc

#endif // LLMC_IMPORT_DECODER_DECODERBUILDER_H
