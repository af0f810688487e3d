//===- ModelConfig.h - config.json as the shape of a decoder ---------------------===//
#ifndef LLMC_IMPORT_HUGGINGFACE_MODELCONFIG_H
#define LLMC_IMPORT_HUGGINGFACE_MODELCONFIG_H

#include "compiler/import/common/DecoderConfig.h"
#include "compiler/import/huggingface/ConfigReader.h"

namespace llmc {

/// Reads config.json of a supported family (see families/). Unsupported for others, for quantized
/// checkpoints, and for keys that change what the model computes and that the family's reader
/// doesn't know. \p maxModelLen is the context that was asked for, 0 for none; it decides between
/// the two sets of factors of longrope. \p notes gets a line for what was assumed.
llmrt::Result<DecoderConfig>
readModelConfig(const JsonFile &config, std::vector<std::string> &notes, uint64_t maxModelLen = 0);

/// The names of the families, "bloom, falcon, ...".
std::string supportedFamilies();

/// RoPE parameters, wherever the file has them: `rope_theta` and `rope_scaling` at the top, or
/// `rope_parameters` (one, or one for each type of layer when all say the same). Two places that
/// differ are an error.
llmrt::Result<RopeParameters> readRopeParameters(ConfigReader &config, uint64_t headSize,
                                                 uint64_t maxContext);

/// RoPE parameters of layers that see everything and of those with a window: `rope_theta`,
/// `rope_scaling` and `rope_local_base_freq`, or `rope_parameters` with a member for each type.
struct RopesByLayerType {
  RopeParameters full, sliding;
};
llmrt::Result<RopesByLayerType> readRopeByLayerType(ConfigReader &config, uint64_t headSize,
                                                    uint64_t maxContext);

} // namespace llmc

#endif // LLMC_IMPORT_HUGGINGFACE_MODELCONFIG_H
