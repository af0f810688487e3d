//===- FolderText.h - tokenizer, template and defaults of a folder ---------------===//
#ifndef LLMC_IMPORT_HUGGINGFACE_FOLDERTEXT_H
#define LLMC_IMPORT_HUGGINGFACE_FOLDERTEXT_H

#include "compiler/import/common/ImportedText.h"
#include "runtime/support/Status.h"

namespace llmc {

/// Reads what \p path, a folder or a tokenizer's file in it, says about text: tokenizer.json with
/// tokenizer_config.json and special_tokens_map.json, chat_template.jinja or the template of
/// tokenizer_config.json, generation_config.json and the end tokens of config.json. Where there is
/// no tokenizer.json: tokenizer.model, tiktoken.model or spiece.model (SentencePiece or tiktoken,
/// by content), or *.tiktoken; without any the blob is empty. A file that is there and malformed is
/// an error, and so is a token that the \p rows of the model's embeddings have no place for, unless
/// it is an added one that nothing needs: a note says that it is left out. Rows of 0 are unknown.
llmrt::Result<ImportedText> readFolderText(const std::string &path, uint64_t rows = 0);

} // namespace llmc

#endif // LLMC_IMPORT_HUGGINGFACE_FOLDERTEXT_H
