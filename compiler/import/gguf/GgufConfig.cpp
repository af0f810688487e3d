#include "compiler/import/gguf/GgufConfig.h"

#include "compiler/import/gguf/GgufArchitectures.h"
#include "compiler/import/gguf/GgufMixture.h"

#include <cmath>

using namespace llmrt;

namespace llmc {
namespace {

/// The values of a vector that divides rotary frequencies; empty where there is no such tensor.
Result<std::vector<float>> readDivisors(const GgufKeys &keys, const char *name, uint64_t count) {
  std::vector<float> values;
  const GgufTensor *tensor = keys.file().findTensor(name);
  if (!tensor)
    return values;
  LLMRT_ASSIGN_OR_RETURN(const WeightSource source, keys.file().source(*tensor));
  if (source.rows != count || source.columns != 1)
    return keys.fail(std::string("tensor '") + name + "' has " + std::to_string(source.rows) +
                     " values; " + std::to_string(count) + " are needed");
  values.resize(count);
  LLMRT_RETURN_IF_ERROR(source.readRows(0, count, values.data()));
  return values;
}

Result<RopeParameters> readRope(GgufKeys &keys, const DecoderConfig &model) {
  RopeParameters p;
  LLMRT_ASSIGN_OR_RETURN(const std::optional<double> theta, keys.number("rope.freq_base"));
  p.theta = theta.value_or(p.theta);
  LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> size, keys.integer("rope.dimension_count"));
  p.rotarySize = size.value_or(model.attention.headSize);
  LLMRT_ASSIGN_OR_RETURN(const std::optional<std::string> type, keys.text("rope.scaling.type"));
  LLMRT_ASSIGN_OR_RETURN(std::optional<double> factor, keys.number("rope.scaling.factor"));
  LLMRT_ASSIGN_OR_RETURN(const std::optional<double> older, keys.number("rope.scale_linear"));
  if (!type && !factor)
    factor = older; // the key's older form
  p.type = type.value_or(factor ? "linear" : "none");
  if (p.type == "none")
    p.type = "default";
  p.factor = factor.value_or(1.0);
  LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> original,
                         keys.integer("rope.scaling.original_context_length"));
  p.originalContext = original.value_or(model.maxContext);
  LLMRT_ASSIGN_OR_RETURN(const std::optional<double> attention,
                         keys.number("rope.scaling.attn_factor"));
  if (attention && p.type == "yarn" && p.factor > 1)
    p.attentionFactor = *attention * (0.1 * std::log(p.factor) + 1.0);
  const uint64_t pairs = p.rotarySize / 2;
  LLMRT_ASSIGN_OR_RETURN(p.divisors, readDivisors(keys, "rope_freqs.weight", pairs));
  LLMRT_ASSIGN_OR_RETURN(p.shortFactors, readDivisors(keys, "rope_factors_short.weight", pairs));
  LLMRT_ASSIGN_OR_RETURN(p.longFactors, readDivisors(keys, "rope_factors_long.weight", pairs));
  if (!p.longFactors.empty()) {
    p.type = "longrope";
    p.factor = static_cast<double>(model.maxContext) / static_cast<double>(p.originalContext);
    p.attentionFactor = attention;
  }
  return p;
}

/// The sizes that all architectures have.
Status readSizes(GgufKeys &keys, DecoderConfig &model) {
  AttentionForm &a = model.attention;
  LLMRT_ASSIGN_OR_RETURN(const uint64_t layers, keys.required("block_count"));
  if (layers > keys.file().tensors().size())
    return keys.fail("claims " + std::to_string(layers) + " layers, but has only " +
                     std::to_string(keys.file().tensors().size()) + " tensors");
  model.layers.resize(layers);
  LLMRT_ASSIGN_OR_RETURN(model.hidden, keys.required("embedding_length"));
  LLMRT_ASSIGN_OR_RETURN(model.maxContext, keys.required("context_length"));
  LLMRT_RETURN_IF_ERROR(keys.uniform("feed_forward_length", layers, model.mlp.intermediate));
  LLMRT_RETURN_IF_ERROR(keys.uniform("attention.head_count", layers, a.heads));
  a.kvHeads = a.heads;
  LLMRT_RETURN_IF_ERROR(keys.uniform("attention.head_count_kv", layers, a.kvHeads));
  LLMRT_RETURN_IF_ERROR(readGgufLatent(keys, a));
  LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> keySize,
                         keys.integer("attention.key_length"));
  LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> valueSize,
                         keys.integer("attention.value_length"));
  if (a.heads == 0 || (!keySize && model.hidden % a.heads != 0))
    return keys.fail("has " + std::to_string(a.heads) + " heads for an embedding of " +
                     std::to_string(model.hidden));
  a.headSize = keySize.value_or(model.hidden / a.heads);
  if (valueSize.value_or(a.headSize) != a.headSize && !a.latent.rank)
    return unsupported(keys.path() + ": keys and values of different sizes are not supported");
  const GgufTensor *embedding = keys.file().findTensor("token_embd.weight");
  if (!embedding || embedding->shape.size() != 2)
    return keys.fail("has no matrix 'token_embd.weight'");
  model.vocabulary = embedding->shape[0];
  return Status::ok();
}

