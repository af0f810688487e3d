//===- Llama.cpp - Llama and the families that differ from it in a detail -----------===//

#include "compiler/import/huggingface/families/Families.h"

using namespace llmrt;

namespace llmc {
namespace {

/// RMS norms, rotation, grouped queries, a gated MLP.
Status readCommon(ConfigReader &config, DecoderConfig &model, double eps = 1e-6) {
  LLMRT_RETURN_IF_ERROR(readSizes(config, model));
  LLMRT_RETURN_IF_ERROR(readRmsNorm(config, eps, model));
  LLMRT_RETURN_IF_ERROR(readActivation(config, "hidden_act", "silu", model.mlp));
  LLMRT_RETURN_IF_ERROR(config.read("tie_word_embeddings", model.tiedHead));
  return readSharedRope(config, model);
}

/// `attention_bias`: of Q, K, V and the output.
Status readAttentionBias(ConfigReader &config, DecoderConfig &model) {
  LLMRT_RETURN_IF_ERROR(config.read("attention_bias", model.attention.qkvBias));
  model.attention.outputBias = model.attention.qkvBias;
  return Status::ok();
}

Status readMlpBias(ConfigReader &config, DecoderConfig &model) {
  LLMRT_RETURN_IF_ERROR(config.read("mlp_bias", model.mlp.upBias));
  model.mlp.downBias = model.mlp.upBias;
  return Status::ok();
}

/// Nothing, or the keys that a query sees.
Result<uint64_t> readWindow(ConfigReader &config) {
  LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> window, config.integer("sliding_window"));
  if (window && *window == 0)
    return config.fail("has a sliding_window of 0");
  return window.value_or(0);
}

/// Qwen: windows only where they are switched on, in the layers from max_window_layers on.
Status readQwenWindows(ConfigReader &config, DecoderConfig &model) {
  LLMRT_ASSIGN_OR_RETURN(const uint64_t window, readWindow(config));
  LLMRT_ASSIGN_OR_RETURN(const bool used, config.flag("use_sliding_window", false));
  uint64_t first = 0;
  LLMRT_RETURN_IF_ERROR(config.read("max_window_layers", first));
  LLMRT_ASSIGN_OR_RETURN(const bool listed, readLayerTypes(config, window, model));
  if (!listed && used)
    for (uint64_t layer = first; layer < model.layers.size(); ++layer)
      model.layers[layer].window = window;
  return Status::ok();
}

} // namespace

Status readLlama(ConfigReader &config, DecoderConfig &model) {
  LLMRT_RETURN_IF_ERROR(readCommon(config, model));
  LLMRT_RETURN_IF_ERROR(readAttentionBias(config, model));
  LLMRT_RETURN_IF_ERROR(readMlpBias(config, model));
  // Some configurations carry Mistral's key; the family has no windows.
  config.value("sliding_window");
  return Status::ok();
}

Status readMistral(ConfigReader &config, DecoderConfig &model) {
  LLMRT_RETURN_IF_ERROR(readCommon(config, model));
  LLMRT_ASSIGN_OR_RETURN(const uint64_t window, readWindow(config));
  LLMRT_ASSIGN_OR_RETURN(const bool listed, readLayerTypes(config, window, model));
  if (!listed)
    for (DecoderLayer &layer : model.layers)
      layer.window = window;
  return Status::ok();
}

Status readQwen2(ConfigReader &config, DecoderConfig &model) {
  LLMRT_RETURN_IF_ERROR(readCommon(config, model));
  model.attention.qkvBias = true;
  return readQwenWindows(config, model);
}

Status readQwen3(ConfigReader &config, DecoderConfig &model) {
  LLMRT_RETURN_IF_ERROR(readCommon(config, model));
  LLMRT_RETURN_IF_ERROR(readAttentionBias(config, model));
  model.attention.qkNorm = QkNorm::Head;
  return readQwenWindows(config, model);
}

Status readSmolLm3(ConfigReader &config, DecoderConfig &model) {
  model.tiedHead = true;
  LLMRT_RETURN_IF_ERROR(readCommon(config, model));
  LLMRT_RETURN_IF_ERROR(readAttentionBias(config, model));
  LLMRT_RETURN_IF_ERROR(readMlpBias(config, model));
  // Every fourth layer has no rotation, unless a list says otherwise.
  uint64_t interval = 4;
  LLMRT_RETURN_IF_ERROR(config.read("no_rope_layer_interval", interval));
  const JsonValue list = config.value("no_rope_layers");
  if (list.isArray() && list.size() != model.layers.size())
    return config.fail("has " + std::to_string(list.size()) + " no_rope_layers for " +
                       std::to_string(model.layers.size()) + " layers");
  for (size_t i = 0; i != model.layers.size(); ++i)
    if (interval != 0 && (i + 1) % interval == 0)
      model.layers[i].rope = -1;
  if (list.isArray()) {
    size_t i = 0;
    for (JsonValue rotates : list.elements()) {
      const std::optional<double> flag = jsonNumber(rotates);
      if (!flag || (*flag != 0 && *flag != 1))
        return config.file().wrongType("no_rope_layers", rotates, "a list of 0 and 1");
      model.layers[i++].rope = *flag == 1 ? 0 : -1;
    }
  }
  LLMRT_ASSIGN_OR_RETURN(const uint64_t window, readWindow(config));
  LLMRT_ASSIGN_OR_RETURN(const bool used, config.flag("use_sliding_window", false));
  LLMRT_ASSIGN_OR_RETURN(const bool typed, readLayerTypes(config, window, model));
  if (!typed && used)
    for (DecoderLayer &layer : model.layers)
      layer.window = layer.rope < 0 ? window : 0;
  return Status::ok();
}

Status readGranite(ConfigReader &config, DecoderConfig &model) {
  LLMRT_RETURN_IF_ERROR(readCommon(config, model));
  LLMRT_RETURN_IF_ERROR(readAttentionBias(config, model));
  LLMRT_RETURN_IF_ERROR(readMlpBias(config, model));
  LLMRT_RETURN_IF_ERROR(config.read("embedding_multiplier", model.embeddingScale));
  LLMRT_RETURN_IF_ERROR(config.read("residual_multiplier", model.residualScale));
  model.attention.scale = 1; // what a missing attention_multiplier means
  LLMRT_RETURN_IF_ERROR(config.read("attention_multiplier", model.attention.scale));
  double divisor = 1;
  LLMRT_RETURN_IF_ERROR(config.read("logits_scaling", divisor));
  if (!(divisor > 0))
    return config.fail("has a logits_scaling of " + std::to_string(divisor));
  model.logitScale = 1 / divisor;
  return Status::ok();
}

Status readOlmo2(ConfigReader &config, DecoderConfig &model) {
  LLMRT_RETURN_IF_ERROR(readCommon(config, model, 1e-5));
  LLMRT_RETURN_IF_ERROR(readAttentionBias(config, model));
  model.normPlace = NormPlace::After;
  model.attention.qkNorm = QkNorm::Row;
  return Status::ok();
}

} // namespace llmc
