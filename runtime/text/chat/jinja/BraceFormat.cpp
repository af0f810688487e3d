//===- BraceFormat.cpp - '{}'.format(...) ---------------------------------------------===//
#include "runtime/text/chat/jinja/Attributes.h"
#include "runtime/text/chat/jinja/NumberFormat.h"
#include "runtime/text/chat/jinja/PrintfFormat.h"
#include "runtime/text/chat/jinja/ValueText.h"

#include <algorithm>

namespace llmrt::jinja {

namespace {

using Keywords = std::vector<std::pair<std::string, Value>>;

class BraceFormatter {
public:
  BraceFormatter(Session &session, bool markup, const std::vector<Value> &positional,
                 const Keywords &keyword)
      : session_(session), markup_(markup), positional_(positional), keyword_(keyword) {}

  /// \p levels: how deep fields may still nest (a specification may hold fields of its own).
  std::string format(std::string_view text, int levels) {
    TextBuilder out(session_);
    for (size_t i = 0; i < text.size();) {
      size_t brace = text.find_first_of("{}", i);
      out.append(text.substr(i, brace - i));
      if (brace == text.npos)
        break;
      if (brace + 1 < text.size() && text[brace + 1] == text[brace]) {
        out.append(text[brace]);
        i = brace + 2;
        continue;
      }
      if (text[brace] == '}')
        session_.fail("a format has a single '}'");
      if (levels == 0)
        session_.fail("the fields of a format nest too deeply");
      size_t end = brace + 1;
      for (int open = 1; end < text.size(); ++end) {
        open += (text[end] == '{') - (text[end] == '}');
        if (open == 0)
          break;
      }
      if (end >= text.size())
        session_.fail("a format has a '{' that is never closed");
      session_.step(1 + (end - brace) / 64);
      appendField(out, text.substr(brace + 1, end - brace - 1), levels);
      i = end + 1;
    }
    return out.take();
  }

private:
  void appendField(TextBuilder &out, std::string_view field, int levels) {
    // name [!conversion] [:specification]; brackets in the name may hold both marks.
    size_t nameEnd = 0;
    for (bool inBrackets = false; nameEnd < field.size(); ++nameEnd) {
      char c = field[nameEnd];
      inBrackets = c == '[' || (inBrackets && c != ']');
      if (!inBrackets && (c == '!' || c == ':'))
        break;
    }
    Value value = lookUp(field.substr(0, nameEnd));
    std::string_view rest = field.substr(nameEnd);
    char conversion = 0;
    if (rest.starts_with('!')) {
      if (rest.size() < 2 || (rest.size() > 2 && rest[2] != ':'))
        session_.fail("a format has no conversion after its '!'");
      conversion = rest[1];
      rest.remove_prefix(2);
    }
    std::string spec = rest.empty() ? "" : format(rest.substr(1), levels - 1);
    if (conversion == 'r' || conversion == 'a') {
      TextBuilder text(session_);
      if (conversion == 'a' && value.isString())
        appendQuoted(text, value.text(), true);
      else
        appendRepr(text, session_, value);
      value = text.value();
    } else if (conversion == 's') {
      value = toStr(session_, value);
    } else if (conversion) {
      session_.fail(std::string("'!") + conversion + "' is no conversion of a format");
    }
    std::string text = formatValue(session_, parseFormatSpec(session_, spec), value);
    if (markup_ && !(value.isString() && value.str().markup))
      text = escapeHtml(session_, text);
    out.append(text);
  }

  Value lookUp(std::string_view name) {
    size_t end = std::min(name.find_first_of(".["), name.size());
    std::string_view first = name.substr(0, end);
    Value value;
    bool overflow = false;
    const bool digits = !first.empty() && std::all_of(first.begin(), first.end(),
                                                      [](char c) { return c >= '0' && c <= '9'; });
    if (first.empty() || digits) {
      if (digits ? automatic_ > 0 : explicit_)
        session_.fail("a format mixes numbered and unnumbered fields");
      explicit_ |= digits;
      Int index = digits ? *parseInt(first, 10, overflow) : Int(automatic_++);
      if (overflow || index >= static_cast<Int>(positional_.size()))
        session_.fail("the format needs more values");
      value = positional_[static_cast<size_t>(index)];
    } else {
      auto found = std::find_if(keyword_.begin(), keyword_.end(),
                                [&](const auto &k) { return k.first == first; });
      if (found == keyword_.end())
        session_.fail("the format needs a value for '" + std::string(first) + "'");
      value = found->second;
    }
    std::string_view path = name.substr(end);
    while (!path.empty()) {
      session_.step();
      if (path[0] == '[') {
        size_t close = path.find(']');
        if (close == path.npos)
          session_.fail("a format has a '[' that is never closed");
        std::string_view key = path.substr(1, close - 1);
        std::optional<Int> index = parseInt(key, 10, overflow);
        value = itemOf(session_, value,
                       index && !overflow && key[0] != '-' ? Value::integer(*index)
                                                           : session_.makeString(key));
        path.remove_prefix(close + 1);
      } else {
        path.remove_prefix(1);
        std::string_view key = path.substr(0, std::min(path.find_first_of(".["), path.size()));
        value = attributeOf(session_, value, key, session_.makeString(key));
        path.remove_prefix(key.size());
      }
      if (!path.empty() && path[0] != '.' && path[0] != '[')
        session_.fail("a format has text after a ']'");
    }
    return value;
  }

  Session &session_;
  bool markup_;
  const std::vector<Value> &positional_;
  const Keywords &keyword_;
  size_t automatic_ = 0;
  bool explicit_ = false;
};

} // namespace

Value formatBraces(Session &session, const Value &format, const std::vector<Value> &positional,
                   const Keywords &keyword) {
  const Str &s = format.str();
  return session.makeString(
      BraceFormatter(session, s.markup, positional, keyword).format(s.text, 2), s.markup);
}

} // namespace llmrt::jinja
