//===- Bloom.cpp - Bloom: ALiBi in place of a rotation ------------------------------------===//

#include "compiler/import/huggingface/families/Families.h"

using namespace llmrt;

namespace llmc {

Status readBloom(ConfigReader &config, DecoderConfig &model) {
  AttentionForm &a = model.attention;
  LLMRT_ASSIGN_OR_RETURN(const uint64_t layers, config.required({"n_layer", "num_hidden_layers"}));
  LLMRT_RETURN_IF_ERROR(makeLayers(config, layers, model));
  LLMRT_ASSIGN_OR_RETURN(model.hidden, config.required({"hidden_size", "n_embed"}));
  LLMRT_ASSIGN_OR_RETURN(a.heads, config.required({"n_head", "num_attention_heads"}));
  a.kvHeads = a.heads;
  LLMRT_ASSIGN_OR_RETURN(model.vocabulary, config.required({"vocab_size"}));
  LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> context, config.integer("seq_length"));
  model.maxContext = context.value_or(2048);
  if (!context)
    config.note("config.json names no seq_length; a context of 2048 tokens is taken");
  LLMRT_RETURN_IF_ERROR(readHeadSize(config, model));
  LLMRT_RETURN_IF_ERROR(config.onlyAllowed("apply_residual_connection_post_layernorm", "false"));
  a.qkv = QkvForm::Grouped;
  a.qkvBias = a.outputBias = true;
  a.alibi = true;
  for (DecoderLayer &layer : model.layers)
    layer.rope = -1;
  model.embeddingNorm = true;
  model.mlp.intermediate = 4 * model.hidden;
  model.mlp.gated = false;
  model.mlp.activation = MlpActivation::GeluTanh;
  model.mlp.upBias = model.mlp.downBias = true;
  LLMRT_RETURN_IF_ERROR(readLayerNorm(config, "layer_norm_epsilon", model));
  model.tiedHead = true;
  return config.read("tie_word_embeddings", model.tiedHead);
}

} // namespace llmc
