#include "runtime/text/chat/jinja/Args.h"

#include "runtime/text/chat/jinja/Compare.h"

namespace llmrt::jinja {

void Args::bind(Session &session, std::initializer_list<const char *> names, size_t required) {
  const std::string who = std::string(function) + "()";
  if (positional.size() > names.size())
    session.fail(who + " takes at most " + std::to_string(names.size()) + " arguments, " +
                 std::to_string(positional.size()) + " are given");
  bound_.assign(names.size(), std::nullopt);
  for (size_t i = 0; i < positional.size(); ++i)
    bound_[i] = positional[i];
  for (const auto &[name, value] : keyword) {
    size_t i = 0;
    while (i < names.size() && name != names.begin()[i])
      ++i;
    if (i == names.size())
      session.fail(who + " has no argument '" + name + "'");
    if (bound_[i])
      session.fail(who + " gets the argument '" + name + "' twice");
    bound_[i] = value;
  }
  for (size_t i = 0; i < required; ++i)
    if (!bound_[i])
      session.fail(who + " needs the argument '" + names.begin()[i] + "'");
}

bool Args::flag(Session &session, size_t i, bool fallback) const {
  return given(i) ? isTrue(session, at(i)) : fallback;
}

Int Args::integer(Session &session, size_t i, std::optional<Int> fallback) const {
  if (fallback && (!given(i) || at(i).isNone()))
    return *fallback;
  if (!given(i) || !at(i).isIntegral()) {
    if (given(i) && at(i).isUndefined())
      session.failUndefined(at(i));
    session.fail(std::string(function) + "() needs a whole number, not " +
                 (given(i) ? typeName(at(i)) : "nothing"));
  }
  return at(i).asInt();
}

const std::string &Args::text(Session &session, size_t i) const {
  if (!given(i) || !at(i).isString()) {
    if (given(i) && at(i).isUndefined())
      session.failUndefined(at(i));
    session.fail(std::string(function) + "() needs a string, not " +
                 (given(i) ? typeName(at(i)) : "nothing"));
  }
  return at(i).text();
}

} // namespace llmrt::jinja