Status readNorm(GgufKeys &keys, NormForm::Kind kind, NormForm &norm) {
  const bool isLayer = kind == NormForm::Kind::Layer;
  const char *key = isLayer ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon";
  LLMRT_ASSIGN_OR_RETURN(const std::optional<double> eps, keys.number(key));
  if (!eps)
    return keys.fail("has no metadata key '" + keys.full(key) + "'");
  norm = {kind, *eps, /*plusOne=*/false, /*bias=*/isLayer};
  return Status::ok();
}

/// What the names of the tensors say.
void readTensors(const GgufKeys &keys, DecoderConfig &model) {
  AttentionForm &a = model.attention;
  model.tiedHead = !keys.hasTensor("output.weight");
  model.headBias = keys.hasTensor("output.bias");
  if (keys.hasTensor("blk.0.attn_qkv.weight"))
    a.qkv = QkvForm::Stacked; // whatever the checkpoint had: the converters stack
  a.qkvBias = keys.hasTensor("blk.0.attn_q.bias") || keys.hasTensor("blk.0.attn_qkv.bias");
  a.outputBias = keys.hasTensor("blk.0.attn_output.bias");
  model.mlp.upBias = keys.hasTensor("blk.0.ffn_up.bias");
  model.mlp.downBias = keys.hasTensor("blk.0.ffn_down.bias");
}

} // namespace

Result<DecoderConfig> readGgufConfig(const GgufFile &file, std::vector<std::string> &notes,
                                     uint64_t maxModelLen) {
  LLMRT_ASSIGN_OR_RETURN(const std::optional<std::string> name,
                         file.string("general.architecture"));
  const std::string &path = file.files().front().path();
  if (!name)
    return invalidFile(path + ": has no metadata key 'general.architecture'");
  const GgufArchitecture *architecture = findGgufArchitecture(*name);
  if (!architecture)
    return unsupported(path + ": architecture '" + *name +
                       "' is not supported; supported in GGUF: " + supportedGgufArchitectures() +
                       " (Mistral is a llama)");
  GgufKeys keys(file, *name, notes);
  DecoderConfig model;
  model.architecture = *name;
  LLMRT_ASSIGN_OR_RETURN(const std::optional<std::string> title, file.string("general.name"));
  model.name = title.value_or("");
  LLMRT_RETURN_IF_ERROR(readSizes(keys, model));
  LLMRT_RETURN_IF_ERROR(readNorm(keys, architecture->norm, model.norm));
  readTensors(keys, model);
  LLMRT_ASSIGN_OR_RETURN(RopeParameters rope, readRope(keys, model));
  model.ropes = {std::move(rope)};
  LLMRT_RETURN_IF_ERROR(architecture->complete(keys, model));
  LLMRT_RETURN_IF_ERROR(keys.checkHonoured());
  if (!model.ropes.empty() && !file.find(keys.full("rope.freq_base")))
    notes.push_back("the file has no " + keys.full("rope.freq_base") + "; 10000 is taken");
  for (RopeParameters &one : model.ropes)
    limitLongRope(one, maxModelLen, model.maxContext, notes);
  LLMRT_RETURN_IF_ERROR(model.check().withContext(path));
  return model;
}

} // namespace llmc
