#include "compiler/import/huggingface/ModelConfig.h"

#include <algorithm>

using namespace llmrt;

namespace llmc {
namespace {

constexpr const char *supportedFamilies = "llama, mistral, qwen2, qwen3";

/// A whole number that must be there.
Result<uint64_t> required(const JsonFile &config, const char *key) {
  LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> value,
                         config.unsignedInteger(config.root(), key));
  if (!value)
    return config.fail(std::string("has no '") + key + "'");
  return *value;
}

Result<bool> flag(const JsonFile &config, const char *key, bool fallback) {
  LLMRT_ASSIGN_OR_RETURN(const std::optional<bool> value, config.boolean(config.root(), key));
  return value.value_or(fallback);
}

/// Keys that a query sees in each layer: 0 is all.
Status readWindows(const JsonFile &config, DecoderConfig &model) {
  model.windows.assign(model.layers, 0);
  LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> window,
                         config.unsignedInteger(config.root(), "sliding_window"));
  if (!window || model.architecture == "llama")
    return Status::ok();
  if (*window == 0)
    return config.fail("has a sliding_window of 0");
  const JsonValue types = config.root()["layer_types"];
  if (types.isArray()) {
    if (types.size() != model.layers)
      return config.fail("has " + std::to_string(types.size()) + " layer_types for " +
                         std::to_string(model.layers) + " layers");
    uint64_t layer = 0;
    for (JsonValue type : types.elements()) {
      const std::string_view name = type.isString() ? type.asString() : std::string_view();
      if (name != "full_attention" && name != "sliding_attention")
        return unsupported("config.json: layer type '" + std::string(name) +
                           "' is not supported; full_attention and sliding_attention are");
      model.windows[layer++] = name == "sliding_attention" ? *window : 0;
    }
    return Status::ok();
  }
  if (model.architecture == "mistral") {
    model.windows.assign(model.layers, *window);
    return Status::ok();
  }
  // Qwen: windows only where they are switched on, in the layers from max_window_layers on.
  LLMRT_ASSIGN_OR_RETURN(const bool used, flag(config, "use_sliding_window", false));
  if (!used)
    return Status::ok();
  LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> first,
                         config.unsignedInteger(config.root(), "max_window_layers"));
  for (uint64_t layer = std::min(first.value_or(0), model.layers); layer != model.layers; ++layer)
    model.windows[layer] = *window;
  return Status::ok();
}

} // namespace

Result<DecoderConfig> readModelConfig(const JsonFile &config, std::vector<std::string> &notes) {
  const JsonValue root = config.root();
  DecoderConfig model;
  LLMRT_ASSIGN_OR_RETURN(const std::optional<std::string> type, config.string(root, "model_type"));
  if (!type)
    return config.fail("has no 'model_type'");
  model.architecture = *type;
  const bool llama = *type == "llama", mistral = *type == "mistral", qwen2 = *type == "qwen2",
             qwen3 = *type == "qwen3";
  if (!llama && !mistral && !qwen2 && !qwen3)
    return unsupported("config.json: model_type '" + *type + "' is not supported; supported: " +
                       supportedFamilies + ". Its ONNX export may work");
  if (!root["quantization_config"].isNull())
    return unsupported(
        "config.json: quantized checkpoints (quantization_config) are not supported; "
        "give the original weights and --int4 or --int8, or a GGUF file");

  LLMRT_ASSIGN_OR_RETURN(const std::optional<std::string> name,
                         config.string(root, "_name_or_path"));
  model.name = name.value_or("");
  LLMRT_ASSIGN_OR_RETURN(model.layers, required(config, "num_hidden_layers"));
  LLMRT_ASSIGN_OR_RETURN(model.hidden, required(config, "hidden_size"));
  LLMRT_ASSIGN_OR_RETURN(model.intermediate, required(config, "intermediate_size"));
  LLMRT_ASSIGN_OR_RETURN(model.heads, required(config, "num_attention_heads"));
  LLMRT_ASSIGN_OR_RETURN(model.vocabulary, required(config, "vocab_size"));
  LLMRT_ASSIGN_OR_RETURN(model.maxContext, required(config, "max_position_embeddings"));
  LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> kvHeads,
                         config.unsignedInteger(root, "num_key_value_heads"));
  model.kvHeads = kvHeads.value_or(model.heads);
  LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> headSize,
                         config.unsignedInteger(root, "head_dim"));
  if (model.heads == 0 || (!headSize && model.hidden % model.heads != 0))
    return config.fail("has a hidden_size of " + std::to_string(model.hidden) + " for " +
                       std::to_string(model.heads) + " heads and no head_dim");
  model.headSize = headSize.value_or(model.hidden / model.heads);
  LLMRT_ASSIGN_OR_RETURN(const std::optional<double> eps, config.number(root, "rms_norm_eps"));
  model.normEps = eps.value_or(1e-6);
  LLMRT_ASSIGN_OR_RETURN(const std::optional<std::string> activation,
                         config.string(root, "hidden_act"));
  model.activation = activation.value_or("silu");
  LLMRT_ASSIGN_OR_RETURN(model.tiedHead, flag(config, "tie_word_embeddings", false));
  LLMRT_ASSIGN_OR_RETURN(const bool attentionBias, flag(config, "attention_bias", false));
  LLMRT_ASSIGN_OR_RETURN(const bool mlpBias, flag(config, "mlp_bias", false));
  model.qkvBias = qwen2 || ((llama || qwen3) && attentionBias);
  model.outputBias = (llama || qwen3) && attentionBias;
  model.mlpBias = llama && mlpBias;
  model.headNorms = qwen3;
  if (model.layers > 10000)
    return config.fail("has " + std::to_string(model.layers) + " layers");
  LLMRT_RETURN_IF_ERROR(readWindows(config, model));
  LLMRT_ASSIGN_OR_RETURN(model.rope,
                         readRopeParameters(config, model.headSize, model.maxContext, notes));
  LLMRT_RETURN_IF_ERROR(model.check());
  return model;
}

} // namespace llmc
