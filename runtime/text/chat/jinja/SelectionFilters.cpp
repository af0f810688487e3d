//===- SelectionFilters.cpp - map, select, reject and their kin ------------------------===//
//
// These make their items on demand: what nobody reads is never computed, and never fails.
//
//===----------------------------------------------------------------------===//
#include "runtime/text/chat/jinja/Attributes.h"
#include "runtime/text/chat/jinja/Compare.h"
#include "runtime/text/chat/jinja/Evaluator.h"
#include "runtime/text/chat/jinja/Filters.h"
#include "runtime/text/chat/jinja/Iterate.h"
#include "runtime/text/chat/jinja/Methods.h"

namespace llmrt::jinja {

namespace {

/// The items of \p input; none if it is none, empty or otherwise false.
NextFn lazyItems(Evaluator &ev, const Value &input) {
  return [&ev, input, started = false, next = NextFn()](Value &item) mutable {
    if (!started) {
      started = true;
      if (isTrue(ev.session, input))
        next = iterate(ev.session, input);
    }
    return next && next(item);
  };
}

/// Filters the items by \p keep; negated if \p reject.
template <bool Reject, bool ByAttribute>
Value select(Evaluator &ev, const Value &input, Args &args) {
  size_t used = 0;
  std::optional<Value> path;
  if (ByAttribute) {
    if (args.positional.empty())
      ev.session.fail(std::string(args.function) + "() needs the name of an attribute");
    path = args.positional[used++];
  }
  std::optional<std::string> test;
  if (args.positional.size() > used) {
    if (!args.positional[used].isString())
      ev.session.fail(std::string(args.function) + "() needs the name of a test");
    test = args.positional[used++].text();
  }
  std::vector<Value> rest(args.positional.begin() + static_cast<long>(used), args.positional.end());
  auto next = [&ev, items = lazyItems(ev, input), path, test, rest,
               keyword = args.keyword](Value &item) mutable {
    while (items(item)) {
      ev.session.step();
      Value subject = path ? followPath(ev.session, item, *path) : item;
      bool holds;
      if (test) {
        Args testArgs(*test);
        testArgs.positional = rest;
        testArgs.keyword = keyword;
        holds = ev.applyTest(*test, subject, testArgs);
      } else {
        holds = isTrue(ev.session, subject);
      }
      if (holds != Reject)
        return true;
    }
    return false;
  };
  return Value::object(ev.session.make<Generator>(std::move(next)));
}

Value mapByAttribute(Evaluator &ev, const Value &input, Args &args) {
  std::optional<Value> path, byDefault;
  for (const auto &[name, value] : args.keyword) {
    if (name == "attribute")
      path = value;
    else if (name == "default")
      byDefault = value.isNone() ? std::nullopt : std::optional(value);
    else
      ev.session.fail("map() has no argument '" + name + "'");
  }
  auto next = [&ev, items = lazyItems(ev, input), path, byDefault](Value &out) mutable {
    Value item;
    if (!items(item))
      return false;
    out = followPath(ev.session, item, *path, byDefault ? &*byDefault : nullptr);
    return true;
  };
  return Value::object(ev.session.make<Generator>(std::move(next)));
}

Value map(Evaluator &ev, const Value &input, Args &args) {
  if (args.positional.empty()) {
    for (const auto &[name, value] : args.keyword)
      if (name == "attribute")
        return mapByAttribute(ev, input, args);
    ev.session.fail("map() needs the name of a filter, or an attribute");
  }
  if (!args.positional[0].isString())
    ev.session.fail("map() needs the name of a filter");
  std::string filter = args.positional[0].text();
  std::vector<Value> rest(args.positional.begin() + 1, args.positional.end());
  auto next = [&ev, items = lazyItems(ev, input), filter, rest,
               keyword = args.keyword](Value &out) mutable {
    Value item;
    if (!items(item))
      return false;
    ev.session.step();
    Args filterArgs(filter);
    filterArgs.positional = rest;
    filterArgs.keyword = keyword;
    out = ev.applyFilter(filter, item, filterArgs);
    return true;
  };
  return Value::object(ev.session.make<Generator>(std::move(next)));
}

constexpr FilterEntry table[] = {
    {"map", map},
    {"reject", select<true, false>},
    {"rejectattr", select<true, true>},
    {"select", select<false, false>},
    {"selectattr", select<false, true>},
};
static_assert(isSortedByName(table));

} // namespace

std::span<const FilterEntry> selectionFilters() { return table; }

} // namespace llmrt::jinja
