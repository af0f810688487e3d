//===- StringFilters.cpp - filters that make text --------------------------------------===//
#include "runtime/text/chat/jinja/Attributes.h"
#include "runtime/text/chat/jinja/Evaluator.h"
#include "runtime/text/chat/jinja/Filters.h"
#include "runtime/text/chat/jinja/Iterate.h"
#include "runtime/text/chat/jinja/Json.h"
#include "runtime/text/chat/jinja/Methods.h"
#include "runtime/text/chat/jinja/PrintfFormat.h"
#include "runtime/text/chat/jinja/StringOps.h"
#include "runtime/text/chat/jinja/Unicode.h"
#include "runtime/text/chat/jinja/ValueText.h"

namespace llmrt::jinja {

namespace {

template <std::string (*Map)(std::string_view)>
Value mapped(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {});
  Value text = toStr(ev.session, input);
  ev.session.stepBytes(text.text().size() * 16);
  ev.session.checkRoom(text.text().size() * 3);
  return ev.session.makeString(Map(text.text()), text.str().markup);
}

/// Words begin after white space, '-' and opening brackets, and nowhere else.
std::string titleWords(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    auto separates = [](int32_t c) {
      return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || isSpace(c);
    };
    size_t end = i;
    bool separator = separates(decodeAt(text, i).value);
    while (end < text.size() && separates(decodeAt(text, end).value) == separator)
      end += decodeAt(text, end).size;
    size_t first = decodeAt(text, i).size;
    out += toUpper(text.substr(i, first));
    out += toLower(text.substr(i + first, end - i - first));
    i = end;
  }
  return out;
}

Value trim(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {"chars"});
  Value text = toStr(ev.session, input);
  std::string_view rest = !args.given(0) || args.at(0).isNone()
                              ? stripSpace(text.text(), true, true)
                              : stripSet(text.text(), args.text(ev.session, 0), true, true);
  const size_t set = args.given(0) && args.at(0).isString() ? args.at(0).text().size() : 0;
  ev.session.step((text.text().size() - rest.size()) * (1 + set) / 4);
  if (rest.size() == text.text().size())
    return text;
  return ev.session.makeString(rest, text.str().markup);
}

Value replace(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {"old", "new", "count"}, 2);
  std::string old = strOf(ev.session, args.at(0)), by = strOf(ev.session, args.at(1));
  return ev.session.makeString(replaceText(ev.session, strOf(ev.session, input), old, by,
                                           args.integer(ev.session, 2, Int(-1))));
}

Value string(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {});
  return toStr(ev.session, input);
}

Value safe(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {});
  return ev.session.makeString(strOf(ev.session, input), true);
}

Value escape(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {});
  if (input.isString() && input.str().markup)
    return input;
  return ev.session.makeString(escapeHtml(ev.session, strOf(ev.session, input)), true);
}

Value forceEscape(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {});
  return ev.session.makeString(escapeHtml(ev.session, strOf(ev.session, input)), true);
}

Value center(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {"width"});
  Value text = toStr(ev.session, input);
  return ev.session.makeString(
      centerText(ev.session, text.text(), args.integer(ev.session, 0, Int(80)), " "),
      text.str().markup);
}

Value indent(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {"width", "first", "blank"});
  if (input.isUndefined())
    ev.session.failUndefined(input);
  if (!input.isString())
    ev.session.fail(std::string("indent() needs a string, not a ") + typeName(input));
  TextBuilder by(ev.session);
  if (args.given(0) && args.at(0).isString())
    by.append(args.at(0).text());
  else
    by.repeat(" ", args.integer(ev.session, 0, Int(4)));
  const std::string indention = by.take();
  const bool first = args.flag(ev.session, 1, false), blank = args.flag(ev.session, 2, false);
  ev.session.stepBytes(input.text().size() * 4);
  ev.session.checkRoom(input.text().size() * sizeof(std::string_view));
  const std::string text = input.text() + "\n"; // so that a newline at the end counts
  TextBuilder out(ev.session);
  bool isFirst = true;
  for (std::string_view line : splitLines(text, false)) {
    ev.session.step();
    if (!isFirst)
      out.append('\n');
    if (isFirst ? first : blank || !line.empty())
      out.append(indention);
    out.append(line);
    isFirst = false;
  }
  return out.value(input.str().markup);
}

Value truncate(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {"length", "killwords", "end", "leeway"});
  const Int length = args.integer(ev.session, 0, Int(255));
  const std::string end = args.given(2) ? args.text(ev.session, 2) : "...";
  const Int leeway = args.integer(ev.session, 3, Int(5));
  const Int endLength = static_cast<Int>(countCodePoints(end));
  if (length < endLength || leeway < 0)
    ev.session.fail("truncate() needs a length of at least its end's and no negative leeway");
  const Int have = lengthOf(ev.session, input); // anything short stays as it is
  if (have >= 0 && have <= length + leeway)
    return input;
  if (!input.isString())
    ev.session.fail(std::string("truncate() needs a string, not a ") + typeName(input));
  const Str &s = input.str();
  std::string_view cut = std::string_view(s.text).substr(
      0, byteOffset(s.text, static_cast<size_t>(length - endLength)));
  if (!args.flag(ev.session, 1, false))
    cut = cut.substr(0, cut.rfind(' '));
  TextBuilder out(ev.session);
  return out.append(cut).append(end).value(s.markup);
}

