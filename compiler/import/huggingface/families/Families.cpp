#include "compiler/import/huggingface/families/Families.h"

#include "compiler/import/huggingface/ModelConfig.h"

using namespace llmrt;

namespace llmc {

const std::vector<Family> &families() {
  static const std::vector<Family> list = {{"bloom", readBloom},
                                           {"deepseek_v2", readDeepSeekV2},
                                           {"deepseek_v3", readDeepSeekV3},
                                           {"falcon", readFalcon},
                                           {"gemma", readGemma},
                                           {"gemma2", readGemma2},
                                           {"gemma3_text", readGemma3},
                                           {"gpt2", readGpt2},
                                           {"gpt_neox", readGptNeoX},
                                           {"gpt_oss", readGptOss},
                                           {"granite", readGranite},
                                           {"granitemoe", readGraniteMoe},
                                           {"llama", readLlama},
                                           {"mistral", readMistral},
                                           {"mixtral", readMixtral},
                                           {"olmo2", readOlmo2},
                                           {"phi", readPhi},
                                           {"phi3", readPhi3},
                                           {"qwen2", readQwen2},
                                           {"qwen2_moe", readQwen2Moe},
                                           {"qwen3", readQwen3},
                                           {"qwen3_moe", readQwen3Moe},
                                           {"smollm3", readSmolLm3}};
  return list;
}

Status makeLayers(const ConfigReader &config, uint64_t count, DecoderConfig &model) {
  if (count == 0 || count > 10000)
    return config.fail("has " + std::to_string(count) + " layers; 1 to 10000 is possible");
  model.layers.resize(count);
  return Status::ok();
}

Status readHeadSize(ConfigReader &config, DecoderConfig &model) {
  AttentionForm &a = model.attention;
  LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> headSize, config.integer("head_dim"));
  if (a.heads == 0 || (!headSize && model.hidden % a.heads != 0))
    return config.fail("has a hidden_size of " + std::to_string(model.hidden) + " for " +
                       std::to_string(a.heads) + " heads and no head_dim");
  a.headSize = headSize.value_or(model.hidden / a.heads);
  return Status::ok();
}

Status readSizes(ConfigReader &config, DecoderConfig &model) {
  AttentionForm &a = model.attention;
  LLMRT_ASSIGN_OR_RETURN(const uint64_t layers, config.required({"num_hidden_layers"}));
  LLMRT_RETURN_IF_ERROR(makeLayers(config, layers, model));
  LLMRT_ASSIGN_OR_RETURN(model.hidden, config.required({"hidden_size"}));
  LLMRT_ASSIGN_OR_RETURN(model.mlp.intermediate, config.required({"intermediate_size"}));
  LLMRT_ASSIGN_OR_RETURN(a.heads, config.required({"num_attention_heads"}));
  LLMRT_ASSIGN_OR_RETURN(model.vocabulary, config.required({"vocab_size"}));
  LLMRT_ASSIGN_OR_RETURN(model.maxContext, config.required({"max_position_embeddings"}));
  a.kvHeads = a.heads;
  LLMRT_RETURN_IF_ERROR(config.read("num_key_value_heads", a.kvHeads));
  return readHeadSize(config, model);
}

Status readActivation(ConfigReader &config, const char *key, const char *fallback, MlpForm &mlp) {
  LLMRT_ASSIGN_OR_RETURN(const std::optional<std::string> name, config.text(key));
  Result<MlpActivation> activation = activationNamed(name.value_or(fallback));
  if (!activation)
    return activation.status().withContext(std::string("config.json: '") + key + "'");
  mlp.activation = *activation;
  return Status::ok();
}

Result<bool> readLayerTypes(ConfigReader &config, uint64_t window, DecoderConfig &model) {
  const JsonValue types = config.value("layer_types");
  if (types.isNull())
    return false;
  if (!types.isArray())
    return config.file().wrongType("layer_types", types, "an array of strings");
  if (types.size() != model.layers.size())
    return config.fail("has " + std::to_string(types.size()) + " layer_types for " +
                       std::to_string(model.layers.size()) + " layers");
  size_t layer = 0;
  for (JsonValue type : types.elements()) {
    const std::string_view name = type.isString() ? type.asString() : std::string_view();
    if (name != "full_attention" && name != "sliding_attention")
      return unsupported("config.json: layer type '" + std::string(name) +
                         "' is not supported; full_attention and sliding_attention are");
    const bool isSliding = name == "sliding_attention";
    if (isSliding && window == 0)
      return config.fail("has sliding layers and no sliding_window");
    model.layers[layer++].window = isSliding ? window : 0;
  }
  return true;
}

Status readSharedRope(ConfigReader &config, DecoderConfig &model) {
  LLMRT_ASSIGN_OR_RETURN(RopeParameters rope,
                         readRopeParameters(config, model.attention.headSize, model.maxContext));
  model.ropes = {std::move(rope)};
  return Status::ok();
}

Status readRmsNorm(ConfigReader &config, double fallback, DecoderConfig &model) {
  model.norm.kind = NormForm::Kind::Rms;
  model.norm.eps = fallback;
  return config.read("rms_norm_eps", model.norm.eps);
}

Status readLayerNorm(ConfigReader &config, const char *key, DecoderConfig &model) {
  model.norm.kind = NormForm::Kind::Layer;
  model.norm.bias = true;
  model.norm.eps = 1e-5;
  return config.read(key, model.norm.eps);
}

} // namespace llmc
