#include "runtime/speculate/SpeculativeConfig.h"

#include "runtime/text/Json.h"

#include <algorithm>
#include <optional>

namespace llmrt {
namespace {

using Method = SpeculativeConfig::Method;

Status wrong(std::string_view key, const std::string &why) {
  return invalidArgument("speculative-config: \"" + std::string(key) + "\" " + why);
}

Status readInteger(const JsonMember &member, int64_t low, int64_t high, int64_t &value) {
  std::optional<int64_t> number =
      member.value.type() == JsonType::Number ? member.value.asInteger() : std::nullopt;
  if (!number || *number < low || *number > high)
    return wrong(member.key,
                 "must be an integer from " + std::to_string(low) + " to " + std::to_string(high));
  value = *number;
  return Status::ok();
}

Status readMethod(const JsonValue &value, Method &method) {
  std::string_view name = value.isString() ? value.asString() : std::string_view();
  if (name == "ngram" || name == "[ngram]")
    method = Method::Ngram;
  else if (name == "suffix")
    method = Method::Suffix;
  else if (name == "draft_model")
    method = Method::DraftModel;
  else
    return wrong("method", (name.empty() ? "is no text" : "is \"" + std::string(name) + "\"") +
                               "; there are \"ngram\", \"suffix\" and \"draft_model\"");
  return Status::ok();
}

} // namespace

Result<SpeculativeConfig> SpeculativeConfig::parse(std::string_view json) {
  Result<JsonDocument> document = JsonDocument::parse(json);
  if (!document)
    return document.status().withContext("speculative-config");
  if (!document->root().isObject())
    return invalidArgument(std::string("speculative-config is ") + document->root().typeName() +
                           "; it must be an object, as {\"method\": \"ngram\"}");
  SpeculativeConfig config;
  std::optional<int64_t> tokens;
  bool hasMin = false, hasMax = false;
  for (JsonMember member : document->root().members()) {
    if (member.key == "method") {
      LLMRT_RETURN_IF_ERROR(readMethod(member.value, config.method));
    } else if (member.key == "model") {
      if (!member.value.isString() || member.value.asString().empty())
        return wrong(member.key, "must be the path of a plan");
      config.model = member.value.asString();
    } else if (member.key == "num_speculative_tokens") {
      tokens.emplace();
      LLMRT_RETURN_IF_ERROR(readInteger(member, 1, 64, *tokens));
    } else if (member.key == "prompt_lookup_min") {
      hasMin = true;
      LLMRT_RETURN_IF_ERROR(readInteger(member, 1, 64, config.lookupMin));
    } else if (member.key == "prompt_lookup_max") {
      hasMax = true;
      LLMRT_RETURN_IF_ERROR(readInteger(member, 1, 64, config.lookupMax));
    } else if (member.key == "adaptive") {
      if (!member.value.isBool())
        return wrong(member.key, "must be true or false");
      config.adaptive = member.value.asBool();
    } else if (member.key == "tree") {
      if (!member.value.isBool())
        return wrong(member.key, "must be true or false");
      config.tree = member.value.asBool();
    } else if (member.key == "acceptance") {
      std::string_view rule = member.value.isString() ? member.value.asString() : "";
      if (rule != "exact" && rule != "classical")
        return wrong(member.key, "must be \"exact\" or \"classical\"");
      config.classical = rule == "classical";
    } else {
      return wrong(member.key,
                   "is not known; there are method, model, num_speculative_tokens, "
                   "prompt_lookup_min, prompt_lookup_max, adaptive, tree and acceptance");
    }
  }
  if (config.method == Method::None)
    config.method = config.model.empty() ? Method::None : Method::DraftModel;
  // vLLM spells prompt lookup as a model's name, too.
  if (config.model == "ngram" || config.model == "[ngram]")
    config.method = Method::Ngram, config.model.clear();
  if (config.method == Method::None)
    return invalidArgument("speculative-config names no \"method\" and no \"model\"");
  if ((config.method == Method::DraftModel) == config.model.empty())
    return config.model.empty() ? wrong("method", "is draft_model, which needs a \"model\"")
                                : wrong("model", "is given for a method that has none");
  if (hasMin != hasMax) // one alone moves the other
    (hasMin ? config.lookupMax : config.lookupMin) =
        hasMin ? std::max(config.lookupMin, config.lookupMax)
               : std::min(config.lookupMin, config.lookupMax);
  if (config.lookupMin > config.lookupMax)
    return wrong("prompt_lookup_min", "is above prompt_lookup_max");
  int64_t standard = config.method == Method::DraftModel ? 4 : 16;
  config.tokens = tokens.value_or(standard);
  return config;
}

} // namespace llmrt
