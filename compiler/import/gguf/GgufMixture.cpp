//===- GgufMixture.cpp - mixtures of experts and latent attention in GGUF --------===//

#include "compiler/import/gguf/GgufMixture.h"

#include <cmath>

using namespace llmrt;

namespace llmc {
namespace {

/// An integer that may be missing.
Status read(GgufKeys &keys, const char *key, uint64_t &to) {
  LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> value, keys.integer(key));
  to = value.value_or(to);
  return Status::ok();
}

/// `expert_gating_func`: 1 softmax, 2 sigmoid, 3 softmax of the chosen.
Status readScoring(GgufKeys &keys, MixtureForm &m) {
  LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> function,
                         keys.integer("expert_gating_func"));
  if (!function || *function == 0)
    return Status::ok();
  if (*function > 3)
    return unsupported(keys.path() + ": expert_gating_func " + std::to_string(*function) +
                       " is not supported; supported: 1 softmax, 2 sigmoid, 3 softmax of the "
                       "chosen");
  m.scoring = static_cast<RouterScoring>(*function - 1);
  return Status::ok();
}

} // namespace

Status readGgufExperts(GgufKeys &keys, DecoderConfig &model) {
  MixtureForm &m = model.mixture;
  LLMRT_RETURN_IF_ERROR(read(keys, "expert_count", m.experts));
  if (m.experts == 0)
    return Status::ok();
  LLMRT_ASSIGN_OR_RETURN(m.chosen, keys.required("expert_used_count"));
  m.intermediate = model.mlp.intermediate;
  LLMRT_RETURN_IF_ERROR(read(keys, "expert_feed_forward_length", m.intermediate));
  m.storage = ExpertStorage::Stacked;
  m.normalize = true; // what a missing key means
  LLMRT_ASSIGN_OR_RETURN(m.normalize, keys.flag("expert_weights_norm", m.normalize));
  LLMRT_RETURN_IF_ERROR(keys.read("expert_weights_scale", m.scale));
  LLMRT_RETURN_IF_ERROR(readScoring(keys, m));
  uint64_t shared = 0, dense = 0, groups = 0, top = 0;
  LLMRT_RETURN_IF_ERROR(read(keys, "expert_shared_count", shared));
  LLMRT_RETURN_IF_ERROR(read(keys, "leading_dense_block_count", dense));
  LLMRT_RETURN_IF_ERROR(read(keys, "expert_group_count", groups));
  LLMRT_RETURN_IF_ERROR(read(keys, "expert_group_used_count", top));
  if (shared > 1024 || m.intermediate > uint64_t(1) << 24)
    return keys.fail("has " + std::to_string(shared) + " shared experts of " +
                     std::to_string(m.intermediate) + " inner values");
  m.sharedIntermediate = shared * m.intermediate;
  LLMRT_RETURN_IF_ERROR(read(keys, "expert_shared_feed_forward_length", m.sharedIntermediate));
  if (groups > 1 && top < groups) {
    m.groups = groups;
    m.topGroups = top;
  }
  for (size_t i = dense; i < model.layers.size(); ++i)
    model.layers[i].mixture = true;
  return Status::ok();
}

Status readGgufLatent(GgufKeys &keys, AttentionForm &a) {
  LatentForm &l = a.latent;
  LLMRT_RETURN_IF_ERROR(read(keys, "attention.kv_lora_rank", l.rank));
  if (l.rank == 0)
    return Status::ok();
  LLMRT_RETURN_IF_ERROR(read(keys, "attention.q_lora_rank", l.queryRank));
  LLMRT_ASSIGN_OR_RETURN(l.ropeSize, keys.required("rope.dimension_count"));
  // Older files have the expanded heads' sizes under the plain keys.
  uint64_t keySize = 0;
  LLMRT_RETURN_IF_ERROR(read(keys, "attention.key_length", keySize));
  LLMRT_RETURN_IF_ERROR(read(keys, "attention.value_length", l.valueSize));
  LLMRT_RETURN_IF_ERROR(read(keys, "attention.key_length_mla", keySize));
  LLMRT_RETURN_IF_ERROR(read(keys, "attention.value_length_mla", l.valueSize));
  if (keySize <= l.ropeSize)
    return keys.fail("has heads of " + std::to_string(keySize) + " values, " +
                     std::to_string(l.ropeSize) + " of which are rotated");
  l.nopeSize = keySize - l.ropeSize;
  return Status::ok();
}

Status completeQwen2Moe(GgufKeys &keys, DecoderConfig &model) {
  LLMRT_RETURN_IF_ERROR(readGgufExperts(keys, model));
  LLMRT_ASSIGN_OR_RETURN(model.mixture.normalize, keys.flag("expert_weights_norm", false));
  model.mixture.sharedGate = true;
  return Status::ok();
}

Status completeQwen3Moe(GgufKeys &keys, DecoderConfig &model) {
  model.attention.qkNorm = QkNorm::Head;
  return readGgufExperts(keys, model);
}

Status completeDeepSeek2(GgufKeys &keys, DecoderConfig &model) {
  AttentionForm &a = model.attention;
  LatentForm &l = a.latent;
  if (l.rank == 0)
    return keys.fail("has no metadata key '" + keys.full("attention.kv_lora_rank") + "'");
  a.kvHeads = a.heads; // the file counts the cache's one
  a.headSize = l.nopeSize + l.ropeSize;
  a.interleavedRope = true;
  a.scale = 1 / std::sqrt(static_cast<double>(a.headSize));
  // 0.1 * mscale_all_dim: cosines and sines are not scaled, the scores are, twice.
  double multiplier = 0;
  LLMRT_RETURN_IF_ERROR(keys.read("rope.scaling.yarn_log_multiplier", multiplier));
  RopeParameters &rope = model.ropes.front();
  if (rope.type == "yarn") {
    rope.attentionFactor = 1.0;
    if (rope.factor > 1) {
      const double m = multiplier * std::log(rope.factor) + 1;
      a.scale *= m * m;
    }
  }
  LLMRT_RETURN_IF_ERROR(readGgufExperts(keys, model));
  MixtureForm &m = model.mixture;
  LLMRT_ASSIGN_OR_RETURN(m.normalize, keys.flag("expert_weights_norm", false));
  m.correction = keys.hasTensor(
      ("blk." + std::to_string(model.layers.size() - 1) + ".exp_probs_b.bias").c_str());
  m.groupBestTwo = m.groups != 0 && m.scoring == RouterScoring::Sigmoid;
  return Status::ok();
}

Status completeGptOss(GgufKeys &keys, DecoderConfig &model) {
  LLMRT_RETURN_IF_ERROR(readGgufExperts(keys, model));
  MixtureForm &m = model.mixture;
  m.scoring = RouterScoring::SoftmaxOfChosen;
  m.normalize = false;
  m.routerBias = m.expertBias = true;
  m.alpha = 1.702;
  m.limit = 7.0;
  model.attention.sinks = true;
  // The family's original rounds no bound of YaRN's ramp.
  model.ropes.front().truncate = false;
  LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> window,
                         keys.integer("attention.sliding_window"));
  for (size_t i = 0; i < model.layers.size(); i += 2)
    model.layers[i].window = window.value_or(0);
  return Status::ok();
}

} // namespace llmc