Value wordCount(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {});
  const std::string text = strOf(ev.session, input);
  ev.session.stepBytes(text.size() * 16);
  Int words = 0;
  bool inWord = false;
  for (size_t i = 0; i < text.size();) {
    CodePoint c = decodeAt(text, i);
    const bool now = c.value == '_' || isAlnum(c.value);
    words += now && !inWord;
    inWord = now;
    i += c.size;
  }
  return Value::integer(words);
}

Value format(Evaluator &ev, const Value &input, Args &args) {
  Value text = toStr(ev.session, input);
  if (!args.positional.empty() && !args.keyword.empty())
    ev.session.fail("format() takes positional or named arguments, not both");
  if (args.keyword.empty())
    return formatPrintf(ev.session, text, ev.session.makeList(args.positional, Kind::Tuple));
  Dict *dict = ev.session.make<Dict>();
  for (const auto &[name, value] : args.keyword)
    dict->set(ev.session, ev.session.makeString(name), value);
  return formatPrintf(ev.session, text, Value::object(dict));
}

Value join(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {"d", "attribute"});
  const std::string separator = args.given(0) ? strOf(ev.session, args.at(0)) : "";
  NextFn next = iterate(ev.session, input);
  TextBuilder out(ev.session);
  Value item;
  for (bool first = true; next(item); first = false) {
    ev.session.step();
    if (!first)
      out.append(separator);
    if (args.given(1))
      item = followPath(ev.session, item, args.at(1));
    appendStr(out, ev.session, item);
  }
  return out.value();
}

void appendUrlQuoted(TextBuilder &out, std::string_view text, bool inQuery) {
  for (char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("_.-~").find(c) != std::string_view::npos ||
                       (c == '/' && !inQuery);
    if (plain) {
      out.append(c);
    } else if (c == ' ' && inQuery) {
      out.append('+');
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out.append('%').append("0123456789ABCDEF"[byte >> 4]).append("0123456789ABCDEF"[byte & 15]);
    }
  }
}

Value urlEncode(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {});
  TextBuilder out(ev.session);
  if (input.isString() || !isIterable(input)) {
    appendUrlQuoted(out, strOf(ev.session, input), false);
    return out.value();
  }
  Value pairs = input.is(Kind::Dict)
                    ? Value::object(ev.session.make<View>(&input.as<Dict>(), View::What::Items))
                    : input;
  NextFn next = iterate(ev.session, pairs);
  Value pair;
  for (bool first = true; next(pair); first = false) {
    std::vector<Value> two = collect(ev.session, pair);
    if (two.size() != 2)
      ev.session.fail("urlencode() needs pairs of a name and a value");
    if (!first)
      out.append('&');
    appendUrlQuoted(out, strOf(ev.session, two[0]), true);
    out.append('=');
    appendUrlQuoted(out, strOf(ev.session, two[1]), true);
  }
  return out.value();
}

Value xmlAttributes(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {"autospace"});
  if (!input.is(Kind::Dict))
    ev.session.fail(std::string("xmlattr() needs a mapping, not a ") + typeName(input));
  TextBuilder out(ev.session);
  for (const auto &[key, value] : input.as<Dict>().entries) {
    if (value.isNone() || value.isUndefined())
      continue;
    std::string name = strOf(ev.session, key);
    if (name.find_first_of(" \t\n\r\f\v/>=") != name.npos)
      ev.session.fail("xmlattr() can't make an attribute of the name '" + name.substr(0, 50) + "'");
    if (out.size() > 0 || args.flag(ev.session, 0, true))
      out.append(' ');
    const bool html = value.isString() && value.str().markup;
    std::string text = strOf(ev.session, value);
    out.append(escapeHtml(ev.session, name)).append("=\"");
    out.append(html ? text : escapeHtml(ev.session, text)).append('"');
  }
  return out.value();
}

Value toJsonFilter(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensureAscii = args.flag(ev.session, 0, false);
  style.sortKeys = args.flag(ev.session, 3, false);
  if (args.given(1) && !args.at(1).isNone()) {
    TextBuilder by(ev.session);
    if (args.at(1).isString())
      by.append(args.at(1).text());
    else
      by.repeat(" ", args.integer(ev.session, 1));
    style.indent = by.take();
    style.itemSeparator = ",";
  }
  if (args.given(2) && !args.at(2).isNone()) {
    std::vector<Value> two = collect(ev.session, args.at(2));
    if (two.size() != 2 || !two[0].isString() || !two[1].isString())
      ev.session.fail("the separators of tojson() must be two strings");
    style.itemSeparator = two[0].text();
    style.keySeparator = two[1].text();
  }
  TextBuilder out(ev.session);
  appendJson(out, ev.session, input, style);
  return out.value();
}

constexpr FilterEntry table[] = {
    {"capitalize", mapped<capitalize>},
    {"center", center},
    {"e", escape},
    {"escape", escape},
    {"forceescape", forceEscape},
    {"format", format},
    {"indent", indent},
    {"join", join},
    {"lower", mapped<toLower>},
    {"replace", replace},
    {"safe", safe},
    {"string", string},
    {"title", mapped<titleWords>},
    {"tojson", toJsonFilter},
    {"trim", trim},
    {"truncate", truncate},
    {"upper", mapped<toUpper>},
    {"urlencode", urlEncode},
    {"wordcount", wordCount},
    {"xmlattr", xmlAttributes},
};
static_assert(isSortedByName(table));

} // namespace

std::span<const FilterEntry> stringFilters() { return table; }

} // namespace llmrt::jinja
