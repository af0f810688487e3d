//===- SequenceFilters.cpp - filters over sequences and mappings -----------------------===//
#include "runtime/text/chat/jinja/Attributes.h"
#include "runtime/text/chat/jinja/Compare.h"
#include "runtime/text/chat/jinja/Evaluator.h"
#include "runtime/text/chat/jinja/Filters.h"
#include "runtime/text/chat/jinja/Iterate.h"
#include "runtime/text/chat/jinja/Methods.h"
#include "runtime/text/chat/jinja/Unicode.h"
#include "runtime/text/chat/jinja/ValueText.h"

namespace llmrt::jinja {

namespace {

/// What sorting compares: strings without case, unless they are to differ by it.
Value foldCase(Evaluator &ev, const Value &v, bool caseSensitive) {
  if (caseSensitive || !v.isString())
    return v;
  ev.session.stepBytes(v.text().size() * 16);
  return ev.session.makeString(toLower(v.text()), v.str().markup);
}

/// Sorts \p items by \p keys of the same places.
std::vector<Value> sortByKeys(Evaluator &ev, const std::vector<Value> &items,
                              const std::vector<Value> &keys, bool reverse) {
  std::vector<Value> order;
  for (size_t i = 0; i < items.size(); ++i)
    ev.session.push(order, Value::integer(static_cast<Int>(i)));
  auto key = [&](const Value &i) -> const Value & { return keys[static_cast<size_t>(i.asInt())]; };
  sortStable(ev.session, order, [&](const Value &a, const Value &b) {
    return reverse ? lessThan(ev.session, key(b), key(a)) : lessThan(ev.session, key(a), key(b));
  });
  std::vector<Value> sorted;
  for (const Value &i : order)
    sorted.push_back(items[static_cast<size_t>(i.asInt())]);
  return sorted;
}

/// The values at the comma-separated paths of \p attribute, as a list.
Value multiKey(Evaluator &ev, const Value &item, const Value *attribute, bool caseSensitive) {
  std::vector<Value> parts;
  auto add = [&](const Value &path) {
    parts.push_back(foldCase(ev, followPath(ev.session, item, path), caseSensitive));
  };
  if (attribute && attribute->isString()) {
    std::string_view rest = attribute->text();
    for (size_t comma; (comma = rest.find(',')) != rest.npos; rest.remove_prefix(comma + 1))
      add(ev.session.makeString(rest.substr(0, comma)));
    add(ev.session.makeString(rest));
  } else {
    add(attribute ? *attribute : Value::none());
  }
  return ev.session.makeList(std::move(parts));
}

Value sort(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {"reverse", "case_sensitive", "attribute"});
  const bool caseSensitive = args.flag(ev.session, 1, false);
  std::vector<Value> items = collect(ev.session, input), keys;
  for (const Value &item : items)
    keys.push_back(multiKey(ev, item, args.get(2), caseSensitive));
  return ev.session.makeList(sortByKeys(ev, items, keys, args.flag(ev.session, 0, false)));
}

Value dictSort(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {"case_sensitive", "by", "reverse"});
  const std::string by = args.given(1) ? args.text(ev.session, 1) : "key";
  if (by != "key" && by != "value")
    ev.session.fail("dictsort() sorts by 'key' or 'value'");
  if (input.isUndefined())
    ev.session.failUndefined(input);
  if (!input.is(Kind::Dict))
    ev.session.fail(std::string("dictsort() needs a mapping, not a ") + typeName(input));
  const bool caseSensitive = args.flag(ev.session, 0, false);
  std::vector<Value> items, keys;
  for (const auto &[key, value] : input.as<Dict>().entries) {
    ev.session.push(items, ev.session.makePair(key, value));
    ev.session.push(keys, foldCase(ev, by == "key" ? key : value, caseSensitive));
  }
  return ev.session.makeList(sortByKeys(ev, items, keys, args.flag(ev.session, 2, false)));
}

Value groupBy(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {"attribute", "default", "case_sensitive"}, 1);
  const bool caseSensitive = args.flag(ev.session, 2, false);
  const Value *byDefault = args.given(1) && !args.at(1).isNone() ? args.get(1) : nullptr;
  auto keyOf = [&](const Value &item) {
    return followPath(ev.session, item, args.at(0), byDefault);
  };
  std::vector<Value> items = collect(ev.session, input), keys;
  for (const Value &item : items)
    keys.push_back(foldCase(ev, keyOf(item), caseSensitive));
  std::vector<Value> groups, members;
  Value current;
  auto close = [&] {
    if (members.empty())
      return;
    Value key = keyOf(members[0]);
    Value group = ev.session.makePair(key, ev.session.makeList(std::exchange(members, {})));
    group.as<List>().isGroup = true;
    groups.push_back(group);
  };
  for (const Value &item : sortByKeys(ev, items, keys, false)) {
    Value key = foldCase(ev, keyOf(item), caseSensitive);
    if (!members.empty() && !equals(ev.session, key, current))
      close();
    current = key;
    members.push_back(item);
  }
  close();
  return ev.session.makeList(std::move(groups));
}

template <bool Largest> Value extreme(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {"case_sensitive", "attribute"});
  const bool caseSensitive = args.flag(ev.session, 0, false);
  NextFn next = iterate(ev.session, input);
  Value best, bestKey, item;
  bool any = false;
  while (next(item)) {
    Value key = foldCase(ev, args.given(1) ? followPath(ev.session, item, args.at(1)) : item,
                         caseSensitive);
    const bool better =
        !any || (Largest ? lessThan(ev.session, bestKey, key) : lessThan(ev.session, key, bestKey));
    if (better) {
      best = item;
      bestKey = key;
    }
    any = true;
  }
  return any ? best : ev.session.undefinedHint("the sequence was empty");
}

