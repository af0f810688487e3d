//===- ToolCallScanner.h - reads one JSON tool call while it is written -----===//
#ifndef LLMRT_SERVER_TOOLCALLSCANNER_H
#define LLMRT_SERVER_TOOLCALLSCANNER_H

#include <optional>
#include <string>
#include <string_view>

namespace llmrt::server {

/// An object {"name": ..., "arguments" or "parameters": {...}}, its members in any order, or, with
/// bareArguments, the arguments alone. Text is taken byte by byte; nothing recurses, whatever the
/// nesting.
class ToolCallScanner {
public:
  enum class Status { Open, Done, Broken };

  void reset(bool bareArguments);
  /// Takes \p text up to the end of the object; \p used is how much.
  Status push(std::string_view text, size_t &used);
  /// The function's name, once it is complete.
  const std::optional<std::string> &name() const { return name_; }
  /// More of the arguments' text since the last call. Empty while the name is not known.
  std::string takeArguments();
  bool hasArguments() const { return sawArguments_; }

private:
  enum class Where { Before, Key, AfterKey, Value, AfterValue };
  Status byte(char c);
  void endValue();

  bool bare_ = false;
  Where where_ = Where::Before;
  int depth_ = 0;
  bool inString_ = false, escaped_ = false;
  std::string key_, value_; ///< JSON text of the member at hand
  std::optional<std::string> name_;
  std::string arguments_; ///< not taken yet
  bool sawArguments_ = false, textArguments_ = false;
};

} // namespace llmrt::server

#endif // LLMRT_SERVER_TOOLCALLSCANNER_H
