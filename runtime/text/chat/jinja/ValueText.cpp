#include "runtime/text/chat/jinja/ValueText.h"

#include "runtime/text/chat/jinja/Loop.h"
#include "runtime/text/chat/jinja/Macro.h"
#include "runtime/text/chat/jinja/Unicode.h"

#include <array>

namespace llmrt::jinja {

void appendQuoted(TextBuilder &out, std::string_view text, bool asciiOnly) {
  bool useDouble = text.find('\'') != text.npos && text.find('"') == text.npos;
  char quote = useDouble ? '"' : '\'';
  auto hex = [&](char kind, uint32_t value, int digits) {
    out.append('\\').append(kind);
    for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4)
      out.append("0123456789abcdef"[(value >> shift) & 15]);
  };
  out.append(quote);
  for (size_t i = 0; i < text.size();) {
    CodePoint c = decodeAt(text, i);
    int32_t v = c.value;
    if (v == quote || v == '\\')
      out.append('\\').append(static_cast<char>(v));
    else if (v == '\n')
      out.append("\\n");
    else if (v == '\r')
      out.append("\\r");
    else if (v == '\t')
      out.append("\\t");
    else if (v < 0)
      hex('x', static_cast<unsigned char>(text[i]), 2);
    else if (isPrintable(v) && !(asciiOnly && v >= 0x80))
      out.append(text.substr(i, c.size));
    else if (v < 0x100)
      hex('x', static_cast<uint32_t>(v), 2);
    else if (v < 0x10000)
      hex('u', static_cast<uint32_t>(v), 4);
    else
      hex('U', static_cast<uint32_t>(v), 8);
    i += c.size;
  }
  out.append(quote);
}

static void appendItems(TextBuilder &out, Session &session, const std::vector<Value> &items) {
  bool first = true;
  for (const Value &item : items) {
    if (!std::exchange(first, false))
      out.append(", ");
    appendRepr(out, session, item);
  }
}

static void appendDict(TextBuilder &out, Session &session, const Dict &dict) {
  out.append('{');
  bool first = true;
  for (const auto &[key, value] : dict.entries) {
    if (!std::exchange(first, false))
      out.append(", ");
    appendRepr(out, session, key);
    out.append(": ");
    appendRepr(out, session, value);
  }
  out.append('}');
}

static void appendView(TextBuilder &out, Session &session, const View &view) {
  out.append(typeName(Value::object(const_cast<View *>(&view)))).append("([");
  bool first = true;
  for (const auto &[key, value] : view.dict->entries) {
    if (!std::exchange(first, false))
      out.append(", ");
    if (view.what == View::What::Items)
      out.append('(');
    if (view.what != View::What::Values)
      appendRepr(out, session, key);
    if (view.what == View::What::Items)
      out.append(", ");
    if (view.what != View::What::Keys)
      appendRepr(out, session, value);
    if (view.what == View::What::Items)
      out.append(')');
  }
  out.append("])");
}

void appendRepr(TextBuilder &out, Session &session, const Value &v) {
  Session::Depth depth(session);
  session.step();
  switch (v.kind()) {
  case Kind::Undefined:
    out.append("Undefined");
    break;
  case Kind::None:
    out.append("None");
    break;
  case Kind::Bool:
    out.append(v.asBool() ? "True" : "False");
    break;
  case Kind::Int:
    out.append(formatInt(v.asInt()));
    break;
  case Kind::Float:
    out.append(formatFloat(v.asDouble()));
    break;
  case Kind::String:
    session.stepBytes(v.text().size() * 16);
    if (v.str().markup)
      out.append("Markup(");
    appendQuoted(out, v.text());
    if (v.str().markup)
      out.append(')');
    break;
  case Kind::List:
    out.append('[');
    appendItems(out, session, v.as<List>().items);
    out.append(']');
    break;
  case Kind::Tuple:
    out.append('(');
    appendItems(out, session, v.as<List>().items);
    out.append(v.as<List>().items.size() == 1 ? ",)" : ")");
    break;
  case Kind::Dict:
    appendDict(out, session, v.as<Dict>());
    break;
  case Kind::Range: {
    const Range &r = v.as<Range>();
    out.append("range(").append(formatInt(r.start)).append(", ").append(formatInt(r.stop));
    if (r.step != 1)
      out.append(", ").append(formatInt(r.step));
    out.append(')');
    break;
  }
  case Kind::View:
    appendView(out, session, v.as<View>());
    break;
  case Kind::Namespace:
    out.append("<Namespace ");
    appendDict(out, session, *v.as<Namespace>().attributes);
    out.append('>');
    break;
  case Kind::Macro:
    out.append("<Macro ");
    appendQuoted(out, v.as<Macro>().name());
    out.append('>');
    break;
  case Kind::Loop:
    out.append("<LoopContext ")
        .append(formatInt(v.as<Loop>().index0() + 1))
        .append("/")
        .append(formatInt(v.as<Loop>().length(session)))
        .append(">");
    break;
  case Kind::Function:
    out.append("<function ").append(v.as<Function>().name).append(">");
    break;
  case Kind::Generator:
  case Kind::Cycler:
  case Kind::Joiner:
    out.append("<").append(typeName(v)).append(" object>");
    break;
  }
}

void appendStr(TextBuilder &out, Session &session, const Value &v) {
  if (v.isString())
    out.append(v.text());
  else if (v.is(Kind::Dict) && v.as<Dict>().text)
    out.append(v.as<Dict>().text->text);
  else if (!v.isUndefined())
    appendRepr(out, session, v);
}

std::string strOf(Session &session, const Value &v) {
  TextBuilder out(session);
  appendStr(out, session, v);
  session.stepBytes(out.size());
  return out.take();
}

Value toStr(Session &session, const Value &v) {
  if (v.isString())
    return v;
  TextBuilder out(session);
  appendStr(out, session, v);
  return out.value();
}

std::string shortRepr(const Value &v) {
  switch (v.kind()) {
  case Kind::None:
    return "None";
  case Kind::Bool:
    return v.asBool() ? "True" : "False";
  case Kind::Int:
    return formatInt(v.asInt());
  case Kind::Float:
    return formatFloat(v.asDouble());
  case Kind::String:
    return "'" + v.text().substr(0, 200) + "'";
  default:
    return std::string("a ") + typeName(v);
  }
}

std::string escapeHtml(Session &session, std::string_view text) {
  TextBuilder out(session);
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char *entity = nullptr;
    switch (text[i]) {
    case '&':
      entity = "&amp;";
      break;
    case '<':
      entity = "&lt;";
      break;
    case '>':
      entity = "&gt;";
      break;
    case '\'':
      entity = "&#39;";
      break;
    case '"':
      entity = "&#34;";
      break;
    default:
      continue;
    }
    out.append(text.substr(start, i - start)).append(entity);
    start = i + 1;
  }
  out.append(text.substr(start));
  return out.take();
}

} // namespace llmrt::jinja
