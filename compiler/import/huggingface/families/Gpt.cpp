//===- Gpt.cpp - GPT-2 and GPT-NeoX (Pythia) --------------------------------------------===//

#include "compiler/import/huggingface/families/Families.h"

#include <cmath>

using namespace llmrt;

namespace llmc {

Status readGpt2(ConfigReader &config, DecoderConfig &model) {
  AttentionForm &a = model.attention;
  LLMRT_ASSIGN_OR_RETURN(const uint64_t layers, config.required({"n_layer", "num_hidden_layers"}));
  LLMRT_RETURN_IF_ERROR(makeLayers(config, layers, model));
  LLMRT_ASSIGN_OR_RETURN(model.hidden, config.required({"n_embd", "hidden_size"}));
  LLMRT_ASSIGN_OR_RETURN(a.heads, config.required({"n_head", "num_attention_heads"}));
  a.kvHeads = a.heads;
  LLMRT_ASSIGN_OR_RETURN(model.vocabulary, config.required({"vocab_size"}));
  LLMRT_ASSIGN_OR_RETURN(model.maxContext,
                         config.required({"n_positions", "max_position_embeddings"}));
  model.learnedPositions = model.maxContext;
  LLMRT_RETURN_IF_ERROR(readHeadSize(config, model));
  if (a.heads * a.headSize != model.hidden)
    return config.fail("has heads that don't add up to the hidden size");
  model.mlp.intermediate = 4 * model.hidden;
  LLMRT_RETURN_IF_ERROR(config.read("n_inner", model.mlp.intermediate));
  LLMRT_RETURN_IF_ERROR(readLayerNorm(config, "layer_norm_epsilon", model));
  LLMRT_RETURN_IF_ERROR(readActivation(config, "activation_function", "gelu_new", model.mlp));
  model.tiedHead = true;
  LLMRT_RETURN_IF_ERROR(config.read("tie_word_embeddings", model.tiedHead));
  a.qkv = QkvForm::Stacked;
  a.qkvBias = a.outputBias = true;
  model.mlp.gated = false;
  model.mlp.upBias = model.mlp.downBias = true;
  model.transposedProjections = true;
  LLMRT_ASSIGN_OR_RETURN(const bool scaled, config.flag("scale_attn_weights", true));
  LLMRT_ASSIGN_OR_RETURN(const bool byLayer, config.flag("scale_attn_by_inverse_layer_idx", false));
  const double scale = scaled ? 1 / std::sqrt(static_cast<double>(a.headSize)) : 1.0;
  for (size_t i = 0; i != model.layers.size(); ++i) {
    model.layers[i].rope = -1;
    model.layers[i].attentionScale = byLayer ? scale / static_cast<double>(i + 1) : scale;
  }
  return config.onlyAllowed("add_cross_attention", "false");
}

Status readGptNeoX(ConfigReader &config, DecoderConfig &model) {
  LLMRT_RETURN_IF_ERROR(readSizes(config, model));
  if (model.attention.kvHeads != model.attention.heads)
    return unsupported("config.json: num_key_value_heads is not supported for 'gpt_neox'");
  LLMRT_RETURN_IF_ERROR(readLayerNorm(config, "layer_norm_eps", model));
  LLMRT_RETURN_IF_ERROR(readActivation(config, "hidden_act", "gelu", model.mlp));
  LLMRT_RETURN_IF_ERROR(config.read("tie_word_embeddings", model.tiedHead));
  LLMRT_ASSIGN_OR_RETURN(const bool parallel, config.flag("use_parallel_residual", true));
  model.residual = parallel ? ResidualForm::Parallel : ResidualForm::Sequential;
  model.attention.qkvBias = true;
  LLMRT_RETURN_IF_ERROR(config.read("attention_bias", model.attention.qkvBias));
  model.attention.outputBias = model.attention.qkvBias;
  model.attention.qkv = QkvForm::Grouped;
  model.mlp.gated = false;
  model.mlp.upBias = model.mlp.downBias = true;
  LLMRT_RETURN_IF_ERROR(readSharedRope(config, model));
  // The names that the family had first.
  double base = model.ropes[0].theta, part = 0.25;
  if (config.value("rope_theta").isNull() && config.value("rope_parameters").isNull()) {
    LLMRT_RETURN_IF_ERROR(config.read("rotary_emb_base", base));
  } else {
    LLMRT_ASSIGN_OR_RETURN(const std::optional<double> older, config.number("rotary_emb_base"));
    if (older && *older != base)
      return config.fail("has rotary_emb_base and rope_theta that differ");
  }
  model.ropes[0].theta = base;
  LLMRT_RETURN_IF_ERROR(config.read("rotary_pct", part));
  LLMRT_RETURN_IF_ERROR(config.read("partial_rotary_factor", part));
  if (!(part > 0 && part <= 1))
    return config.fail("has a rotary_pct of " + std::to_string(part));
  model.ropes[0].rotarySize =
      static_cast<uint64_t>(static_cast<double>(model.attention.headSize) * part);
  return Status::ok();
}

} // namespace llmc
