//===- Falcon.cpp - Falcon: one key-value head, or groups of heads ----------------------===//

#include "compiler/import/huggingface/families/Families.h"

#include <cmath>

using namespace llmrt;

namespace llmc {

Status readFalcon(ConfigReader &config, DecoderConfig &model) {
  AttentionForm &a = model.attention;
  LLMRT_ASSIGN_OR_RETURN(const uint64_t layers, config.required({"num_hidden_layers", "n_layer"}));
  LLMRT_RETURN_IF_ERROR(makeLayers(config, layers, model));
  LLMRT_ASSIGN_OR_RETURN(model.hidden, config.required({"hidden_size", "n_embed"}));
  LLMRT_ASSIGN_OR_RETURN(a.heads, config.required({"num_attention_heads", "n_head"}));
  LLMRT_ASSIGN_OR_RETURN(model.vocabulary, config.required({"vocab_size"}));
  model.maxContext = 2048; // what the family was trained with, where the file doesn't say
  LLMRT_RETURN_IF_ERROR(config.read("max_position_embeddings", model.maxContext));
  LLMRT_RETURN_IF_ERROR(readHeadSize(config, model));
  LLMRT_ASSIGN_OR_RETURN(a.alibi, config.flag("alibi", false)); // falcon-rw
  LLMRT_RETURN_IF_ERROR(config.onlyAllowed("apply_residual_connection_post_layernorm", "false"));

  LLMRT_ASSIGN_OR_RETURN(const bool grouped, config.flag("new_decoder_architecture", false));
  LLMRT_ASSIGN_OR_RETURN(const bool multiQuery, config.flag("multi_query", true));
  LLMRT_ASSIGN_OR_RETURN(const bool parallel, config.flag("parallel_attn", true));
  uint64_t kvHeads = a.heads, norms = grouped ? 2 : 1;
  LLMRT_RETURN_IF_ERROR(config.read("n_head_kv", kvHeads));
  LLMRT_RETURN_IF_ERROR(config.read("num_kv_heads", kvHeads));
  LLMRT_RETURN_IF_ERROR(config.read("num_ln_in_parallel_attn", norms));
  a.kvHeads = grouped ? kvHeads : multiQuery ? 1 : a.heads;
  a.qkv = QkvForm::Grouped; // of one group, or of one head each, too
  if (grouped && norms == 2)
    model.residual = ResidualForm::Parallel;
  else
    model.residual =
        parallel || grouped ? ResidualForm::ParallelSharedNorm : ResidualForm::Sequential;

  LLMRT_ASSIGN_OR_RETURN(const bool bias, config.flag("bias", false));
  a.qkvBias = a.outputBias = model.mlp.upBias = model.mlp.downBias = bias;
  model.mlp.gated = false;
  model.mlp.intermediate = 4 * model.hidden;
  LLMRT_RETURN_IF_ERROR(config.read("ffn_hidden_size", model.mlp.intermediate));
  LLMRT_RETURN_IF_ERROR(readActivation(config, "activation", "gelu", model.mlp));
  LLMRT_RETURN_IF_ERROR(readLayerNorm(config, "layer_norm_epsilon", model));
  model.tiedHead = true;
  LLMRT_RETURN_IF_ERROR(config.read("tie_word_embeddings", model.tiedHead));
  if (!a.alibi)
    return readSharedRope(config, model);
  for (const char *unused : {"rope_theta", "rope_scaling", "rope_parameters"})
    (void)config.value(unused); // the configuration's class writes them for every model
  // Added before the scores are scaled; Bloom adds it after.
  a.alibiScale = 1 / std::sqrt(static_cast<double>(a.headSize));
  for (DecoderLayer &layer : model.layers)
    layer.rope = -1;
  return Status::ok();
}

} // namespace llmc
