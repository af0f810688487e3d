#include "compiler/import/huggingface/ModelConfig.h"

#include <cmath>

using namespace llmrt;

namespace llmc {
namespace {

/// A list of positive numbers; empty where there is none.
Result<std::vector<float>> readFactors(const JsonFile &config, JsonValue object, const char *key) {
  std::vector<float> factors;
  const JsonValue list = object[key];
  if (list.isNull())
    return factors;
  if (!list.isArray())
    return config.wrongType(key, list, "a list of numbers");
  for (JsonValue element : list.elements()) {
    const std::optional<double> number = jsonNumber(element);
    if (!number)
      return config.wrongType(key, element, "a list of numbers");
    factors.push_back(static_cast<float>(*number));
  }
  return factors;
}

/// What one object (rope_scaling or rope_parameters) says, theta excepted.
Result<RopeParameters> readObject(const JsonFile &config, JsonValue object) {
  RopeParameters p;
  LLMRT_ASSIGN_OR_RETURN(std::optional<std::string> type, config.string(object, "rope_type"));
  if (!type) {
    LLMRT_ASSIGN_OR_RETURN(type, config.string(object, "type")); // the key's older name
  }
  p.type = type.value_or("default");
  if (p.type == "su") // its first name
    p.type = "longrope";
  LLMRT_ASSIGN_OR_RETURN(p.shortFactors, readFactors(config, object, "short_factor"));
  LLMRT_ASSIGN_OR_RETURN(p.longFactors, readFactors(config, object, "long_factor"));
  if (p.type != "longrope" && !(p.shortFactors.empty() && p.longFactors.empty()))
    return unsupported("config.json: short_factor and long_factor are not supported for RoPE "
                       "scaling '" +
                       p.type + "'; longrope has them");
  for (const char *key : {"short_mscale", "long_mscale"})
    if (!object[key].isNull())
      return unsupported(std::string("config.json: '") + key +
                         "' of rope_scaling is not supported");
  const struct {
    const char *key;
    double *to;
  } numbers[] = {{"factor", &p.factor},
                 {"low_freq_factor", &p.lowFrequencyFactor},
                 {"high_freq_factor", &p.highFrequencyFactor},
                 {"beta_fast", &p.betaFast},
                 {"beta_slow", &p.betaSlow}};
  for (const auto &[key, to] : numbers) {
    LLMRT_ASSIGN_OR_RETURN(const std::optional<double> value, config.number(object, key));
    *to = value.value_or(*to);
  }
  LLMRT_ASSIGN_OR_RETURN(p.attentionFactor, config.number(object, "attention_factor"));
  LLMRT_ASSIGN_OR_RETURN(p.mscale, config.number(object, "mscale"));
  LLMRT_ASSIGN_OR_RETURN(p.mscaleAllDim, config.number(object, "mscale_all_dim"));
  LLMRT_ASSIGN_OR_RETURN(const std::optional<bool> truncate, config.boolean(object, "truncate"));
  p.truncate = truncate.value_or(true);
  LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> original,
                         config.unsignedInteger(object, "original_max_position_embeddings"));
  p.originalContext = original.value_or(0);
  if (p.type != "default" && p.type != "longrope" && object["factor"].isNull())
    return config.fail("RoPE scaling '" + p.type + "' has no 'factor'");
  return p;
}

struct WithTheta {
  RopeParameters parameters;
  std::optional<double> theta;
  bool operator==(const WithTheta &) const = default;
};

Result<WithTheta> readWithTheta(const JsonFile &config, JsonValue object) {
  WithTheta result;
  LLMRT_ASSIGN_OR_RETURN(result.parameters, readObject(config, object));
  LLMRT_ASSIGN_OR_RETURN(result.theta, config.number(object, "rope_theta"));
  return result;
}

/// The object that holds for layers of \p type: `rope_parameters` itself, or its member of that
/// name. Without a type, all members must say the same.
Result<WithTheta> readNewKey(const JsonFile &config, JsonValue parameters,
                             std::string_view type = {}) {
  std::optional<WithTheta> common;
  bool nested = false;
  for (auto [name, value] : parameters.members()) {
    if (!value.isObject())
      continue;
    nested = true;
    if (!type.empty() && name != type)
      continue;
    LLMRT_ASSIGN_OR_RETURN(WithTheta one, readWithTheta(config, value));
    if (common && !(*common == one))
      return unsupported("config.json: rope_parameters differ by type of layer ('" +
                         std::string(name) + "'), which this family does not have");
    common = std::move(one);
  }
  if (nested && !common)
    return config.fail("has no '" + std::string(type) + "' in rope_parameters");
  return nested ? Result<WithTheta>(std::move(*common)) : readWithTheta(config, parameters);
}

/// What is missing in \p found from keys beside it.
Result<RopeParameters> complete(ConfigReader &config, WithTheta found, uint64_t headSize,
                                uint64_t maxContext) {
  RopeParameters p = std::move(found.parameters);
  if (found.theta)
    p.theta = *found.theta;
  else
    config.note("config.json names no rope_theta; 10000 is taken");
  // Some configurations have it beside rope_scaling, not in it. The longest context is that of
  // training where neither says otherwise.
  LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> original,
                         config.integer("original_max_position_embeddings"));
  if (p.originalContext == 0)
    p.originalContext = original.value_or(maxContext);
  if (p.type == "longrope" && p.originalContext != 0 && original)
    p.factor = static_cast<double>(maxContext) / static_cast<double>(p.originalContext);
  LLMRT_ASSIGN_OR_RETURN(std::optional<double> part, config.number("partial_rotary_factor"));
  const JsonValue parameters = config.value("rope_parameters");
  if (!part && parameters.isObject()) {
    LLMRT_ASSIGN_OR_RETURN(part, config.file().number(parameters, "partial_rotary_factor"));
  }
  if (part && !(*part > 0 && *part <= 1))
    return config.fail("has a partial_rotary_factor of " + std::to_string(*part));
  p.rotarySize = static_cast<uint64_t>(static_cast<double>(headSize) * part.value_or(1.0));
  return p;
}

