#include "compiler/import/gguf/GgufConfig.h"

#include <cmath>

using namespace llmrt;

namespace llmc {
namespace {

/// Metadata under ARCHITECTURE.KEY.
class ArchitectureKeys {
public:
  ArchitectureKeys(const GgufFile &file, std::string architecture)
      : file_(file), prefix_(std::move(architecture) + ".") {}

  Status fail(const std::string &why) const {
    return invalidFile(file_.files().front().path() + ": " + why);
  }
  std::string full(const char *key) const { return prefix_ + key; }

  Result<std::optional<uint64_t>> integer(const char *key) const {
    return file_.unsignedInteger(full(key));
  }
  Result<std::optional<double>> number(const char *key) const { return file_.number(full(key)); }
  Result<uint64_t> required(const char *key) const {
    LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> value, integer(key));
    if (!value)
      return fail("has no metadata key '" + full(key) + "'");
    return *value;
  }
  /// A number that may be given for each layer, but is the same for all.
  Result<std::optional<uint64_t>> uniform(const char *key, uint64_t layers) const {
    LLMRT_ASSIGN_OR_RETURN(const auto values, file_.perLayer(full(key), layers));
    if (!values)
      return std::optional<uint64_t>();
    for (uint64_t value : *values)
      if (value != values->front())
        return unsupported(file_.files().front().path() + ": '" + full(key) +
                           "' differs by layer, which is not supported");
    return std::optional(values->front());
  }

private:
  const GgufFile &file_;
  std::string prefix_;
};

Result<RopeParameters> readRope(const GgufFile &file, const ArchitectureKeys &keys,
                                const DecoderConfig &model, std::vector<std::string> &notes) {
  RopeParameters p;
  LLMRT_ASSIGN_OR_RETURN(const std::optional<double> theta, keys.number("rope.freq_base"));
  if (theta)
    p.theta = *theta;
  else
    notes.push_back("the file has no " + keys.full("rope.freq_base") + "; 10000 is taken");
  LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> size, keys.integer("rope.dimension_count"));
  p.rotarySize = size.value_or(model.headSize);
  LLMRT_ASSIGN_OR_RETURN(const std::optional<std::string> type,
                         file.string(keys.full("rope.scaling.type")));
  LLMRT_ASSIGN_OR_RETURN(std::optional<double> factor, keys.number("rope.scaling.factor"));
  if (!type && !factor) {
    LLMRT_ASSIGN_OR_RETURN(factor, keys.number("rope.scale_linear")); // the key's older form
  }
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
  if (const GgufTensor *tensor = file.findTensor("rope_freqs.weight")) {
    LLMRT_ASSIGN_OR_RETURN(const WeightSource source, file.source(*tensor));
    if (source.rows != p.rotarySize / 2 || source.columns != 1)
      return keys.fail("tensor 'rope_freqs.weight' has " + std::to_string(source.rows) +
                       " values; " + std::to_string(p.rotarySize / 2) + " are needed");
    p.divisors.resize(source.rows);
    LLMRT_RETURN_IF_ERROR(source.readRows(0, source.rows, p.divisors.data()));
  }
  return p;
}

} // namespace

Result<DecoderConfig> readGgufConfig(const GgufFile &file, std::vector<std::string> &notes) {
  LLMRT_ASSIGN_OR_RETURN(const std::optional<std::string> architecture,
                         file.string("general.architecture"));
  const std::string &path = file.files().front().path();
  if (!architecture)
    return invalidFile(path + ": has no metadata key 'general.architecture'");
  if (*architecture != "llama" && *architecture != "qwen2" && *architecture != "qwen3")
    return unsupported(path + ": architecture '" + *architecture +
                       "' is not supported; supported in GGUF: llama (also Mistral), qwen2, qwen3");
  const ArchitectureKeys keys(file, *architecture);
  DecoderConfig model;
  model.architecture = *architecture;
  LLMRT_ASSIGN_OR_RETURN(const std::optional<std::string> name, file.string("general.name"));
  model.name = name.value_or("");
  LLMRT_ASSIGN_OR_RETURN(model.layers, keys.required("block_count"));
  if (model.layers > file.tensors().size())
    return keys.fail("claims " + std::to_string(model.layers) + " layers, but has only " +
                     std::to_string(file.tensors().size()) + " tensors");
  LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> experts, keys.integer("expert_count"));
  if (experts.value_or(0) != 0)
    return unsupported(path + ": a mixture of " + std::to_string(*experts) +
                       " experts is not supported");
  LLMRT_ASSIGN_OR_RETURN(model.hidden, keys.required("embedding_length"));
  LLMRT_ASSIGN_OR_RETURN(model.maxContext, keys.required("context_length"));
  const auto uniform = [&](const char *key, uint64_t &to) -> Status {
    LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> value, keys.uniform(key, model.layers));
    if (value)
      to = *value;
    else if (to == 0)
      return keys.fail("has no metadata key '" + keys.full(key) + "'");
    return Status::ok();
  };
  LLMRT_RETURN_IF_ERROR(uniform("feed_forward_length", model.intermediate));
  LLMRT_RETURN_IF_ERROR(uniform("attention.head_count", model.heads));
  model.kvHeads = model.heads;
  LLMRT_RETURN_IF_ERROR(uniform("attention.head_count_kv", model.kvHeads));
  LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> keySize,
                         keys.integer("attention.key_length"));
  LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> valueSize,
                         keys.integer("attention.value_length"));
  if (model.heads == 0 || (!keySize && model.hidden % model.heads != 0))
    return keys.fail("has " + std::to_string(model.heads) + " heads for an embedding of " +
                     std::to_string(model.hidden));
  model.headSize = keySize.value_or(model.hidden / model.heads);
  if (valueSize.value_or(model.headSize) != model.headSize)
    return unsupported(path + ": keys and values of different sizes are not supported");
  LLMRT_ASSIGN_OR_RETURN(const std::optional<double> eps,
                         keys.number("attention.layer_norm_rms_epsilon"));
  if (!eps)
    return keys.fail("has no metadata key '" + keys.full("attention.layer_norm_rms_epsilon") + "'");
  model.normEps = *eps;
  LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> window,
                         keys.integer("attention.sliding_window"));
  model.windows.assign(model.layers, window.value_or(0));

  const GgufTensor *embedding = file.findTensor("token_embd.weight");
  if (!embedding || embedding->shape.size() != 2)
    return keys.fail("has no matrix 'token_embd.weight'");
  model.vocabulary = embedding->shape[0];
  model.tiedHead = !file.findTensor("output.weight");
  model.qkvBias = file.findTensor("blk.0.attn_q.bias");
  model.outputBias = file.findTensor("blk.0.attn_output.bias");
  model.mlpBias = file.findTensor("blk.0.ffn_gate.bias");
  model.headNorms = *architecture == "qwen3";
  model.permutedHeads = *architecture == "llama";
  LLMRT_ASSIGN_OR_RETURN(model.rope, readRope(file, keys, model, notes));
  LLMRT_RETURN_IF_ERROR(model.check().withContext(path));
  return model;
}

} // namespace llmc
