#include "runtime/server/Fields.h"

#include <charconv>
#include <cmath>
#include <unordered_map>

namespace llmrt::server {
namespace {

std::string shown(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

/// A number as the client wrote it, if it is short.
std::string written(JsonValue value) {
  std::string text(value.asString());
  return text.size() > 40 ? text.substr(0, 37) + "..." : text;
}

} // namespace

std::optional<double> asDouble(JsonValue value) {
  if (!value || value.type() != JsonType::Number)
    return std::nullopt;
  std::string_view digits = value.asString();
  double number = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(number))
    return std::nullopt;
  return number;
}

std::optional<int64_t> asWhole(JsonValue value) {
  if (!value || value.type() != JsonType::Number)
    return std::nullopt;
  if (std::optional<int64_t> exact = value.asInteger())
    return exact;
  std::optional<double> number = asDouble(value);
  if (!number || *number != std::floor(*number))
    return std::nullopt;
  if (*number >= 0x1p63)
    return std::numeric_limits<int64_t>::max();
  if (*number < -0x1p63)
    return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(*number);
}

Fields::Fields(JsonValue object, std::string prefix) : object_(object), prefix_(std::move(prefix)) {
  std::unordered_map<std::string_view, size_t> places;
  for (auto [key, value] : object_.members()) {
    auto [place, isNew] = places.try_emplace(key, members_.size());
    if (isNew)
      members_.emplace_back(key, value);
    else
      members_[place->second].second = value;
  }
}

void Fields::fail(ApiError error) {
  if (!error_)
    error_ = std::move(error);
}

void Fields::fail(std::string_view name, const std::string &message) {
  fail(badRequest("'" + path(name) + "' " + message, path(name)));
}

JsonValue Fields::value(std::string_view name) {
  for (const auto &[key, value] : members_)
    if (key == name) {
      read_.insert(key);
      return value.isNull() ? JsonValue() : value;
    }
  return JsonValue();
}

std::optional<bool> Fields::boolean(std::string_view name) {
  JsonValue v = value(name);
  if (!v)
    return std::nullopt;
  if (!v.isBool()) {
    fail(name, std::string("must be true or false, not ") + v.typeName());
    return std::nullopt;
  }
  return v.asBool();
}

std::optional<double> Fields::number(std::string_view name, double low, double high) {
  JsonValue v = value(name);
  if (!v)
    return std::nullopt;
  if (v.type() != JsonType::Number) {
    fail(name, std::string("must be a number, not ") + v.typeName());
    return std::nullopt;
  }
  std::optional<double> n = asDouble(v);
  if (!n || *n < low || *n > high) {
    fail(name, "is " + written(v) + "; it must be from " + shown(low) + " to " + shown(high));
    return std::nullopt;
  }
  return n;
}

std::optional<int64_t> Fields::integer(std::string_view name, int64_t low, int64_t high) {
  JsonValue v = value(name);
  if (!v)
    return std::nullopt;
  if (v.type() != JsonType::Number) {
    fail(name, std::string("must be a whole number, not ") + v.typeName());
    return std::nullopt;
  }
  std::optional<int64_t> n = asWhole(v);
  if (!n) {
    fail(name, "is " + written(v) + "; it must be a whole number");
    return std::nullopt;
  }
  if (*n < low || *n > high) {
    fail(name, "is " + written(v) + "; it must be " +
                   (high == std::numeric_limits<int64_t>::max()
                        ? "at least " + std::to_string(low)
                        : "from " + std::to_string(low) + " to " + std::to_string(high)));
    return std::nullopt;
  }
  return n;
}

std::optional<std::string> Fields::string(std::string_view name) {
  JsonValue v = value(name);
  if (!v)
    return std::nullopt;
  if (!v.isString()) {
    fail(name, std::string("must be a string, not ") + v.typeName());
    return std::nullopt;
  }
  return std::string(v.asString());
}

std::optional<std::vector<int32_t>> Fields::ids(std::string_view name, int32_t vocabulary) {
  JsonValue v = value(name);
  if (!v)
    return std::nullopt;
  if (!v.isArray()) {
    fail(name, std::string("must be an array of token ids, not ") + v.typeName());
    return std::nullopt;
  }
  std::vector<int32_t> list;
  for (JsonValue element : v.elements()) {
    std::optional<int64_t> id = asWhole(element);
    if (!id || *id < 0 || *id >= vocabulary) {
      fail(name, "holds " +
                     (element.type() == JsonType::Number ? written(element)
                                                         : std::string(element.typeName())) +
                     "; token ids go from 0 to " + std::to_string(vocabulary - 1));
      return std::nullopt;
    }
    list.push_back(static_cast<int32_t>(*id));
  }
  return list;
}

std::vector<std::string> Fields::unread() const {
  std::vector<std::string> names;
  for (const auto &[key, value] : members_)
    if (!value.isNull() && !read_.count(key))
      names.push_back(path(key));
  return names;
}

Result<nlohmann::ordered_json> toJson(JsonValue value) {
  if (value.isNull())
    return nlohmann::ordered_json(nullptr);
  if (value.isString())
    return nlohmann::ordered_json(std::string(value.asString()));
  if (value.isBool())
    return nlohmann::ordered_json(value.asBool());
  if (value.isArray()) {
    auto list = nlohmann::ordered_json::array();
    for (JsonValue element : value.elements()) {
      LLMRT_ASSIGN_OR_RETURN(nlohmann::ordered_json made, toJson(element));
      list.push_back(std::move(made));
    }
    return list;
  }
  if (value.isObject()) {
    constexpr size_t mostMembers = 4096;
    if (value.size() > mostMembers)
      return invalidArgument("an object has " + std::to_string(value.size()) +
                             " members; at most " + std::to_string(mostMembers) + " are allowed");
    auto object = nlohmann::ordered_json::object();
    for (auto [key, member] : value.members()) {
      LLMRT_ASSIGN_OR_RETURN(nlohmann::ordered_json made, toJson(member));
      object[std::string(key)] = std::move(made);
    }
    return object;
  }
  if (std::optional<int64_t> whole = value.asInteger())
    return nlohmann::ordered_json(*whole);
  if (std::optional<double> number = asDouble(value))
    return nlohmann::ordered_json(*number);
  return invalidArgument("the number " + written(value) + " is out of range");
}

} // namespace llmrt::server
