#include "runtime/text/chat/jinja/Attributes.h"

#include "runtime/text/chat/jinja/Iterate.h"
#include "runtime/text/chat/jinja/Loop.h"
#include "runtime/text/chat/jinja/Macro.h"
#include "runtime/text/chat/jinja/Methods.h"
#include "runtime/text/chat/jinja/Unicode.h"
#include "runtime/text/chat/jinja/ValueText.h"

#include <algorithm>
#include <array>

namespace llmrt::jinja {

Function::Body findMethod(const Value &object, std::string_view name) {
  switch (object.kind()) {
  case Kind::String:
    return findStringMethod(name);
  case Kind::List:
    return findListMethod(name);
  case Kind::Tuple:
    return name == "copy" ? nullptr : findListMethod(name);
  case Kind::Dict:
    return findDictMethod(name);
  case Kind::Loop:
    return findLoopMethod(name);
  case Kind::Cycler:
    return findCyclerMethod(name);
  default:
    return nullptr;
  }
}

/// Whether Python has this method and it changes its object.
static bool isMutator(const Value &object, std::string_view name) {
  static constexpr std::array<std::string_view, 8> ofLists = {
      "append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"};
  static constexpr std::array<std::string_view, 5> ofDicts = {"clear", "pop", "popitem",
                                                              "setdefault", "update"};
  if (object.is(Kind::List))
    return std::find(ofLists.begin(), ofLists.end(), name) != ofLists.end();
  return object.is(Kind::Dict) && std::find(ofDicts.begin(), ofDicts.end(), name) != ofDicts.end();
}

static Value macroAttribute(Session &session, const Macro &macro, std::string_view name) {
  const MacroDefinition &d = *macro.definition;
  if (name == "name")
    return session.makeString(d.name);
  if (name == "arguments") {
    std::vector<Value> names;
    for (const auto &[id, text] : d.parameters)
      names.push_back(session.makeString(text));
    return session.makeList(std::move(names), Kind::Tuple);
  }
  if (name == "catch_kwargs")
    return Value::boolean(d.usesKwargs);
  if (name == "catch_varargs")
    return Value::boolean(d.usesVarargs);
  if (name == "caller")
    return Value::boolean(d.usesCaller);
  return Value();
}

/// The attributes that are neither methods nor items. Nothing if there is none.
static std::optional<Value> plainAttribute(Session &session, const Value &object,
                                           std::string_view name) {
  switch (object.kind()) {
  case Kind::Namespace:
    if (const Value *v = object.as<Namespace>().attributes->find(name))
      return *v;
    return std::nullopt;
  case Kind::Loop:
    return object.as<Loop>().attribute(session, name);
  case Kind::Macro: {
    Value v = macroAttribute(session, object.as<Macro>(), name);
    return v.isUndefined() ? std::nullopt : std::optional(v);
  }
  case Kind::Tuple:
    if (object.as<List>().isGroup && name == "grouper")
      return object.as<List>().items[0];
    if (object.as<List>().isGroup && name == "list")
      return object.as<List>().items[1];
    return std::nullopt;
  case Kind::Cycler:
    if (name == "current")
      return object.as<Cycler>().items[object.as<Cycler>().position];
    return std::nullopt;
  default:
    return std::nullopt;
  }
}

/// An attribute or a bound method. Nothing if \p object has none of that name; fails for what no
/// template may touch.
static std::optional<Value> ownAttribute(Session &session, const Value &object,
                                         std::string_view name) {
  if (std::optional<Value> v = plainAttribute(session, object, name))
    return v;
  if (Function::Body body = findMethod(object, name))
    return Value::object(session.make<Function>(std::string(name), body, object));
  if (isMutator(object, name))
    return session.undefinedHint("the method '" + std::string(name) + "' of a " + typeName(object) +
                                 " is not allowed: templates can't change " + "their values");
  return std::nullopt;
}

[[noreturn]] static void failPrivate(Session &session, const Value &object, std::string_view name) {
  session.fail("access to the attribute '" + std::string(name.substr(0, 100)) + "' of a " +
               typeName(object) + " is not allowed");
}

/// The item of a mapping, sequence or string, or null-like nothing.
static std::optional<Value> ownItem(Session &session, const Value &object, const Value &key) {
  switch (object.kind()) {
  case Kind::Dict: {
    if (key.is(Kind::List) || key.is(Kind::Dict) || key.is(Kind::View))
      return std::nullopt;
    const Value *v = object.as<Dict>().find(session, key);
    return v ? std::optional(*v) : std::nullopt;
  }
  case Kind::List:
  case Kind::Tuple:
  case Kind::Range:
  case Kind::String: {
    if (!key.isIntegral())
      return std::nullopt;
    Int length = lengthOf(session, object), i = key.asInt();
    if (i < 0)
      i += length;
    if (i < 0 || i >= length)
      return std::nullopt;
    return itemAt(session, object, i);
  }
  default:
    return std::nullopt;
  }
}

Value attributeOf(Session &session, const Value &object, std::string_view name, const Value &key) {
  if (object.isUndefined())
    session.failUndefined(object);
  if (std::optional<Value> v = ownAttribute(session, object, name))
    return *v;
  if (std::optional<Value> v = ownItem(session, object, key))
    return *v;
  if (name.starts_with("__"))
    failPrivate(session, object, name);
  return session.undefinedMember(object, key);
}

Value itemOf(Session &session, const Value &object, const Value &key) {
  if (object.isUndefined())
    session.failUndefined(object);
  if (std::optional<Value> v = ownItem(session, object, key))
    return *v;
  if (key.isString()) {
    if (std::optional<Value> v = ownAttribute(session, object, key.text()))
      return *v;
    if (key.text().starts_with("__"))
      failPrivate(session, object, key.text());
  }
  return session.undefinedMember(object, key);
}

/// A bound of a slice: None or a whole number.
static std::optional<Int> sliceBound(Session &session, const Value &v) {
  if (v.isNone())
    return std::nullopt;
  if (v.isUndefined())
    session.failUndefined(v);
  if (!v.isIntegral())
    session.fail(std::string("the bounds of a slice must be whole numbers, not ") + typeName(v));
  constexpr Int far = Int(1) << 62; // beyond any length, and safe to add to one
  return std::clamp(v.asInt(), -far, far);
}

static Value sliceText(Session &session, const Str &s, Int start, Int stop, Int step, Int count) {
  session.stepBytes(s.text.size());
  std::string_view text = s.text;
  if (step == 1) {
    size_t begin = static_cast<size_t>(start), end = static_cast<size_t>(start + count);
    if (!s.ascii()) {
      size_t length = end - begin;
      begin = byteOffset(text, begin);
      end = begin + byteOffset(text.substr(begin), length);
    }
    return session.makeString(text.substr(begin, end - begin), s.markup);
  }
  session.step(static_cast<uint64_t>(count) / 4);
  std::vector<uint32_t> offsets; // of each code point, when they differ from the indices
  if (!s.ascii()) {
    session.checkRoom((s.length + 1) * sizeof(uint32_t));
    for (size_t i = 0; i < text.size(); i += decodeAt(text, i).size)
      offsets.push_back(static_cast<uint32_t>(i));
  }
  TextBuilder out(session);
  for (Int i = start, k = 0; k < count; i += step, ++k) {
    size_t at = s.ascii() ? static_cast<size_t>(i) : offsets[static_cast<size_t>(i)];
    out.append(text.substr(at, decodeAt(text, at).size));
  }
  return out.value(s.markup);
}

Value sliceOf(Session &session, const Value &object, const Value &startValue,
              const Value &stopValue, const Value &stepValue) {
  if (object.isUndefined())
    session.failUndefined(object);
  if (!object.isString() && !object.isSequence() && !object.is(Kind::Range))
    session.fail(std::string("a ") + typeName(object) + " can't be sliced");
  const Int length = lengthOf(session, object);
  const Int step = sliceBound(session, stepValue).value_or(1);
  if (step == 0)
    session.fail("the step of a slice can't be 0");
  const Int low = step > 0 ? 0 : -1, high = step > 0 ? length : length - 1;
  auto bound = [&](const Value &v, Int fallback) {
    std::optional<Int> i = sliceBound(session, v);
    if (!i)
      return fallback;
    return std::clamp(*i < 0 ? *i + length : *i, low, high);
  };
  const Int start = bound(startValue, step > 0 ? low : high);
  const Int stop = bound(stopValue, step > 0 ? high : low);
  const Int count = Range(start, stop, step).size();
  if (object.isString())
    return sliceText(session, object.str(), start, stop, step, count);
  if (object.is(Kind::Range)) {
    const Range &r = object.as<Range>();
    Int first = r.start + start * r.step, by = r.step * step;
    return Value::object(session.make<Range>(first, r.start + stop * r.step, by));
  }
  const auto &items = object.as<List>().items;
  std::vector<Value> out;
  session.checkRoom(static_cast<uint64_t>(count) * sizeof(Value));
  session.step(static_cast<uint64_t>(count));
  for (Int i = start, k = 0; k < count; i += step, ++k)
    out.push_back(items[static_cast<size_t>(i)]);
  return session.makeList(std::move(out), object.kind());
}

Value followPath(Session &session, Value item, const Value &path, const Value *fallback) {
  auto go = [&](const Value &key) {
    item = itemOf(session, item, key);
    if (item.isUndefined() && fallback)
      item = *fallback;
  };
  if (path.isNone())
    return item;
  if (!path.isString()) {
    go(path);
    return item;
  }
  std::string_view rest = path.text();
  for (;;) {
    size_t dot = rest.find('.');
    std::string_view part = rest.substr(0, dot);
    bool overflow = false;
    bool digits = !part.empty() && std::all_of(part.begin(), part.end(),
                                               [](char c) { return c >= '0' && c <= '9'; });
    std::optional<Int> index = digits ? parseInt(part, 10, overflow) : std::nullopt;
    go(index && !overflow ? Value::integer(*index) : session.makeString(part));
    if (dot == rest.npos)
      return item;
    rest.remove_prefix(dot + 1);
  }
}

} // namespace llmrt::jinja
