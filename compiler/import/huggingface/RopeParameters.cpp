#include "compiler/import/huggingface/ModelConfig.h"

#include <cmath>

using namespace llmrt;

namespace llmc {
namespace {

/// What one object (rope_scaling or rope_parameters) says, theta excepted.
Result<RopeParameters> readObject(const JsonFile &config, JsonValue object) {
  RopeParameters p;
  LLMRT_ASSIGN_OR_RETURN(std::optional<std::string> type, config.string(object, "rope_type"));
  if (!type) {
    LLMRT_ASSIGN_OR_RETURN(type, config.string(object, "type")); // the key's older name
  }
  p.type = type.value_or("default");
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
  if (p.type != "default" && object["factor"].isNull())
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

/// `rope_parameters`: one object, or one for each type of layer.
Result<WithTheta> readNewKey(const JsonFile &config, JsonValue parameters) {
  std::optional<WithTheta> common;
  bool nested = false;
  for (auto [name, value] : parameters.members()) {
    if (!value.isObject())
      continue;
    nested = true;
    LLMRT_ASSIGN_OR_RETURN(WithTheta one, readWithTheta(config, value));
    if (common && !(*common == one))
      return unsupported("config.json: rope_parameters differ by type of layer ('" +
                         std::string(name) + "'), which this family does not have");
    common = std::move(one);
  }
  return nested ? Result<WithTheta>(std::move(*common)) : readWithTheta(config, parameters);
}

} // namespace

Result<RopeParameters> readRopeParameters(const JsonFile &config, uint64_t headSize,
                                          uint64_t maxContext, std::vector<std::string> &notes) {
  const JsonValue root = config.root();
  const JsonValue scaling = root["rope_scaling"], parameters = root["rope_parameters"];
  for (const auto &[key, value] :
       {std::pair("rope_scaling", scaling), std::pair("rope_parameters", parameters)})
    if (!value.isNull() && !value.isObject())
      return config.wrongType(key, value, "an object");

  WithTheta found;
  LLMRT_ASSIGN_OR_RETURN(const std::optional<double> oldTheta, config.number(root, "rope_theta"));
  found.theta = oldTheta;
  if (!scaling.isNull()) {
    LLMRT_ASSIGN_OR_RETURN(found.parameters, readObject(config, scaling));
  }
  if (!parameters.isNull()) {
    LLMRT_ASSIGN_OR_RETURN(WithTheta newer, readNewKey(config, parameters));
    if (oldTheta && newer.theta && *oldTheta != *newer.theta)
      return config.fail("has rope_theta " + std::to_string(*oldTheta) +
                         " and, in rope_parameters, " + std::to_string(*newer.theta) +
                         "; they must agree");
    if (!scaling.isNull() && !(newer.parameters == found.parameters))
      return config.fail("has rope_scaling and rope_parameters that differ");
    found.parameters = newer.parameters;
    found.theta = newer.theta ? newer.theta : oldTheta;
  }
  RopeParameters p = found.parameters;
  if (found.theta)
    p.theta = *found.theta;
  else
    notes.push_back("config.json names no rope_theta; 10000 is taken");
  // Some configurations have it beside rope_scaling, not in it. The longest context is that of
  // training where neither says otherwise.
  if (p.originalContext == 0) {
    LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> original,
                           config.unsignedInteger(root, "original_max_position_embeddings"));
    p.originalContext = original.value_or(maxContext);
  }
  LLMRT_ASSIGN_OR_RETURN(std::optional<double> part, config.number(root, "partial_rotary_factor"));
  if (!part && parameters.isObject()) {
    LLMRT_ASSIGN_OR_RETURN(part, config.number(parameters, "partial_rotary_factor"));
  }
  if (part && !(*part > 0 && *part <= 1))
    return config.fail("has a partial_rotary_factor of " + std::to_string(*part));
  p.rotarySize = static_cast<uint64_t>(static_cast<double>(headSize) * part.value_or(1.0));
  return p;
}

} // namespace llmc
