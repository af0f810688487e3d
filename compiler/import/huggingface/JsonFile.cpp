#include "compiler/import/huggingface/JsonFile.h"

#include "compiler/import/common/ConfinedPath.h"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <unordered_set>

using namespace llmrt;

namespace llmc {

Result<std::unique_ptr<JsonFile>> JsonFile::open(const std::string &folder,
                                                 const std::string &name) {
  std::error_code ignored;
  // A link that leads nowhere is there, and its failure to open is worth a message.
  if (!std::filesystem::exists(
          std::filesystem::symlink_status(std::filesystem::path(folder) / name, ignored)))
    return std::unique_ptr<JsonFile>();
  LLMRT_ASSIGN_OR_RETURN(MappedFile file, openConfined(folder, name, folder));
  std::unique_ptr<JsonFile> result(new JsonFile(std::move(file)));
  Result<JsonDocument> document = JsonDocument::parse(result->text());
  if (!document.isOk())
    return result->fail(document.status().message());
  result->document_ = std::move(*document);
  if (!result->root().isObject())
    return result->fail("holds no JSON object");
  std::unordered_set<std::string_view> keys;
  for (auto [key, value] : result->root().members())
    if (!keys.insert(key).second)
      return result->fail("has the key '" + std::string(key.substr(0, 80)) + "' twice");
  return result;
}

Status JsonFile::fail(const std::string &why) const {
  return invalidFile(file_.path() + ": " + why);
}

Status JsonFile::wrongType(std::string_view key, JsonValue found, const char *wanted) const {
  return fail("'" + std::string(key) + "' is " + found.typeName() + "; " + wanted + " is needed");
}

std::optional<double> jsonNumber(JsonValue value) {
  if (!value || value.type() != JsonType::Number)
    return std::nullopt;
  const std::string_view digits = value.asString();
  double number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(number))
    return std::nullopt;
  return number;
}

Result<std::optional<uint64_t>> JsonFile::unsignedInteger(JsonValue in,
                                                          std::string_view key) const {
  const JsonValue value = in[key];
  if (value.isNull())
    return std::optional<uint64_t>();
  // Some exporters write whole numbers as 2048.0.
  const std::optional<double> number = jsonNumber(value);
  if (!number || *number < 0 || *number != std::floor(*number) || *number > 9e15)
    return wrongType(key, value, "a whole number that isn't negative");
  return std::optional(static_cast<uint64_t>(*number));
}

Result<std::optional<double>> JsonFile::number(JsonValue in, std::string_view key) const {
  const JsonValue value = in[key];
  if (value.isNull())
    return std::optional<double>();
  const std::optional<double> number = jsonNumber(value);
  if (!number)
    return wrongType(key, value, "a number");
  return number;
}

Result<std::optional<bool>> JsonFile::boolean(JsonValue in, std::string_view key) const {
  const JsonValue value = in[key];
  if (value.isNull())
    return std::optional<bool>();
  if (!value.isBool())
    return wrongType(key, value, "true or false");
  return std::optional(value.asBool());
}

Result<std::optional<std::string>> JsonFile::string(JsonValue in, std::string_view key) const {
  const JsonValue value = in[key];
  if (value.isNull())
    return std::optional<std::string>();
  if (!value.isString())
    return wrongType(key, value, "a string");
  return std::optional<std::string>(std::in_place, value.asString());
}

} // namespace llmc
