//===- HuggingFaceImport.h - from a Hugging Face folder to the llm dialect ---------===//
#ifndef LLMC_IMPORT_HUGGINGFACE_HUGGINGFACEIMPORT_H
#define LLMC_IMPORT_HUGGINGFACE_HUGGINGFACEIMPORT_H

#include "compiler/import/common/ImportedText.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace llmc {

/// Reads the model in \p folder (config.json, safetensors) into a module of the llm dialect with
/// `@step`; `llm.files` are names in the folder. \p text, unless it is null, gets tokenizer, chat
/// template and generation defaults. A failure is one diagnostic that names the file and the tensor
/// or key; the result is null then. \p maxModelLen is the context that was asked for, 0 for none.
mlir::OwningOpRef<mlir::ModuleOp> importHuggingFace(llvm::StringRef folder,
                                                    mlir::MLIRContext *context,
                                                    ImportedText *text = nullptr,
                                                    uint64_t maxModelLen = 0);

} // namespace llmc

#endif // LLMC_IMPORT_HUGGINGFACE_HUGGINGFACEIMPORT_H
