#include "compiler/import/huggingface/FamilyNames.h"

namespace llmc {
namespace {

using Part = DecoderPart;

/// LlamaForCausalLM and the families that follow it.
DecoderNames llamaNames() {
  return {{Part::Embedding, "model.embed_tokens"},
          {Part::FinalNorm, "model.norm"},
          {Part::Head, "lm_head"},
          {Part::AttentionNorm, "model.layers.#.input_layernorm"},
          {Part::Query, "model.layers.#.self_attn.q_proj"},
          {Part::Key, "model.layers.#.self_attn.k_proj"},
          {Part::Value, "model.layers.#.self_attn.v_proj"},
          {Part::QueryKeyValue, "model.layers.#.self_attn.qkv_proj"},
          {Part::Output, "model.layers.#.self_attn.o_proj"},
          {Part::QueryNorm, "model.layers.#.self_attn.q_norm"},
          {Part::KeyNorm, "model.layers.#.self_attn.k_norm"},
          {Part::MlpNorm, "model.layers.#.post_attention_layernorm"},
          {Part::Gate, "model.layers.#.mlp.gate_proj"},
          {Part::Up, "model.layers.#.mlp.up_proj"},
          {Part::GateUp, "model.layers.#.mlp.gate_up_proj"},
          {Part::Down, "model.layers.#.mlp.down_proj"}};
}

/// Names of norms after the blocks, which take the name that Llama has for the one between.
DecoderNames sandwichNames() {
  return llamaNames().with({{Part::AttentionPostNorm, "model.layers.#.post_attention_layernorm"},
                            {Part::MlpNorm, "model.layers.#.pre_feedforward_layernorm"},
                            {Part::MlpPostNorm, "model.layers.#.post_feedforward_layernorm"}});
}

DecoderNames gpt2Names() {
  return {{Part::Embedding, "transformer.wte"},
          {Part::PositionEmbedding, "transformer.wpe"},
          {Part::FinalNorm, "transformer.ln_f"},
          {Part::Head, "lm_head"},
          {Part::AttentionNorm, "transformer.h.#.ln_1"},
          {Part::QueryKeyValue, "transformer.h.#.attn.c_attn"},
          {Part::Output, "transformer.h.#.attn.c_proj"},
          {Part::MlpNorm, "transformer.h.#.ln_2"},
          {Part::Up, "transformer.h.#.mlp.c_fc"},
          {Part::Down, "transformer.h.#.mlp.c_proj"}};
}

DecoderNames neoXNames() {
  return {{Part::Embedding, "gpt_neox.embed_in"},
          {Part::FinalNorm, "gpt_neox.final_layer_norm"},
          {Part::Head, "embed_out"},
          {Part::AttentionNorm, "gpt_neox.layers.#.input_layernorm"},
          {Part::QueryKeyValue, "gpt_neox.layers.#.attention.query_key_value"},
          {Part::Output, "gpt_neox.layers.#.attention.dense"},
          {Part::MlpNorm, "gpt_neox.layers.#.post_attention_layernorm"},
          {Part::Up, "gpt_neox.layers.#.mlp.dense_h_to_4h"},
          {Part::Down, "gpt_neox.layers.#.mlp.dense_4h_to_h"}};
}

/// Bloom, and Falcon but for the names of its norms.
DecoderNames bloomNames() {
  return {{Part::Embedding, "transformer.word_embeddings"},
          {Part::EmbeddingNorm, "transformer.word_embeddings_layernorm"},
          {Part::FinalNorm, "transformer.ln_f"},
          {Part::Head, "lm_head"},
          {Part::AttentionNorm, "transformer.h.#.input_layernorm"},
          {Part::QueryKeyValue, "transformer.h.#.self_attention.query_key_value"},
          {Part::Output, "transformer.h.#.self_attention.dense"},
          {Part::MlpNorm, "transformer.h.#.post_attention_layernorm"},
          {Part::Up, "transformer.h.#.mlp.dense_h_to_4h"},
          {Part::Down, "transformer.h.#.mlp.dense_4h_to_h"}};
}

DecoderNames phiNames() {
  return llamaNames().with({{Part::FinalNorm, "model.final_layernorm"},
                            {Part::Output, "model.layers.#.self_attn.dense"},
                            {Part::Up, "model.layers.#.mlp.fc1"},
                            {Part::Down, "model.layers.#.mlp.fc2"}});
}

/// Experts below `mlp.experts`, the router `mlp.gate`: Qwen's and DeepSeek's mixtures.
DecoderNames expertNames() {
  return llamaNames().with({{Part::Router, "model.layers.#.mlp.gate"},
                            {Part::ExpertGate, "model.layers.#.mlp.experts.@.gate_proj.weight"},
                            {Part::ExpertUp, "model.layers.#.mlp.experts.@.up_proj.weight"},
                            {Part::ExpertDown, "model.layers.#.mlp.experts.@.down_proj.weight"},
                            {Part::SharedGate, "model.layers.#.mlp.shared_expert.gate_proj"},
                            {Part::SharedUp, "model.layers.#.mlp.shared_expert.up_proj"},
                            {Part::SharedDown, "model.layers.#.mlp.shared_expert.down_proj"},
                            {Part::SharedWeight, "model.layers.#.mlp.shared_expert_gate"}});
}

DecoderNames deepSeekNames() {
  return expertNames().with(
      {{Part::RouterCorrection, "model.layers.#.mlp.gate.e_score_correction_bias"},
       {Part::SharedGate, "model.layers.#.mlp.shared_experts.gate_proj"},
       {Part::SharedUp, "model.layers.#.mlp.shared_experts.up_proj"},
       {Part::SharedDown, "model.layers.#.mlp.shared_experts.down_proj"},
       {Part::QueryDown, "model.layers.#.self_attn.q_a_proj"},
       {Part::QueryDownNorm, "model.layers.#.self_attn.q_a_layernorm"},
       {Part::QueryUp, "model.layers.#.self_attn.q_b_proj"},
       {Part::LatentDown, "model.layers.#.self_attn.kv_a_proj_with_mqa"},
       {Part::LatentNorm, "model.layers.#.self_attn.kv_a_layernorm"},
       {Part::LatentUp, "model.layers.#.self_attn.kv_b_proj"}});
}

DecoderNames mixtralNames() {
  const std::string block = "model.layers.#.block_sparse_moe.";
  return llamaNames().with({{Part::Router, block + "gate"},
                            {Part::ExpertGate, block + "experts.@.w1.weight"},
                            {Part::ExpertUp, block + "experts.@.w3.weight"},
                            {Part::ExpertDown, block + "experts.@.w2.weight"}});
}

DecoderNames graniteMoeNames() {
  const std::string block = "model.layers.#.block_sparse_moe.";
  return llamaNames().with({{Part::Router, block + "router.layer"},
                            {Part::ExpertGate, block + "input_linear.weight"},
                            {Part::ExpertDown, block + "output_linear.weight"}});
}

DecoderNames gptOssNames() {
  const std::string block = "model.layers.#.mlp.";
  return llamaNames().with({{Part::Sinks, "model.layers.#.self_attn.sinks"},
                            {Part::Router, block + "router"},
                            {Part::ExpertGate, block + "experts.gate_up_proj"},
                            {Part::ExpertDown, block + "experts.down_proj"},
                            {Part::ExpertGateBias, block + "experts.gate_up_proj_bias"},
                            {Part::ExpertDownBias, block + "experts.down_proj_bias"}});
}

} // namespace

DecoderNames familyNames(const std::string &type) {
  if (type == "deepseek_v2" || type == "deepseek_v3")
    return deepSeekNames();
  if (type == "qwen2_moe" || type == "qwen3_moe")
    return expertNames();
  if (type == "mixtral")
    return mixtralNames();
  if (type == "granitemoe")
    return graniteMoeNames();
  if (type == "gpt_oss")
    return gptOssNames();
  if (type == "gpt2")
    return gpt2Names();
  if (type == "gpt_neox")
    return neoXNames();
  if (type == "bloom" || type == "falcon")
    return bloomNames();
  if (type == "phi")
    return phiNames();
  if (type == "gemma2" || type == "gemma3_text" || type == "olmo2")
    return sandwichNames();
  return llamaNames();
}

std::string familyPrefix(const std::string &type) {
  if (type == "gpt2" || type == "bloom" || type == "falcon")
    return "transformer.";
  return type == "gpt_neox" ? "gpt_neox." : "model.";
}

const std::vector<std::string> &bufferEndings() {
  static const std::vector<std::string> endings = {".rotary_emb.inv_freq", ".attn.bias",
                                                   ".attn.masked_bias", ".attention.bias",
                                                   ".attention.masked_bias"};
  return endings;
}

} // namespace llmc