/// `rope_scaling` and `rope_parameters`, each an object or not there.
Status checkObjects(ConfigReader &config) {
  for (const char *key : {"rope_scaling", "rope_parameters"})
    if (JsonValue value = config.value(key); !value.isNull() && !value.isObject())
      return config.file().wrongType(key, value, "an object");
  return Status::ok();
}

} // namespace

Result<RopeParameters> readRopeParameters(ConfigReader &config, uint64_t headSize,
                                          uint64_t maxContext) {
  LLMRT_RETURN_IF_ERROR(checkObjects(config));
  const JsonValue scaling = config.value("rope_scaling"),
                  parameters = config.value("rope_parameters");
  WithTheta found;
  LLMRT_ASSIGN_OR_RETURN(const std::optional<double> oldTheta, config.number("rope_theta"));
  found.theta = oldTheta;
  if (!scaling.isNull()) {
    LLMRT_ASSIGN_OR_RETURN(found.parameters, readObject(config.file(), scaling));
  }
  if (!parameters.isNull()) {
    LLMRT_ASSIGN_OR_RETURN(WithTheta newer, readNewKey(config.file(), parameters));
    if (oldTheta && newer.theta && *oldTheta != *newer.theta)
      return config.fail("has rope_theta " + std::to_string(*oldTheta) +
                         " and, in rope_parameters, " + std::to_string(*newer.theta) +
                         "; they must agree");
    if (!scaling.isNull() && !(newer.parameters == found.parameters))
      return config.fail("has rope_scaling and rope_parameters that differ");
    found.parameters = newer.parameters;
    found.theta = newer.theta ? newer.theta : oldTheta;
  }
  return complete(config, std::move(found), headSize, maxContext);
}

Result<RopesByLayerType> readRopeByLayerType(ConfigReader &config, uint64_t headSize,
                                             uint64_t maxContext) {
  LLMRT_RETURN_IF_ERROR(checkObjects(config));
  const JsonValue parameters = config.value("rope_parameters");
  WithTheta full, sliding;
  LLMRT_ASSIGN_OR_RETURN(full.theta, config.number("rope_theta"));
  LLMRT_ASSIGN_OR_RETURN(sliding.theta, config.number("rope_local_base_freq"));
  if (!parameters.isNull()) {
    LLMRT_ASSIGN_OR_RETURN(full, readNewKey(config.file(), parameters, "full_attention"));
    LLMRT_ASSIGN_OR_RETURN(sliding, readNewKey(config.file(), parameters, "sliding_attention"));
  } else if (const JsonValue scaling = config.value("rope_scaling"); !scaling.isNull()) {
    // The scaling stretches the layers that see everything; a window needs none.
    LLMRT_ASSIGN_OR_RETURN(full.parameters, readObject(config.file(), scaling));
  }
  RopesByLayerType result;
  LLMRT_ASSIGN_OR_RETURN(result.full, complete(config, std::move(full), headSize, maxContext));
  LLMRT_ASSIGN_OR_RETURN(result.sliding,
                         complete(config, std::move(sliding), headSize, maxContext));
  return result;
}

} // namespace llmc
