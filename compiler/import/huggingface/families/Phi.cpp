//===- Phi.cpp - Phi (1, 1.5, 2) and Phi-3 (3, 3.5, 4) --------------------------------===//

#include "compiler/import/huggingface/families/Families.h"

using namespace llmrt;

namespace llmc {

Status readPhi(ConfigReader &config, DecoderConfig &model) {
  LLMRT_RETURN_IF_ERROR(readSizes(config, model));
  LLMRT_RETURN_IF_ERROR(readLayerNorm(config, "layer_norm_eps", model));
  LLMRT_RETURN_IF_ERROR(readActivation(config, "hidden_act", "gelu_new", model.mlp));
  LLMRT_RETURN_IF_ERROR(config.read("tie_word_embeddings", model.tiedHead));
  LLMRT_RETURN_IF_ERROR(config.onlyAllowed("qk_layernorm", "false"));
  model.residual = ResidualForm::ParallelSharedNorm;
  model.attention.qkvBias = model.attention.outputBias = true;
  model.mlp.gated = false;
  model.mlp.upBias = model.mlp.downBias = true;
  model.headBias = true;
  LLMRT_RETURN_IF_ERROR(readSharedRope(config, model));
  if (config.value("partial_rotary_factor").isNull() && config.value("rope_parameters").isNull())
    model.ropes[0].rotarySize = model.attention.headSize / 2; // the family's default
  return Status::ok();
}

Status readPhi3(ConfigReader &config, DecoderConfig &model) {
  LLMRT_RETURN_IF_ERROR(readSizes(config, model));
  LLMRT_RETURN_IF_ERROR(readRmsNorm(config, 1e-5, model));
  LLMRT_RETURN_IF_ERROR(readActivation(config, "hidden_act", "silu", model.mlp));
  LLMRT_RETURN_IF_ERROR(config.read("tie_word_embeddings", model.tiedHead));
  model.attention.qkv = QkvForm::Stacked;
  model.mlp.fusedGateUp = true;
  uint64_t window = 0;
  LLMRT_RETURN_IF_ERROR(config.read("sliding_window", window));
  LLMRT_ASSIGN_OR_RETURN(const bool listed, readLayerTypes(config, window, model));
  if (!listed)
    for (DecoderLayer &layer : model.layers)
      layer.window = window;
  return readSharedRope(config, model);
}

} // namespace llmc
