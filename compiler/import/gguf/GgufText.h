//===- GgufText.h - tokenizer, template and defaults of a GGUF file --------------===//
#ifndef LLMC_IMPORT_GGUF_GGUFTEXT_H
#define LLMC_IMPORT_GGUF_GGUFTEXT_H

#include "compiler/import/common/ImportedText.h"
#include "compiler/import/gguf/GgufFile.h"
#include "runtime/text/GgufTokenizer.h"

namespace llmc {

/// The values of tokenizer.ggml.*, checked for type and length; nothing when the file has no
/// tokenizer.
llmrt::Result<std::optional<llmrt::GgufTokenizerData>> readGgufTokenizer(const GgufFile &file);

/// All that the file says about text. \p vocabulary is the number of rows of the embedding.
llmrt::Result<ImportedText> readGgufText(const GgufFile &file, uint64_t vocabulary);

} // namespace llmc

#endif // LLMC_IMPORT_GGUF_GGUFTEXT_H
