//===- GgufConfig.h - GGUF metadata as the shape of a decoder --------------------===//
#ifndef LLMC_IMPORT_GGUF_GGUFCONFIG_H
#define LLMC_IMPORT_GGUF_GGUFCONFIG_H

#include "compiler/import/common/DecoderConfig.h"
#include "compiler/import/gguf/GgufFile.h"

namespace llmc {

/// Reads the metadata of a supported architecture (see GgufArchitectures.cpp). What metadata
/// doesn't say (biases, a head of its own, divisors of the rotary frequencies) comes from the
/// tensors that are there. \p maxModelLen is the context that was asked for, 0 for none.
llmrt::Result<DecoderConfig> readGgufConfig(const GgufFile &file, std::vector<std::string> &notes,
                                            uint64_t maxModelLen = 0);

} // namespace llmc

#endif // LLMC_IMPORT_GGUF_GGUFCONFIG_H
