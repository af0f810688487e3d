//===- Families.h - the model families of config.json -----------------------------===//
//
// One function a family: it reads its keys and describes the model. Sizes that all families have
// are read by readSizes, with the names that the family gives them.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_IMPORT_HUGGINGFACE_FAMILIES_FAMILIES_H
#define LLMC_IMPORT_HUGGINGFACE_FAMILIES_FAMILIES_H

#include "compiler/import/common/DecoderConfig.h"
#include "compiler/import/huggingface/ConfigReader.h"

namespace llmc {

/// Reads one family. `architecture` of \p model is set.
using FamilyReader = llmrt::Status (*)(ConfigReader &config, DecoderConfig &model);

struct Family {
  const char *modelType;
  FamilyReader read;
};
/// The families, by model_type.
const std::vector<Family> &families();

/// Layers, hidden size, heads, vocabulary and context as most families name them; `head_dim` where
/// it is, else the hidden size over the heads.
llmrt::Status readSizes(ConfigReader &config, DecoderConfig &model);
/// `head_dim` and its fallback, when hidden size and heads are known.
llmrt::Status readHeadSize(ConfigReader &config, DecoderConfig &model);
/// model.layers of \p count layers; refuses numbers that no model has.
llmrt::Status makeLayers(const ConfigReader &config, uint64_t count, DecoderConfig &model);
/// An activation under \p key.
llmrt::Status readActivation(ConfigReader &config, const char *key, const char *fallback,
                             MlpForm &mlp);
/// `layer_types` as windows: \p window for sliding_attention. False when there is no such key.
llmrt::Result<bool> readLayerTypes(ConfigReader &config, uint64_t window, DecoderConfig &model);
/// The one rotary embedding that all layers share.
llmrt::Status readSharedRope(ConfigReader &config, DecoderConfig &model);
/// An RMS norm with `rms_norm_eps`.
llmrt::Status readRmsNorm(ConfigReader &config, double fallback, DecoderConfig &model);
/// A layer norm with bias and its epsilon under \p key.
llmrt::Status readLayerNorm(ConfigReader &config, const char *key, DecoderConfig &model);

// Llama.cpp
llmrt::Status readLlama(ConfigReader &config, DecoderConfig &model);
llmrt::Status readMistral(ConfigReader &config, DecoderConfig &model);
llmrt::Status readQwen2(ConfigReader &config, DecoderConfig &model);
llmrt::Status readQwen3(ConfigReader &config, DecoderConfig &model);
llmrt::Status readSmolLm3(ConfigReader &config, DecoderConfig &model);
llmrt::Status readGranite(ConfigReader &config, DecoderConfig &model);
llmrt::Status readOlmo2(ConfigReader &config, DecoderConfig &model);
// Gemma.cpp
llmrt::Status readGemma(ConfigReader &config, DecoderConfig &model);
llmrt::Status readGemma2(ConfigReader &config, DecoderConfig &model);
llmrt::Status readGemma3(ConfigReader &config, DecoderConfig &model);
// Phi.cpp
llmrt::Status readPhi(ConfigReader &config, DecoderConfig &model);
llmrt::Status readPhi3(ConfigReader &config, DecoderConfig &model);
// Gpt.cpp
llmrt::Status readGpt2(ConfigReader &config, DecoderConfig &model);
llmrt::Status readGptNeoX(ConfigReader &config, DecoderConfig &model);
// Falcon.cpp, Bloom.cpp
llmrt::Status readFalcon(ConfigReader &config, DecoderConfig &model);
llmrt::Status readBloom(ConfigReader &config, DecoderConfig &model);

// Mixture.cpp
llmrt::Status readMixtral(ConfigReader &config, DecoderConfig &model);
llmrt::Status readQwen2Moe(ConfigReader &config, DecoderConfig &model);
llmrt::Status readQwen3Moe(ConfigReader &config, DecoderConfig &model);
llmrt::Status readGraniteMoe(ConfigReader &config, DecoderConfig &model);
llmrt::Status readGptOss(ConfigReader &config, DecoderConfig &model);
// DeepSeek.cpp
llmrt::Status readDeepSeekV2(ConfigReader &config, DecoderConfig &model);
llmrt::Status readDeepSeekV3(ConfigReader &config, DecoderConfig &model);

} // namespace llmc

#endif // LLMC_IMPORT_HUGGINGFACE_FAMILIES_FAMILIES_H
