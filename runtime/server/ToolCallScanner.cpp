#include "runtime/server/ToolCallScanner.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace llmrt::server {
namespace {

bool isSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

/// The text of a JSON string; nothing if \p json is none.
std::optional<std::string> decoded(const std::string &json) {
  nlohmann::json value = nlohmann::json::parse(json, nullptr, false);
  if (!value.is_string())
    return std::nullopt;
  return value.get<std::string>();
}

bool holdsArguments(const std::string &key) {
  return key == "\"arguments\"" || key == "\"parameters\"";
}

} // namespace

void ToolCallScanner::reset(bool bareArguments) {
  *this = {};
  bare_ = bareArguments;
}

ToolCallScanner::Status ToolCallScanner::push(std::string_view text, size_t &used) {
  for (used = 0; used < text.size();) {
    Status status = byte(text[used++]);
    if (status != Status::Open)
      return status;
  }
  return Status::Open;
}

std::string ToolCallScanner::takeArguments() {
  if (!bare_ && !name_)
    return {};
  return std::exchange(arguments_, {});
}

void ToolCallScanner::endValue() {
  if (key_ == "\"name\"")
    name_ = decoded(value_);
  // Some models write the arguments as a string that holds JSON.
  if (textArguments_)
    if (std::optional<std::string> text = decoded(value_))
      arguments_ = std::move(*text);
  textArguments_ = false;
  key_.clear();
  value_.clear();
}

ToolCallScanner::Status ToolCallScanner::byte(char c) {
  if (inString_) {
    // A string's end does not end the value or key: what follows it does.
    if (escaped_)
      escaped_ = false;
    else if (c == '\\')
      escaped_ = true;
    else if (c == '"')
      inString_ = false;
  } else if (c == '"') {
    inString_ = true;
  }

  if (where_ == Where::Before) {
    if (isSpace(c))
      return Status::Open;
    if (c != '{')
      return Status::Broken;
    depth_ = 1;
    where_ = bare_ ? Where::Value : Where::Key;
    if (bare_) {
      sawArguments_ = true;
      arguments_ += c;
    }
    return Status::Open;
  }
  bool structural = !inString_ && c != '"';
  if (bare_) {
    arguments_ += c;
    if (structural && (c == '{' || c == '['))
      ++depth_;
    if (structural && (c == '}' || c == ']') && --depth_ == 0)
      return Status::Done;
    return Status::Open;
  }
  switch (where_) {
  case Where::Key:
    if (structural && isSpace(c))
      return Status::Open;
    if (structural && c == ':' && !key_.empty()) {
      where_ = Where::AfterKey;
      return Status::Open;
    }
    if (structural && c == '}' && key_.empty())
      return Status::Done;
    if (structural || (key_.empty() && c != '"'))
      return Status::Broken;
    key_ += c;
    return Status::Open;
  case Where::AfterKey: // spaces before the value
    if (isSpace(c))
      return Status::Open;
    where_ = Where::Value;
    if (holdsArguments(key_)) {
      sawArguments_ = true;
      textArguments_ = c == '"';
    }
    [[fallthrough]];
  case Where::Value:
    if (structural && depth_ == 1 && (c == ',' || c == '}' || isSpace(c))) {
      endValue();
      where_ = Where::AfterValue;
      break;
    }
    if (structural && (c == '{' || c == '['))
      ++depth_;
    if (structural && (c == '}' || c == ']') && --depth_ < 1)
      return Status::Broken;
    if (holdsArguments(key_) && !textArguments_)
      arguments_ += c;
    else
      value_ += c;
    return Status::Open;
  default:
    break;
  }
  // After a value.
  if (isSpace(c))
    return Status::Open;
  if (c == ',') {
    where_ = Where::Key;
    return Status::Open;
  }
  return c == '}' ? Status::Done : Status::Broken;
}

} // namespace llmrt::server
