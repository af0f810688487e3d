//===- GgufMixture.h - mixtures of experts and latent attention in GGUF ---------===//
#ifndef LLMC_IMPORT_GGUF_GGUFMIXTURE_H
#define LLMC_IMPORT_GGUF_GGUFMIXTURE_H

#include "compiler/import/common/DecoderConfig.h"
#include "compiler/import/gguf/GgufKeys.h"

namespace llmc {

/// The experts that the keys describe, in every layer but the leading dense ones; nothing where
/// there is no `expert_count`.
llmrt::Status readGgufExperts(GgufKeys &keys, DecoderConfig &model);
/// Latent attention, where there is an `attention.kv_lora_rank`.
llmrt::Status readGgufLatent(GgufKeys &keys, AttentionForm &attention);

// Architectures, see GgufArchitectures.cpp.
llmrt::Status completeQwen2Moe(GgufKeys &keys, DecoderConfig &model);
llmrt::Status completeQwen3Moe(GgufKeys &keys, DecoderConfig &model);
llmrt::Status completeDeepSeek2(GgufKeys &keys, DecoderConfig &model);
llmrt::Status completeGptOss(GgufKeys &keys, DecoderConfig &model);

} // namespace llmc

#endif // LLMC_IMPORT_GGUF_GGUFMIXTURE_H
