//===- DeepSeek.cpp - DeepSeek-V2 and V3: latent attention, routed and shared experts -----===//

#include "compiler/import/huggingface/ModelConfig.h"
#include "compiler/import/huggingface/families/Families.h"

#include <cmath>

using namespace llmrt;

namespace llmc {
namespace {

Status readLatent(ConfigReader &config, DecoderConfig &model) {
  AttentionForm &a = model.attention;
  LatentForm &l = a.latent;
  LLMRT_ASSIGN_OR_RETURN(a.heads, config.required({"num_attention_heads"}));
  a.kvHeads = a.heads;
  LLMRT_RETURN_IF_ERROR(config.read("num_key_value_heads", a.kvHeads));
  if (a.kvHeads != a.heads)
    return config.fail("has " + std::to_string(a.kvHeads) + " key-value heads for " +
                       std::to_string(a.heads) + " heads; latent attention has one for each");
  LLMRT_ASSIGN_OR_RETURN(l.rank, config.required({"kv_lora_rank"}));
  LLMRT_RETURN_IF_ERROR(config.read("q_lora_rank", l.queryRank));
  LLMRT_ASSIGN_OR_RETURN(l.nopeSize, config.required({"qk_nope_head_dim"}));
  LLMRT_ASSIGN_OR_RETURN(l.ropeSize, config.required({"qk_rope_head_dim"}));
  LLMRT_ASSIGN_OR_RETURN(l.valueSize, config.required({"v_head_dim"}));
  for (const char *key : {"head_dim", "qk_head_dim"})
    config.value(key); // follow from these
  if (l.nopeSize > 65536 || l.ropeSize > 65536)
    return config.fail("has heads of " + std::to_string(l.nopeSize) + " and " +
                       std::to_string(l.ropeSize) + " values");
  a.headSize = l.nopeSize + l.ropeSize;
  LLMRT_RETURN_IF_ERROR(config.onlyAllowed("attention_bias", "false"));
  LLMRT_ASSIGN_OR_RETURN(RopeParameters rope,
                         readRopeParameters(config, l.ropeSize, model.maxContext));
  a.scale = 1 / std::sqrt(static_cast<double>(a.headSize));
  // YaRN's temperature goes into the scores' scale: cosines and sines keep their ratio of the two.
  if (rope.type == "yarn" && rope.mscaleAllDim && rope.factor > 1) {
    const double m = 0.1 * *rope.mscaleAllDim * std::log(rope.factor) + 1;
    a.scale *= m * m;
  }
  model.ropes = {std::move(rope)};
  return Status::ok();
}

Status readExperts(ConfigReader &config, DecoderConfig &model) {
  MixtureForm &m = model.mixture;
  LLMRT_ASSIGN_OR_RETURN(m.experts, config.required({"n_routed_experts"}));
  LLMRT_ASSIGN_OR_RETURN(m.chosen, config.required({"num_experts_per_tok"}));
  LLMRT_ASSIGN_OR_RETURN(m.intermediate, config.required({"moe_intermediate_size"}));
  LLMRT_RETURN_IF_ERROR(config.read("norm_topk_prob", m.normalize));
  LLMRT_RETURN_IF_ERROR(config.read("routed_scaling_factor", m.scale));
  uint64_t shared = 0, first = 0, every = 1;
  LLMRT_RETURN_IF_ERROR(config.read("n_shared_experts", shared));
  if (shared > 1024 || m.intermediate > uint64_t(1) << 24)
    return config.fail("has " + std::to_string(shared) + " shared experts of " +
                       std::to_string(m.intermediate) + " inner values");
  m.sharedIntermediate = shared * m.intermediate;
  LLMRT_RETURN_IF_ERROR(config.read("first_k_dense_replace", first));
  LLMRT_RETURN_IF_ERROR(config.read("moe_layer_freq", every));
  if (every == 0)
    return config.fail("has a moe_layer_freq of 0");
  for (size_t i = first; i < model.layers.size(); ++i)
    model.layers[i].mixture = i % every == 0;
  return Status::ok();
}

/// Groups of experts, unless there is one of them.
Status readGroups(ConfigReader &config, DecoderConfig &model) {
  uint64_t groups = 1, top = 1;
  LLMRT_RETURN_IF_ERROR(config.read("n_group", groups));
  LLMRT_RETURN_IF_ERROR(config.read("topk_group", top));
  if (groups > 1 && top < groups) {
    model.mixture.groups = groups;
    model.mixture.topGroups = top;
  }
  return Status::ok();
}

Status readCommon(ConfigReader &config, DecoderConfig &model) {
  LLMRT_ASSIGN_OR_RETURN(const uint64_t layers, config.required({"num_hidden_layers"}));
  LLMRT_RETURN_IF_ERROR(makeLayers(config, layers, model));
  LLMRT_ASSIGN_OR_RETURN(model.hidden, config.required({"hidden_size"}));
  LLMRT_ASSIGN_OR_RETURN(model.mlp.intermediate, config.required({"intermediate_size"}));
  LLMRT_ASSIGN_OR_RETURN(model.vocabulary, config.required({"vocab_size"}));
  LLMRT_ASSIGN_OR_RETURN(model.maxContext, config.required({"max_position_embeddings"}));
  LLMRT_RETURN_IF_ERROR(readRmsNorm(config, 1e-6, model));
  LLMRT_RETURN_IF_ERROR(readActivation(config, "hidden_act", "silu", model.mlp));
  LLMRT_RETURN_IF_ERROR(config.read("tie_word_embeddings", model.tiedHead));
  LLMRT_RETURN_IF_ERROR(readLatent(config, model));
  return readExperts(config, model);
}

/// `topk_method` or `scoring_func`, one of a few words.
Status readWord(ConfigReader &config, const char *key,
                std::initializer_list<std::string_view> known) {
  LLMRT_ASSIGN_OR_RETURN(const std::optional<std::string> word, config.text(key));
  std::string list;
  for (std::string_view one : known) {
    if (!word || *word == one)
      return Status::ok();
    list += (list.empty() ? "" : ", ") + std::string(one);
  }
  return unsupported("config.json: " + std::string(key) + " '" + *word +
                     "' is not supported; supported for this family: " + list);
}

} // namespace

Status readDeepSeekV2(ConfigReader &config, DecoderConfig &model) {
  LLMRT_RETURN_IF_ERROR(readCommon(config, model));
  LLMRT_RETURN_IF_ERROR(config.onlyAllowed("mlp_bias", "false"));
  LLMRT_RETURN_IF_ERROR(readWord(config, "scoring_func", {"softmax"}));
  LLMRT_RETURN_IF_ERROR(readWord(config, "topk_method", {"greedy", "group_limited_greedy"}));
  LLMRT_ASSIGN_OR_RETURN(const std::optional<std::string> method, config.text("topk_method"));
  LLMRT_RETURN_IF_ERROR(readGroups(config, model));
  if (method.value_or("greedy") == "greedy")
    model.mixture.groups = model.mixture.topGroups = 0;
  model.attention.interleavedRope = true;
  return Status::ok();
}

Status readDeepSeekV3(ConfigReader &config, DecoderConfig &model) {
  LLMRT_RETURN_IF_ERROR(readCommon(config, model));
  LLMRT_RETURN_IF_ERROR(readWord(config, "scoring_func", {"sigmoid"}));
  LLMRT_RETURN_IF_ERROR(readWord(config, "topk_method", {"noaux_tc"}));
  LLMRT_RETURN_IF_ERROR(readGroups(config, model));
  MixtureForm &m = model.mixture;
  m.scoring = RouterScoring::Sigmoid;
  m.correction = true;
  m.groupBestTwo = m.groups != 0;
  model.attention.interleavedRope = true;
  LLMRT_RETURN_IF_ERROR(config.read("rope_interleave", model.attention.interleavedRope));
  return config.read("num_nextn_predict_layers", model.draftLayers);
}

} // namespace llmc
