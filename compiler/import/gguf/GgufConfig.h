//===- GgufConfig.h - GGUF metadata as the shape of a decoder --------------------===//
#ifndef LLMC_IMPORT_GGUF_GGUFCONFIG_H
#define LLMC_IMPORT_GGUF_GGUFCONFIG_H

#include "compiler/import/common/DecoderConfig.h"
#include "compiler/import/gguf/GgufFile.h"

namespace llmc {

/// Reads the metadata of a supported architecture (llama, qwen2, qwen3). What metadata doesn't say
/// (biases, a head of its own, divisors of the rotary frequencies) comes from the tensors that are
/// there.
llmrt::Result<DecoderConfig> readGgufConfig(const GgufFile &file, std::vector<std::string> &notes);

} // namespace llmc

#endif // LLMC_IMPORT_GGUF_GGUFCONFIG_H
