//===- Fields.h - reads a request's JSON object, field by field -------------===//
//
// The first fault is kept and ends the reading: ask for all fields, then for error(). A null is
// the same as an absent field. What nobody asked for is in unread().
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_SERVER_FIELDS_H
#define LLMRT_SERVER_FIELDS_H

#include "runtime/server/ApiError.h"
#include "runtime/text/Json.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace llmrt::server {

class Fields {
public:
  /// \p object is an object; \p prefix ("stream_options.") stands before names in errors.
  explicit Fields(JsonValue object, std::string prefix = {});

  /// The value, or a missing one where the field is absent or null.
  JsonValue value(std::string_view name);
  std::optional<bool> boolean(std::string_view name);
  /// A number in [low, high].
  std::optional<double> number(std::string_view name, double low, double high);
  /// A whole number in [low, high], which may be written as 1.0.
  std::optional<int64_t> integer(std::string_view name, int64_t low, int64_t high);
  std::optional<std::string> string(std::string_view name);
  /// An array of ids from 0 to \p vocabulary - 1.
  std::optional<std::vector<int32_t>> ids(std::string_view name, int32_t vocabulary);

  /// Remembers the first fault.
  void fail(ApiError error);
  /// 400 for the field \p name: \p message goes on after its quoted name.
  void fail(std::string_view name, const std::string &message);
  bool ok() const { return !error_; }
  const std::optional<ApiError> &error() const { return error_; }

  /// Fields with a value that were not asked for.
  std::vector<std::string> unread() const;
  std::string path(std::string_view name) const { return prefix_ + std::string(name); }

private:
  JsonValue object_;
  std::string prefix_;
  std::vector<std::pair<std::string_view, JsonValue>> members_; ///< in order; the last of equals
  std::set<std::string_view> read_;
  std::optional<ApiError> error_;
};

/// A number of JSON text as a double; nothing if it is out of range.
std::optional<double> asDouble(JsonValue value);
/// A number that is whole, up to 2^63; larger ones are clamped to INT64_MAX, smaller to INT64_MIN.
std::optional<int64_t> asWhole(JsonValue value);

/// The same value for the chat template and for answers. An object of more than 4096 members is an
/// error, since finding a member takes time in proportion.
Result<nlohmann::ordered_json> toJson(JsonValue value);

} // namespace llmrt::server

#endif // LLMRT_SERVER_FIELDS_H
