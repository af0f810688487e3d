#include "compiler/import/gguf/GgufArchitectures.h"

#include "compiler/import/gguf/GgufMixture.h"

#include <cmath>

using namespace llmrt;

namespace llmc {
namespace {

void setWindow(DecoderConfig &model, uint64_t window) {
  for (DecoderLayer &layer : model.layers)
    layer.window = window;
}

/// `attention.sliding_window`, 0 for none.
Result<uint64_t> readWindow(GgufKeys &keys) {
  LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> window,
                         keys.integer("attention.sliding_window"));
  return window.value_or(0);
}

/// Rows of Q and K for pairs (2i, 2i+1); the converter of the family permutes them.
Status completeLlama(GgufKeys &keys, DecoderConfig &model) {
  LLMRT_ASSIGN_OR_RETURN(const uint64_t window, readWindow(keys));
  setWindow(model, window);
  model.attention.permutedHeads = true;
  return readGgufExperts(keys, model); // Mixtral is a llama
}

Status completeQwen2(GgufKeys &keys, DecoderConfig &model) {
  LLMRT_ASSIGN_OR_RETURN(const uint64_t window, readWindow(keys));
  setWindow(model, window);
  return Status::ok();
}

Status completeQwen3(GgufKeys &keys, DecoderConfig &model) {
  model.attention.qkNorm = QkNorm::Head;
  return completeQwen2(keys, model);
}

Status completeSmolLm3(GgufKeys &keys, DecoderConfig &model) {
  LLMRT_RETURN_IF_ERROR(completeLlama(keys, model));
  for (size_t i = 3; i < model.layers.size(); i += 4)
    model.layers[i].rope = -1; // every fourth; not in the file
  return Status::ok();
}

Status completeGranite(GgufKeys &keys, DecoderConfig &model) {
  LLMRT_RETURN_IF_ERROR(completeLlama(keys, model));
  LLMRT_RETURN_IF_ERROR(keys.read("embedding_scale", model.embeddingScale));
  LLMRT_RETURN_IF_ERROR(keys.read("residual_scale", model.residualScale));
  LLMRT_RETURN_IF_ERROR(keys.read("attention.scale", model.attention.scale));
  double divisor = 1;
  LLMRT_RETURN_IF_ERROR(keys.read("logit_scale", divisor));
  if (!(divisor > 0))
    return keys.fail("has a logit_scale that isn't positive");
  model.logitScale = 1 / divisor;
  return Status::ok();
}

Status completeOlmo2(GgufKeys &, DecoderConfig &model) {
  model.normPlace = NormPlace::After;
  model.attention.qkNorm = QkNorm::Row;
  return Status::ok();
}

/// Norms are stored as 1 + w.
Status completeGemma(GgufKeys &, DecoderConfig &model) {
  model.embeddingScale = std::sqrt(static_cast<double>(model.hidden));
  model.mlp.activation = MlpActivation::GeluTanh;
  return Status::ok();
}

/// What Gemma 2 and 3 have in common. The largest of each (\p scaledByHidden layers) divides by the
/// root of hidden / heads instead of that of the head size, which the file doesn't say.
Status completeSandwich(GgufKeys &keys, DecoderConfig &model, size_t scaledByHidden,
                        uint64_t pattern) {
  LLMRT_RETURN_IF_ERROR(completeGemma(keys, model));
  model.normPlace = NormPlace::Around;
  if (model.layers.size() == scaledByHidden)
    model.attention.scale = 1 / std::sqrt(static_cast<double>(model.hidden) /
                                          static_cast<double>(model.attention.heads));
  LLMRT_RETURN_IF_ERROR(keys.read("attn_logit_softcapping", model.attention.softcap));
  LLMRT_RETURN_IF_ERROR(keys.read("final_logit_softcapping", model.logitSoftcap));
  LLMRT_ASSIGN_OR_RETURN(const uint64_t window, readWindow(keys));
  for (size_t i = 0; i != model.layers.size(); ++i)
    model.layers[i].window = (i + 1) % pattern ? window : 0;
  return Status::ok();
}

Status completeGemma2(GgufKeys &keys, DecoderConfig &model) {
  return completeSandwich(keys, model, 46, 2);
}

Status completeGemma3(GgufKeys &keys, DecoderConfig &model) {
  LLMRT_RETURN_IF_ERROR(completeSandwich(keys, model, 62, 6));
  model.attention.qkNorm = QkNorm::Head;
  // Layers with a window rotate with a base of 10000 and no scaling; neither is in the file.
  RopeParameters local;
  local.rotarySize = model.ropes[0].rotarySize;
  LLMRT_RETURN_IF_ERROR(keys.read("rope.local.freq_base", local.theta));
  model.ropes.push_back(local);
  for (DecoderLayer &layer : model.layers)
    layer.rope = layer.window ? 1 : 0;
  return Status::ok();
}

Status completePhi2(GgufKeys &, DecoderConfig &model) {
  model.residual = ResidualForm::ParallelSharedNorm;
  model.mlp.gated = false;
  model.mlp.activation = MlpActivation::GeluTanh;
  return Status::ok();
}

Status completePhi3(GgufKeys &keys, DecoderConfig &model) {
  LLMRT_ASSIGN_OR_RETURN(const uint64_t window, readWindow(keys));
  setWindow(model, window);
  model.mlp.fusedGateUp = true;
  return Status::ok();
}

Status completeGpt2(GgufKeys &keys, DecoderConfig &model) {
  const GgufTensor *positions = keys.file().findTensor("position_embd.weight");
  if (!positions || positions->shape.size() != 2)
    return keys.fail("has no matrix 'position_embd.weight'");
  model.learnedPositions = positions->shape[0];
  model.mlp.gated = false;
  model.mlp.activation = MlpActivation::GeluTanh;
  model.ropes.clear();
  for (DecoderLayer &layer : model.layers)
    layer.rope = -1;
  return Status::ok();
}

Status completeGptNeoX(GgufKeys &keys, DecoderConfig &model) {
  LLMRT_ASSIGN_OR_RETURN(const bool parallel, keys.flag("use_parallel_residual", true));
  model.residual = parallel ? ResidualForm::Parallel : ResidualForm::Sequential;
  model.mlp.gated = false;
  model.mlp.activation = MlpActivation::Gelu;
  return Status::ok();
}

Status completeFalcon(GgufKeys &keys, DecoderConfig &model) {
  model.residual = keys.hasTensor("blk.0.attn_norm_2.weight") ? ResidualForm::Parallel
                                                              : ResidualForm::ParallelSharedNorm;
  model.mlp.gated = false;
  model.mlp.activation = MlpActivation::Gelu;
  return Status::ok();
}

Status completeBloom(GgufKeys &, DecoderConfig &model) {
  model.embeddingNorm = true;
  model.attention.alibi = true;
  model.mlp.gated = false;
  model.mlp.activation = MlpActivation::GeluTanh;
  model.ropes.clear();
  for (DecoderLayer &layer : model.layers)
    layer.rope = -1;
  return Status::ok();
}

using enum NormForm::Kind;
constexpr GgufArchitecture architectures[] = {
    {"deepseek2", Rms, completeDeepSeek2}, {"gpt-oss", Rms, completeGptOss},
    {"qwen2moe", Rms, completeQwen2Moe},   {"qwen3moe", Rms, completeQwen3Moe},
    {"bloom", Layer, completeBloom},       {"falcon", Layer, completeFalcon},
    {"gemma", Rms, completeGemma},         {"gemma2", Rms, completeGemma2},
    {"gemma3", Rms, completeGemma3},       {"gpt2", Layer, completeGpt2},
    {"gptneox", Layer, completeGptNeoX},   {"granite", Rms, completeGranite},
    {"llama", Rms, completeLlama},         {"olmo2", Rms, completeOlmo2},
    {"phi2", Layer, completePhi2},         {"phi3", Rms, completePhi3},
    {"qwen2", Rms, completeQwen2},         {"qwen3", Rms, completeQwen3},
    {"smollm3", Rms, completeSmolLm3}};

} // namespace

const GgufArchitecture *findGgufArchitecture(const std::string &name) {
  for (const GgufArchitecture &architecture : architectures)
    if (name == architecture.name)
      return &architecture;
  return nullptr;
}

std::string supportedGgufArchitectures() {
  std::string names;
  for (const GgufArchitecture &architecture : architectures)
    names += (names.empty() ? "" : ", ") + std::string(architecture.name);
  return names;
}

} // namespace llmc
