//===- StringMethods.cpp - str.name(...) ----------------------------------------------===//
#include "runtime/text/chat/jinja/Compare.h"
#include "runtime/text/chat/jinja/Evaluator.h"
#include "runtime/text/chat/jinja/Iterate.h"
#include "runtime/text/chat/jinja/Methods.h"
#include "runtime/text/chat/jinja/NumberFormat.h"
#include "runtime/text/chat/jinja/Operators.h"
#include "runtime/text/chat/jinja/PrintfFormat.h"
#include "runtime/text/chat/jinja/StringOps.h"
#include "runtime/text/chat/jinja/Unicode.h"
#include "runtime/text/chat/jinja/ValueText.h"

namespace llmrt::jinja {

namespace {

/// A string of the same kind (plain or HTML) as \p self.
Value like(Evaluator &ev, const Value &self, std::string_view text) {
  return ev.session.makeString(text, self.str().markup);
}

template <std::string (*Map)(std::string_view)>
Value mapped(Evaluator &ev, const Value &self, Args &args) {
  args.bind(ev.session, {});
  ev.session.stepBytes(self.text().size() * 16);
  ev.session.checkRoom(self.text().size() * 3);
  return ev.session.makeString(Map(self.text()), self.str().markup);
}

template <bool Left, bool Right> Value strip(Evaluator &ev, const Value &self, Args &args) {
  args.bind(ev.session, {"chars"});
  if (!args.given(0) || args.at(0).isNone()) {
    std::string_view rest = stripSpace(self.text(), Left, Right);
    ev.session.step((self.text().size() - rest.size()) / 4);
    return like(ev, self, rest);
  }
  const std::string &set = args.text(ev.session, 0);
  std::string_view rest = stripSet(self.text(), set, Left, Right);
  ev.session.step((self.text().size() - rest.size()) * (1 + set.size()) / 4);
  return like(ev, self, rest);
}

/// Whether all code points match and there is one.
template <bool (*Is)(int32_t)> Value all(Evaluator &ev, const Value &self, Args &args) {
  args.bind(ev.session, {});
  ev.session.stepBytes(self.text().size() * 16);
  const std::string &text = self.text();
  for (size_t i = 0; i < text.size();) {
    CodePoint c = decodeAt(text, i);
    if (!Is(c.value))
      return Value::boolean(false);
    i += c.size;
  }
  return Value::boolean(!text.empty());
}

Value isCase(Evaluator &ev, const Value &self, Args &args, bool upper) {
  args.bind(ev.session, {});
  ev.session.stepBytes(self.text().size() * 16);
  return Value::boolean(hasCase(self.text(), upper));
}
Value isUpperMethod(Evaluator &ev, const Value &self, Args &args) {
  return isCase(ev, self, args, true);
}
Value isLowerMethod(Evaluator &ev, const Value &self, Args &args) {
  return isCase(ev, self, args, false);
}

Value isTitle(Evaluator &ev, const Value &self, Args &args) {
  args.bind(ev.session, {});
  ev.session.stepBytes(self.text().size() * 16);
  return Value::boolean(titleCase(self.text()) == self.text() &&
                        (hasCase(toUpper(self.text()), true)));
}

Value isAscii(Evaluator &ev, const Value &self, Args &args) {
  args.bind(ev.session, {});
  return Value::boolean(self.str().ascii());
}

Value isPrintableMethod(Evaluator &ev, const Value &self, Args &args) {
  if (self.text().empty())
    return Value::boolean(true);
  return all<isPrintable>(ev, self, args);
}

Value isIdentifier(Evaluator &ev, const Value &self, Args &args) {
  args.bind(ev.session, {});
  ev.session.stepBytes(self.text().size() * 16);
  const std::string &text = self.text();
  for (size_t i = 0; i < text.size();) {
    CodePoint c = decodeAt(text, i);
    if (c.value != '_' && !isAlpha(c.value) && (i == 0 || !isDecimal(c.value)))
      return Value::boolean(false);
    i += c.size;
  }
  return Value::boolean(!text.empty());
}

template <bool FromRight> Value split(Evaluator &ev, const Value &self, Args &args) {
  args.bind(ev.session, {"sep", "maxsplit"});
  Int most = args.integer(ev.session, 1, Int(-1));
  const bool bySpace = !args.given(0) || args.at(0).isNone();
  if (!bySpace && args.text(ev.session, 0).empty())
    ev.session.fail("the separator of split() is empty");
  std::vector<Value> parts;
  splitText(ev.session, self.text(), bySpace ? nullptr : &args.text(ev.session, 0), most, FromRight,
            [&](std::string_view part) { ev.session.push(parts, like(ev, self, part)); });
  return ev.session.makeList(std::move(parts));
}

Value splitLinesMethod(Evaluator &ev, const Value &self, Args &args) {
  args.bind(ev.session, {"keepends"});
  ev.session.stepBytes(self.text().size() * 16);
  ev.session.checkRoom(self.text().size() * sizeof(std::string_view));
  std::vector<Value> lines;
  for (std::string_view line : splitLines(self.text(), args.flag(ev.session, 0, false)))
    ev.session.push(lines, like(ev, self, line));
  return ev.session.makeList(std::move(lines));
}

Value join(Evaluator &ev, const Value &self, Args &args) {
  args.bind(ev.session, {"iterable"}, 1);
  NextFn next = iterate(ev.session, args.at(0));
  TextBuilder out(ev.session);
  Value item;
  for (bool first = true; next(item); first = false) {
    ev.session.step();
    if (!item.isString())
      ev.session.fail(std::string("join() needs strings, not a ") + typeName(item));
    if (!first)
      out.append(self.text());
    const bool escape = self.str().markup && !item.str().markup;
    out.append(escape ? escapeHtml(ev.session, item.text()) : item.text());
  }
  return out.value(self.str().markup);
}

Value replace(Evaluator &ev, const Value &self, Args &args) {
  args.bind(ev.session, {"old", "new", "count"}, 2);
  return ev.session.makeString(replaceText(ev.session, self.text(), args.text(ev.session, 0),
                                           args.text(ev.session, 1),
                                           args.integer(ev.session, 2, Int(-1))),
                               self.str().markup);
}

/// The part of \p text between the code points \p start and \p stop, as in text[start:stop].
struct Window {
  std::string_view text;
  Int start;  ///< in code points
  bool valid; ///< start is not beyond the text's end or \p stop
};
Window window(Evaluator &ev, const Str &s, Args &args, size_t startAt) {
  const Int length = static_cast<Int>(s.length);
  auto bound = [&](size_t i, Int fallback) {
    Int v = args.integer(ev.session, i, fallback);
    v = std::clamp(v, -(Int(1) << 62), Int(1) << 62);
    return v < 0 ? std::max(v + length, Int(0)) : v;
  };
  const Int start = bound(startAt, 0), stop = std::min(bound(startAt + 1, length), length);
  if (start > stop)
    return {{}, start, false};
  if (start == 0 && stop == length)
    return {s.text, 0, true};
  ev.session.stepBytes(s.text.size());
  std::string_view text = s.text;
  size_t begin = static_cast<size_t>(start), size = static_cast<size_t>(stop - start);
  if (!s.ascii()) {
    begin = byteOffset(text, begin);
    size = byteOffset(text.substr(begin), size);
  }
  return {text.substr(begin, size), start, true};
}

template <bool FromRight, bool Strict> Value find(Evaluator &ev, const Value &self, Args &args) {
  args.bind(ev.session, {"sub", "start", "end"}, 1);
  const std::string &what = args.text(ev.session, 0);
  Window w = window(ev, self.str(), args, 1);
  if (w.valid) {
    ev.session.stepBytes(w.text.size());
    size_t at;
    if (FromRight) {
      ev.session.step(w.text.size() / 64 * std::min<size_t>(what.size() + 1, 64));
      at = findLast(ev.session, w.text, what);
    } else {
      at = findText(w.text, what);
    }
    if (at != std::string_view::npos)
      return Value::integer(w.start + static_cast<Int>(countCodePoints(w.text.substr(0, at))));
  }
  if (Strict)
    ev.session.fail("the text looked for is not there");
  return Value::integer(-1);
}

Value count(Evaluator &ev, const Value &self, Args &args) {
  args.bind(ev.session, {"sub", "start", "end"}, 1);
  const std::string &what = args.text(ev.session, 0);
  Window w = window(ev, self.str(), args, 1);
  if (!w.valid)
    return Value::integer(0);
  if (what.empty())
    return Value::integer(static_cast<Int>(countCodePoints(w.text)) + 1);
  Int found = 0;
  ev.session.stepBytes(w.text.size());
  for (size_t at = 0; (at = findText(w.text, what, at)) != std::string_view::npos; ++found)
    at += what.size();
  return Value::integer(found);
}

template <bool AtEnd> Value affix(Evaluator &ev, const Value &self, Args &args) {
  args.bind(ev.session, {"prefix", "start", "end"}, 1);
  Window w = window(ev, self.str(), args, 1);
  auto matches = [&](const Value &v) {
    if (v.isUndefined())
      ev.session.failUndefined(v);
    if (!v.isString())
      ev.session.fail(std::string(args.function) +
                      "() needs a string or a tuple of strings, not a " + typeName(v));
    return w.valid && (AtEnd ? w.text.ends_with(v.text()) : w.text.starts_with(v.text()));
  };
  if (!args.at(0).is(Kind::Tuple))
    return Value::boolean(matches(args.at(0)));
  for (const Value &v : args.at(0).as<List>().items)
    if (matches(v))
      return Value::boolean(true);
  return Value::boolean(false);
}

template <bool AtEnd> Value removeAffix(Evaluator &ev, const Value &self, Args &args) {
  args.bind(ev.session, {"affix"}, 1);
  std::string_view text = self.text(), affix = args.text(ev.session, 0);
  if (AtEnd ? text.ends_with(affix) : text.starts_with(affix))
    text = AtEnd ? text.substr(0, text.size() - affix.size()) : text.substr(affix.size());
  return like(ev, self, text);
}

template <bool FromRight> Value partition(Evaluator &ev, const Value &self, Args &args) {
  args.bind(ev.session, {"sep"}, 1);
  const std::string &sep = args.text(ev.session, 0);
  if (sep.empty())
    ev.session.fail("the separator of partition() is empty");
  std::string_view text = self.text();
  ev.session.stepBytes(text.size());
  size_t at = FromRight ? findLast(ev.session, text, sep) : findText(text, sep);
  std::vector<Value> parts;
  if (at == text.npos) {
    parts = {like(ev, self, FromRight ? "" : text), like(ev, self, ""),
             like(ev, self, FromRight ? text : "")};
  } else {
    parts = {like(ev, self, text.substr(0, at)), like(ev, self, sep),
             like(ev, self, text.substr(at + sep.size()))};
  }
  return ev.session.makeList(std::move(parts), Kind::Tuple);
}

template <char Align> Value justify(Evaluator &ev, const Value &self, Args &args) {
  args.bind(ev.session, {"width", "fillchar"}, 1);
  std::string fill = args.given(1) ? args.text(ev.session, 1) : " ";
  if (countCodePoints(fill) != 1)
    ev.session.fail("the fill character must be exactly one character");
  Int width = args.integer(ev.session, 0);
  if (Align == '^')
    return ev.session.makeString(centerText(ev.session, self.text(), width, fill),
                                 self.str().markup);
  return ev.session.makeString(pad(ev.session, self.text(), width, fill, Align), self.str().markup);
}

Value zfill(Evaluator &ev, const Value &self, Args &args) {
  args.bind(ev.session, {"width"}, 1);
  std::string_view text = self.text();
  size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+');
  Int width = args.integer(ev.session, 0) - static_cast<Int>(sign);
  return ev.session.makeString(std::string(text.substr(0, sign)) +
                                   pad(ev.session, text.substr(sign), width, "0", '>'),
                               self.str().markup);
}

Value expandTabs(Evaluator &ev, const Value &self, Args &args) {
  args.bind(ev.session, {"tabsize"});
  const Int size = args.integer(ev.session, 0, Int(8));
  TextBuilder out(ev.session);
  Int column = 0;
  const std::string &text = self.text();
  ev.session.stepBytes(text.size() * 16);
  for (size_t i = 0; i < text.size();) {
    CodePoint c = decodeAt(text, i);
    if (c.value == '\t') {
      if (size > 0) {
        Int spaces = size - column % size;
        out.repeat(" ", spaces);
        column += spaces;
      }
    } else {
      out.append(std::string_view(text).substr(i, c.size));
      column = c.value == '\n' || c.value == '\r' ? 0 : column + 1;
    }
    i += c.size;
  }
  return out.value(self.str().markup);
}

Value format(Evaluator &ev, const Value &self, Args &args) {
  return formatBraces(ev.session, self, args.positional, args.keyword);
}

Value formatMap(Evaluator &ev, const Value &self, Args &args) {
  args.bind(ev.session, {"mapping"}, 1);
  if (!args.at(0).is(Kind::Dict))
    ev.session.fail("format_map() needs a mapping");
  std::vector<std::pair<std::string, Value>> keyword;
  for (const auto &[key, value] : args.at(0).as<Dict>().entries)
    if (key.isString())
      keyword.emplace_back(key.text(), value);
  return formatBraces(ev.session, self, {}, keyword);
}

constexpr NamedFunction<Function::Body> methods[] = {
    {"capitalize", mapped<capitalize>},
    {"casefold", mapped<caseFold>},
    {"center", justify<'^'>},
    {"count", count},
    {"endswith", affix<true>},
    {"expandtabs", expandTabs},
    {"find", find<false, false>},
    {"format", format},
    {"format_map", formatMap},
    {"index", find<false, true>},
    {"isalnum", all<isAlnum>},
    {"isalpha", all<isAlpha>},
    {"isascii", isAscii},
    {"isdecimal", all<isDecimal>},
    {"isdigit", all<isDigit>},
    {"isidentifier", isIdentifier},
    {"islower", isLowerMethod},
    {"isnumeric", all<isNumeric>},
    {"isprintable", isPrintableMethod},
    {"isspace", all<isSpace>},
    {"istitle", isTitle},
    {"isupper", isUpperMethod},
    {"join", join},
    {"ljust", justify<'<'>},
    {"lower", mapped<toLower>},
    {"lstrip", strip<true, false>},
    {"partition", partition<false>},
    {"removeprefix", removeAffix<false>},
    {"removesuffix", removeAffix<true>},
    {"replace", replace},
    {"rfind", find<true, false>},
    {"rindex", find<true, true>},
    {"rjust", justify<'>'>},
    {"rpartition", partition<true>},
    {"rsplit", split<true>},
    {"rstrip", strip<false, true>},
    {"split", split<false>},
    {"splitlines", splitLinesMethod},
    {"startswith", affix<false>},
    {"strip", strip<true, true>},
    {"swapcase", mapped<swapCase>},
    {"title", mapped<titleCase>},
    {"upper", mapped<toUpper>},
    {"zfill", zfill},
};
static_assert(isSortedByName(methods));

} // namespace

Function::Body findStringMethod(std::string_view name) {
  auto *entry = findByName(methods, name);
  return entry ? entry->body : nullptr;
}

} // namespace llmrt::jinja
