#include "compiler/import/huggingface/ConfigReader.h"

#include <algorithm>

using namespace llmrt;

namespace llmc {
namespace {

/// Keys of published configurations that change what a model computes.
constexpr const char *kMathematical[] = {
#define LLMC_CONFIG_KEY(Name) Name,
#include "compiler/import/huggingface/MathematicalKeys.inc"
};

/// Keys that have no influence on what a step computes: training, generation, bookkeeping.
constexpr const char *kHarmless[] = {
#define LLMC_CONFIG_KEY(Name) Name,
#include "compiler/import/huggingface/HarmlessKeys.inc"
};

bool isListed(const auto &list, std::string_view key) {
  return std::find(std::begin(list), std::end(list), key) != std::end(list);
}

/// Values with which a feature that a family doesn't have is off; a multiplier of 1 is, too.
bool isOff(std::string_view key, JsonValue value) {
  if (value.isNull() || (value.isBool() && !value.asBool()))
    return true;
  const std::optional<double> number = jsonNumber(value);
  const bool isFactor = key.ends_with("_multiplier") || key.find("scal") != key.npos;
  return number && (*number == 0 || (isFactor && *number == 1));
}

} // namespace

JsonValue ConfigReader::value(const char *key) {
  asked.insert(key);
  return file_.root()[key];
}

Result<std::optional<uint64_t>> ConfigReader::integer(const char *key) {
  asked.insert(key);
  return file_.unsignedInteger(file_.root(), key);
}

Result<std::optional<double>> ConfigReader::number(const char *key) {
  asked.insert(key);
  return file_.number(file_.root(), key);
}

Result<std::optional<std::string>> ConfigReader::text(const char *key) {
  asked.insert(key);
  return file_.string(file_.root(), key);
}

Result<bool> ConfigReader::flag(const char *key, bool fallback) {
  asked.insert(key);
  LLMRT_ASSIGN_OR_RETURN(const std::optional<bool> found, file_.boolean(file_.root(), key));
  return found.value_or(fallback);
}

Result<uint64_t> ConfigReader::required(std::initializer_list<const char *> keys) {
  std::optional<uint64_t> found;
  for (const char *key : keys) {
    LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> value, integer(key));
    if (!found)
      found = value;
  }
  if (!found)
    return fail(std::string("has no '") + *keys.begin() + "'");
  return *found;
}

Status ConfigReader::read(const char *key, uint64_t &to) {
  LLMRT_ASSIGN_OR_RETURN(const std::optional<uint64_t> found, integer(key));
  to = found.value_or(to);
  return Status::ok();
}

Status ConfigReader::read(const char *key, double &to) {
  LLMRT_ASSIGN_OR_RETURN(const std::optional<double> found, number(key));
  to = found.value_or(to);
  return Status::ok();
}

Status ConfigReader::read(const char *key, bool &to) {
  LLMRT_ASSIGN_OR_RETURN(to, flag(key, to));
  return Status::ok();
}

Status ConfigReader::onlyAllowed(const char *key, std::string_view allowed) {
  const JsonValue found = value(key);
  std::string text;
  if (found.isNull())
    return Status::ok();
  if (found.isBool())
    text = found.asBool() ? "true" : "false";
  else if (found.isString() || found.type() == JsonType::Number)
    text = found.asString();
  else
    text = found.typeName();
  if (text == allowed)
    return Status::ok();
  return unsupported(file_.path() + ": '" + key + "' is " + text + "; only " +
                     std::string(allowed) + " is supported");
}

Status ConfigReader::checkHonoured(const std::string &family) {
  std::string unknown;
  for (const auto &[name, value] : file_.root().members()) {
    if (asked.contains(name) || isOff(name, value))
      continue;
    if (isListed(kMathematical, name))
      return unsupported(file_.path() + ": '" + std::string(name) +
                         "' changes what the model computes and is not supported for '" + family +
                         "'");
    if (!isListed(kHarmless, name))
      unknown += (unknown.empty() ? "'" : ", '") + std::string(name) + "'";
  }
  if (!unknown.empty())
    note("config.json: keys that are not known to '" + family + "' were ignored: " + unknown);
  return Status::ok();
}

} // namespace llmc
