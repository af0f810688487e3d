//===- Mixture.cpp - Mixtral, Qwen-MoE, Granite-MoE, GPT-OSS --------------------------===//

#include "compiler/import/huggingface/ModelConfig.h"
#include "compiler/import/huggingface/families/Families.h"

#include <cmath>

using namespace llmrt;

namespace llmc {
namespace {

/// Sizes, norms, activation, tied head and rotation, as in Llama.
Status readCommon(ConfigReader &config, DecoderConfig &model) {
  LLMRT_RETURN_IF_ERROR(readSizes(config, model));
  LLMRT_RETURN_IF_ERROR(readRmsNorm(config, 1e-6, model));
  LLMRT_RETURN_IF_ERROR(readActivation(config, "hidden_act", "silu", model.mlp));
  LLMRT_RETURN_IF_ERROR(config.read("tie_word_embeddings", model.tiedHead));
  return readSharedRope(config, model);
}

void setMixtures(DecoderConfig &model) {
  for (DecoderLayer &layer : model.layers)
    layer.mixture = true;
}

/// Experts, how many are chosen, and windows where the file has any.
Status readExperts(ConfigReader &config, std::initializer_list<const char *> count,
                   DecoderConfig &model) {
  LLMRT_ASSIGN_OR_RETURN(model.mixture.experts, config.required(count));
  LLMRT_ASSIGN_OR_RETURN(model.mixture.chosen,
                         config.required({"num_experts_per_tok", "experts_per_token"}));
  return Status::ok();
}

/// Qwen: a mixture in every `decoder_sparse_step`-th layer that isn't listed.
Status readSparseLayers(ConfigReader &config, DecoderConfig &model) {
  uint64_t step = 1;
  LLMRT_RETURN_IF_ERROR(config.read("decoder_sparse_step", step));
  for (size_t i = 0; i != model.layers.size(); ++i)
    model.layers[i].mixture = step != 0 && (i + 1) % step == 0;
  const JsonValue dense = config.value("mlp_only_layers");
  if (!dense.isNull() && !dense.isArray())
    return config.file().wrongType("mlp_only_layers", dense, "an array of numbers");
  if (dense.isArray())
    for (JsonValue layer : dense.elements()) {
      const std::optional<double> index = jsonNumber(layer);
      if (!index || !(*index >= 0) || *index != std::floor(*index))
        return config.file().wrongType("mlp_only_layers", layer, "a layer's number");
      if (*index < static_cast<double>(model.layers.size()))
        model.layers[static_cast<size_t>(*index)].mixture = false;
    }
  return Status::ok();
}

/// Windows in the layers from max_window_layers on, where they are switched on.
Status readQwenWindows(ConfigReader &config, DecoderConfig &model) {
  uint64_t window = 0, first = 0;
  LLMRT_RETURN_IF_ERROR(config.read("sliding_window", window));
  LLMRT_RETURN_IF_ERROR(config.read("max_window_layers", first));
  LLMRT_ASSIGN_OR_RETURN(const bool used, config.flag("use_sliding_window", false));
  LLMRT_ASSIGN_OR_RETURN(const bool listed, readLayerTypes(config, window, model));
  if (!listed && used)
    for (uint64_t layer = first; layer < model.layers.size(); ++layer)
      model.layers[layer].window = window;
  return Status::ok();
}

} // namespace

Status readMixtral(ConfigReader &config, DecoderConfig &model) {
  LLMRT_RETURN_IF_ERROR(readCommon(config, model));
  LLMRT_RETURN_IF_ERROR(readExperts(config, {"num_local_experts"}, model));
  model.mixture.intermediate = model.mlp.intermediate;
  model.mixture.normalize = true;
  setMixtures(model);
  uint64_t window = 0;
  LLMRT_RETURN_IF_ERROR(config.read("sliding_window", window));
  for (DecoderLayer &layer : model.layers)
    layer.window = window;
  return Status::ok();
}

Status readQwen2Moe(ConfigReader &config, DecoderConfig &model) {
  LLMRT_RETURN_IF_ERROR(readCommon(config, model));
  LLMRT_RETURN_IF_ERROR(readExperts(config, {"num_experts"}, model));
  MixtureForm &m = model.mixture;
  LLMRT_ASSIGN_OR_RETURN(m.intermediate, config.required({"moe_intermediate_size"}));
  LLMRT_ASSIGN_OR_RETURN(m.sharedIntermediate,
                         config.required({"shared_expert_intermediate_size"}));
  m.sharedGate = true;
  LLMRT_RETURN_IF_ERROR(config.read("norm_topk_prob", m.normalize));
  model.attention.qkvBias = true;
  LLMRT_RETURN_IF_ERROR(config.read("qkv_bias", model.attention.qkvBias));
  LLMRT_RETURN_IF_ERROR(readSparseLayers(config, model));
  return readQwenWindows(config, model);
}

Status readQwen3Moe(ConfigReader &config, DecoderConfig &model) {
  LLMRT_RETURN_IF_ERROR(readCommon(config, model));
  LLMRT_RETURN_IF_ERROR(readExperts(config, {"num_experts"}, model));
  LLMRT_ASSIGN_OR_RETURN(model.mixture.intermediate, config.required({"moe_intermediate_size"}));
  LLMRT_RETURN_IF_ERROR(config.read("norm_topk_prob", model.mixture.normalize));
  LLMRT_RETURN_IF_ERROR(config.read("attention_bias", model.attention.qkvBias));
  model.attention.outputBias = model.attention.qkvBias;
  model.attention.qkNorm = QkNorm::Head;
  LLMRT_RETURN_IF_ERROR(readSparseLayers(config, model));
  return readQwenWindows(config, model);
}

Status readGraniteMoe(ConfigReader &config, DecoderConfig &model) {
  LLMRT_RETURN_IF_ERROR(readGranite(config, model));
  LLMRT_RETURN_IF_ERROR(readExperts(config, {"num_local_experts"}, model));
  MixtureForm &m = model.mixture;
  m.intermediate = model.mlp.intermediate;
  m.storage = ExpertStorage::Joined;
  m.scoring = RouterScoring::SoftmaxOfChosen;
  setMixtures(model);
  return Status::ok();
}

Status readGptOss(ConfigReader &config, DecoderConfig &model) {
  LLMRT_RETURN_IF_ERROR(readCommon(config, model));
  LLMRT_RETURN_IF_ERROR(readExperts(config, {"num_local_experts"}, model));
  MixtureForm &m = model.mixture;
  m.intermediate = model.mlp.intermediate;
  m.storage = ExpertStorage::Turned;
  m.scoring = RouterScoring::SoftmaxOfChosen;
  m.routerBias = m.expertBias = true;
  m.alpha = 1.702; // constants of the family
  m.limit = 7.0;
  LLMRT_RETURN_IF_ERROR(config.read("swiglu_limit", m.limit));
  setMixtures(model);
  AttentionForm &a = model.attention;
  a.qkvBias = true;
  LLMRT_RETURN_IF_ERROR(config.read("attention_bias", a.qkvBias));
  a.outputBias = a.qkvBias;
  a.sinks = true;
  uint64_t window = 128;
  LLMRT_RETURN_IF_ERROR(config.read("sliding_window", window));
  LLMRT_ASSIGN_OR_RETURN(const bool listed, readLayerTypes(config, window, model));
  if (!listed) // every other layer, from the first on
    for (size_t i = 0; i < model.layers.size(); i += 2)
      model.layers[i].window = window;
  return Status::ok();
}

} // namespace llmc
