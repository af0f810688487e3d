//===- Gemma.cpp - Gemma 1, 2 and 3 (text) ------------------------------------------===//

#include "compiler/import/huggingface/ModelConfig.h"
#include "compiler/import/huggingface/families/Families.h"

#include <cmath>

using namespace llmrt;

namespace llmc {
namespace {

/// Norms with 1 + w, the embedding times sqrt(hidden), a tied head, GELU gates.
Status readCommon(ConfigReader &config, DecoderConfig &model, const char *activationKey) {
  LLMRT_RETURN_IF_ERROR(readSizes(config, model));
  LLMRT_RETURN_IF_ERROR(readRmsNorm(config, 1e-6, model));
  model.norm.plusOne = true;
  model.embeddingScale = std::sqrt(static_cast<double>(model.hidden));
  LLMRT_RETURN_IF_ERROR(readActivation(config, activationKey, "gelu_pytorch_tanh", model.mlp));
  model.tiedHead = true;
  LLMRT_RETURN_IF_ERROR(config.read("tie_word_embeddings", model.tiedHead));
  LLMRT_RETURN_IF_ERROR(config.read("attention_bias", model.attention.qkvBias));
  model.attention.outputBias = model.attention.qkvBias;
  return Status::ok();
}

/// What Gemma 2 and 3 have in common.
Status readSandwich(ConfigReader &config, DecoderConfig &model) {
  LLMRT_RETURN_IF_ERROR(readCommon(config, model, "hidden_activation"));
  model.normPlace = NormPlace::Around;
  double scalar = 256;
  LLMRT_RETURN_IF_ERROR(config.read("query_pre_attn_scalar", scalar));
  if (!(scalar > 0))
    return config.fail("has a query_pre_attn_scalar of " + std::to_string(scalar));
  model.attention.scale = 1 / std::sqrt(scalar);
  LLMRT_RETURN_IF_ERROR(config.read("attn_logit_softcapping", model.attention.softcap));
  LLMRT_RETURN_IF_ERROR(config.read("final_logit_softcapping", model.logitSoftcap));
  return config.onlyAllowed("use_bidirectional_attention", "false");
}

/// Sliding layers: those that `layer_types` names, else all but every \p pattern-th.
Status readWindows(ConfigReader &config, uint64_t pattern, DecoderConfig &model) {
  uint64_t window = 4096;
  LLMRT_RETURN_IF_ERROR(config.read("sliding_window", window));
  if (window == 0 || pattern == 0)
    return config.fail("has a sliding_window or a sliding_window_pattern of 0");
  LLMRT_ASSIGN_OR_RETURN(const bool listed, readLayerTypes(config, window, model));
  if (!listed)
    for (size_t i = 0; i != model.layers.size(); ++i)
      model.layers[i].window = (i + 1) % pattern ? window : 0;
  return Status::ok();
}

} // namespace

Status readGemma(ConfigReader &config, DecoderConfig &model) {
  // The first configurations say "gelu" under the older key, where the weights were trained with
  // the tanh form; `hidden_activation` is what counts since.
  LLMRT_ASSIGN_OR_RETURN(const std::optional<std::string> older, config.text("hidden_act"));
  LLMRT_ASSIGN_OR_RETURN(const std::optional<std::string> newer, config.text("hidden_activation"));
  LLMRT_RETURN_IF_ERROR(readCommon(config, model, "hidden_activation"));
  if (!newer && older && *older != "gelu") {
    LLMRT_RETURN_IF_ERROR(readActivation(config, "hidden_act", "gelu_pytorch_tanh", model.mlp));
  } else if (!newer && older) {
    config.note("config.json says hidden_act 'gelu'; Gemma's is the tanh form, which is taken "
                "(hidden_activation sets another)");
  }
  return readSharedRope(config, model);
}

Status readGemma2(ConfigReader &config, DecoderConfig &model) {
  LLMRT_RETURN_IF_ERROR(readSandwich(config, model));
  LLMRT_RETURN_IF_ERROR(readSharedRope(config, model));
  return readWindows(config, 2, model);
}

Status readGemma3(ConfigReader &config, DecoderConfig &model) {
  LLMRT_RETURN_IF_ERROR(readSandwich(config, model));
  model.attention.qkNorm = QkNorm::Head;
  uint64_t pattern = 6;
  LLMRT_RETURN_IF_ERROR(config.read("_sliding_window_pattern", pattern));
  LLMRT_RETURN_IF_ERROR(config.read("sliding_window_pattern", pattern));
  LLMRT_RETURN_IF_ERROR(readWindows(config, pattern, model));
  LLMRT_ASSIGN_OR_RETURN(auto ropes,
                         readRopeByLayerType(config, model.attention.headSize, model.maxContext));
  model.ropes = {std::move(ropes.full), std::move(ropes.sliding)};
  for (DecoderLayer &layer : model.layers)
    layer.rope = layer.window ? 1 : 0;
  return Status::ok();
}

} // namespace llmc
