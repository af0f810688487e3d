//===- ModelConfig.h - config.json as the shape of a decoder ---------------------===//
#ifndef LLMC_IMPORT_HUGGINGFACE_MODELCONFIG_H
#define LLMC_IMPORT_HUGGINGFACE_MODELCONFIG_H

#include "compiler/import/common/DecoderConfig.h"
#include "compiler/import/huggingface/JsonFile.h"

namespace llmc {

/// Reads config.json of a supported family (llama, mistral, qwen2, qwen3). Unsupported for others,
/// and for quantized checkpoints. \p notes gets a line for what was assumed.
llmrt::Result<DecoderConfig> readModelConfig(const JsonFile &config,
                                             std::vector<std::string> &notes);

/// RoPE parameters, wherever the file has them: `rope_theta` and `rope_scaling` at the top, or
/// `rope_parameters` (one, or one for each type of layer when all say the same). Two places that
/// differ are an error.
llmrt::Result<RopeParameters> readRopeParameters(const JsonFile &config, uint64_t headSize,
                                                 uint64_t maxContext,
                                                 std::vector<std::string> &notes);

} // namespace llmc

#endif // LLMC_IMPORT_HUGGINGFACE_MODELCONFIG_H
