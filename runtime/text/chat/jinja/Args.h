//===- Args.h - the arguments of one call -----------------------------------------===//
#ifndef LLMRT_TEXT_CHAT_JINJA_ARGS_H
#define LLMRT_TEXT_CHAT_JINJA_ARGS_H

#include "runtime/text/chat/jinja/Session.h"

#include <initializer_list>
#include <optional>

namespace llmrt::jinja {

class Args {
public:
  explicit Args(std::string_view function) : function(function) {}

  std::string_view function; ///< what errors call it
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keyword;

  /// Sorts the arguments into the parameters \p names; the first \p required must be there.
  /// Fails for too many, unknown or doubled ones.
  void bind(Session &session, std::initializer_list<const char *> names, size_t required = 0);
  /// Parameter \p i, or null if it was not given.
  const Value *get(size_t i) const { return bound_[i] ? &*bound_[i] : nullptr; }
  const Value &at(size_t i) const { return *bound_[i]; }
  bool given(size_t i) const { return bound_[i].has_value(); }

  // Parameters by type; an absent one gives the fallback. None counts as absent for the
  // optional ones, as it does for most of Python's.
  bool flag(Session &session, size_t i, bool fallback) const;
  Int integer(Session &session, size_t i, std::optional<Int> fallback = std::nullopt) const;
  const std::string &text(Session &session, size_t i) const;

private:
  std::vector<std::optional<Value>> bound_;
};

} // namespace llmrt::jinja

#endif // LLMRT_TEXT_CHAT_JINJA_ARGS_H