Value first(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {});
  Value item;
  if (iterate(ev.session, input)(item))
    return item;
  return ev.session.undefinedHint("no first item: the sequence was empty");
}

Value last(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {});
  if (input.is(Kind::Dict) || input.is(Kind::View)) {
    std::vector<Value> items = collect(ev.session, input);
    if (!items.empty())
      return items.back();
  } else {
    if (!input.isString() && !input.isSequence() && !input.is(Kind::Range) && !input.isUndefined())
      ev.session.fail(std::string("last() needs a sequence, not a ") + typeName(input));
    if (Int n = lengthOf(ev.session, input); n > 0) {
      Value item = itemAt(ev.session, input, n - 1);
      return item.isString() && input.isString() ? ev.session.makeString(item.text()) : item;
    }
  }
  return ev.session.undefinedHint("no last item: the sequence was empty");
}

Value list(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {});
  return ev.session.makeList(collect(ev.session, input));
}

Value reverse(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {});
  if (input.isString())
    return sliceOf(ev.session, input, Value::none(), Value::none(), Value::integer(-1));
  std::vector<Value> items = collect(ev.session, input);
  std::reverse(items.begin(), items.end());
  if (input.is(Kind::Generator)) // what Python can't reverse becomes a list
    return ev.session.makeList(std::move(items));
  auto next = [items = std::move(items), i = size_t(0)](Value &out) mutable {
    if (i >= items.size())
      return false;
    out = items[i++];
    return true;
  };
  return Value::object(ev.session.make<Generator>(std::move(next), "list_reverseiterator"));
}

Value items(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {});
  if (input.isUndefined())
    return Value::object(ev.session.make<Generator>([](Value &) { return false; }));
  if (!input.is(Kind::Dict))
    ev.session.fail(std::string("items() needs a mapping, not a ") + typeName(input));
  View *view = ev.session.make<View>(&input.as<Dict>(), View::What::Items);
  return Value::object(ev.session.make<Generator>(iterate(ev.session, Value::object(view))));
}

Value unique(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {"case_sensitive", "attribute"});
  const bool caseSensitive = args.flag(ev.session, 0, false);
  const std::optional<Value> path = args.given(1) ? std::optional(args.at(1)) : std::nullopt;
  NextFn next = iterate(ev.session, input);
  Dict *seen = ev.session.make<Dict>();
  return Value::object(ev.session.make<Generator>([&ev, next, seen, path,
                                                   caseSensitive](Value &item) mutable {
    while (next(item)) {
      ev.session.step();
      Value key = foldCase(ev, path ? followPath(ev.session, item, *path) : item, caseSensitive);
      if (seen->find(ev.session, key))
        continue;
      seen->set(ev.session, key, Value::none());
      return true;
    }
    return false;
  }));
}

Value batch(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {"linecount", "fill_with"}, 1);
  const Int size = args.integer(ev.session, 0);
  std::vector<Value> rows, row;
  for (const Value &item : collect(ev.session, input)) {
    if (static_cast<Int>(row.size()) == size)
      rows.push_back(ev.session.makeList(std::exchange(row, {})));
    row.push_back(item);
  }
  if (!row.empty()) {
    if (args.given(1) && !args.at(1).isNone())
      while (static_cast<Int>(row.size()) < size) {
        ev.session.step();
        ev.session.push(row, args.at(1));
      }
    rows.push_back(ev.session.makeList(std::move(row)));
  }
  return ev.session.makeList(std::move(rows));
}

Value slice(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {"slices", "fill_with"}, 1);
  const Int slices = args.integer(ev.session, 0);
  if (slices == 0)
    ev.session.fail("division by zero: slice() needs at least one slice");
  std::vector<Value> items = collect(ev.session, input), columns;
  const Int length = static_cast<Int>(items.size());
  Int start = 0;
  for (Int i = 0; i < slices; ++i) {
    ev.session.step();
    const bool extra = i < length % slices;
    const Int end = start + length / slices + extra;
    std::vector<Value> column(items.begin() + static_cast<long>(start),
                              items.begin() + static_cast<long>(end));
    if (args.given(1) && !args.at(1).isNone() && !extra)
      column.push_back(args.at(1));
    ev.session.push(columns, ev.session.makeList(std::move(column)));
    start = end;
  }
  return ev.session.makeList(std::move(columns));
}

Value attribute(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {"name"}, 1);
  const std::string &name = args.text(ev.session, 0);
  if (input.is(Kind::Dict) && !findMethod(input, name)) // unlike a dot, never an item
    return ev.session.undefinedMember(input, args.at(0));
  return attributeOf(ev.session, input, name, args.at(0));
}

constexpr FilterEntry table[] = {
    {"attr", attribute},    {"batch", batch},        {"dictsort", dictSort}, {"first", first},
    {"groupby", groupBy},   {"items", items},        {"last", last},         {"list", list},
    {"max", extreme<true>}, {"min", extreme<false>}, {"reverse", reverse},   {"slice", slice},
    {"sort", sort},         {"unique", unique},
};
static_assert(isSortedByName(table));

} // namespace

std::span<const FilterEntry> sequenceFilters() { return table; }

} // namespace llmrt::jinja
