#include "runtime/text/chat/jinja/Json.h"

#include "runtime/text/chat/jinja/Compare.h"
#include "runtime/text/chat/jinja/Unicode.h"
#include "runtime/text/chat/jinja/ValueText.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace llmrt::jinja {

namespace {

void appendEscape(TextBuilder &out, uint32_t unit) {
  out.append("\\u");
  for (int shift = 12; shift >= 0; shift -= 4)
    out.append("0123456789abcdef"[(unit >> shift) & 15]);
}

void appendJsonString(TextBuilder &out, std::string_view text, bool ensureAscii) {
  out.append('"');
  size_t start = 0;
  for (size_t i = 0; i < text.size();) {
    CodePoint c = decodeAt(text, i);
    const int32_t v = c.value;
    const bool plain = v != '"' && v != '\\' && v >= 0x20 && !(ensureAscii && v >= 0x7F);
    if (!plain && v >= 0) {
      out.append(text.substr(start, i - start));
      start = i + c.size;
      switch (v) {
      case '"':
        out.append("\\\"");
        break;
      case '\\':
        out.append("\\\\");
        break;
      case '\n':
        out.append("\\n");
        break;
      case '\r':
        out.append("\\r");
        break;
      case '\t':
        out.append("\\t");
        break;
      case '\f':
        out.append("\\f");
        break;
      case '\b':
        out.append("\\b");
        break;
      default:
        if (v >= 0x10000) { // as a pair of surrogates
          appendEscape(out, 0xD800 + ((static_cast<uint32_t>(v) - 0x10000) >> 10));
          appendEscape(out, 0xDC00 + ((static_cast<uint32_t>(v) - 0x10000) & 0x3FF));
        } else {
          appendEscape(out, static_cast<uint32_t>(v));
        }
      }
    }
    i += c.size;
  }
  out.append(text.substr(start)).append('"');
}

std::string jsonFloat(double d) {
  if (std::isnan(d))
    return "NaN";
  if (std::isinf(d))
    return d < 0 ? "-Infinity" : "Infinity";
  return formatFloat(d);
}

class JsonWriter {
public:
  JsonWriter(TextBuilder &out, Session &session, const JsonStyle &style)
      : out_(out), session_(session), style_(style) {}

  void write(const Value &v) {
    Session::Depth depth(session_);
    session_.step();
    switch (v.kind()) {
    case Kind::None:
      out_.append("null");
      return;
    case Kind::Bool:
      out_.append(v.asBool() ? "true" : "false");
      return;
    case Kind::Int:
      out_.append(formatInt(v.asInt()));
      return;
    case Kind::Float:
      out_.append(jsonFloat(v.asDouble()));
      return;
    case Kind::String:
      session_.stepBytes(v.text().size() * 4);
      appendJsonString(out_, v.text(), style_.ensureAscii);
      return;
    case Kind::List:
    case Kind::Tuple:
      writeList(v.as<List>());
      return;
    case Kind::Dict:
      writeDict(v.as<Dict>());
      return;
    default:
      session_.fail(
          std::string("a value of type ") + typeName(v) + " can't be written as JSON" +
          (v.isUndefined() && v.undefinedInfo() ? " (" + v.undefinedInfo()->message() + ")" : ""));
    }
  }

private:
  void newLine() {
    if (!style_.indent)
      return;
    out_.append('\n').repeat(*style_.indent, level_);
  }

  void writeList(const List &list) {
    if (list.items.empty()) {
      out_.append("[]");
      return;
    }
    out_.append('[');
    ++level_;
    bool first = true;
    for (const Value &item : list.items) {
      if (!std::exchange(first, false))
        out_.append(style_.itemSeparator);
      newLine();
      write(item);
    }
    --level_;
    newLine();
    out_.append(']');
  }

  std::string keyText(const Value &key) {
    switch (key.kind()) {
    case Kind::String:
      return key.text();
    case Kind::None:
      return "null";
    case Kind::Bool:
      return key.asBool() ? "true" : "false";
    case Kind::Int:
      return formatInt(key.asInt());
    case Kind::Float:
      return jsonFloat(key.asDouble());
    default:
      session_.fail(std::string("the keys of a JSON object can't be of type ") + typeName(key));
    }
  }

  void writeDict(const Dict &dict) {
    if (dict.entries.empty()) {
      out_.append("{}");
      return;
    }
    std::vector<Value> order;
    for (size_t i = 0; i < dict.entries.size(); ++i)
      session_.push(order, Value::integer(static_cast<Int>(i)));
    if (style_.sortKeys)
      sortStable(session_, order, [&](const Value &a, const Value &b) {
        return lessThan(session_, dict.entries[static_cast<size_t>(a.asInt())].first,
                        dict.entries[static_cast<size_t>(b.asInt())].first);
      });
    out_.append('{');
    ++level_;
    bool first = true;
    for (const Value &i : order) {
      const auto &[key, value] = dict.entries[static_cast<size_t>(i.asInt())];
      if (!std::exchange(first, false))
        out_.append(style_.itemSeparator);
      newLine();
      appendJsonString(out_, keyText(key), style_.ensureAscii);
      out_.append(style_.keySeparator);
      write(value);
    }
    --level_;
    newLine();
    out_.append('}');
  }

  TextBuilder &out_;
  Session &session_;
  const JsonStyle &style_;
  int level_ = 0;
};

} // namespace

void appendJson(TextBuilder &out, Session &session, const Value &v, const JsonStyle &style) {
  JsonWriter(out, session, style).write(v);
}

Value fromJson(Session &session, const nlohmann::ordered_json &json) {
  using Type = nlohmann::ordered_json::value_t;
  Session::Depth depth(session);
  switch (json.type()) {
  case Type::boolean:
    return Value::boolean(json.get<bool>());
  case Type::number_integer:
    return Value::integer(json.get<int64_t>());
  case Type::number_unsigned:
    return Value::integer(static_cast<Int>(json.get<uint64_t>()));
  case Type::number_float:
    return Value::real(json.get<double>());
  case Type::string:
    return Value::literal(json.get_ref<const std::string &>());
  case Type::array: {
    List *list = session.makeUncharged<List>();
    list->items.reserve(json.size());
    for (const auto &item : json)
      list->items.push_back(fromJson(session, item));
    return Value::object(list);
  }
  case Type::object: {
    Dict *dict = session.makeUncharged<Dict>();
    for (const auto &[key, value] : json.items())
      dict->add(Value::literal(key), fromJson(session, value));
    return Value::object(dict);
  }
  default:
    return Value::none();
  }
}

bool nestsDeeperThan(const nlohmann::ordered_json &json, size_t levels) {
  std::vector<std::pair<const nlohmann::ordered_json *, size_t>> open = {{&json, 0}};
  while (!open.empty()) {
    auto [j, depth] = open.back();
    open.pop_back();
    if (!j->is_structured())
      continue;
    if (depth == levels)
      return true;
    for (const auto &item : *j)
      open.emplace_back(&item, depth + 1);
  }
  return false;
}

size_t textSize(const nlohmann::ordered_json &json) {
  // Without recursion: the depth is checked later.
  size_t total = 0;
  std::vector<const nlohmann::ordered_json *> open = {&json};
  while (!open.empty()) {
    const nlohmann::ordered_json *j = open.back();
    open.pop_back();
    total += 16;
    if (j->is_string())
      total += j->get_ref<const std::string &>().size();
    if (j->is_object())
      for (const auto &[key, value] : j->items())
        total += key.size();
    if (j->is_structured())
      for (const auto &item : *j)
        open.push_back(&item);
  }
  return total;
}

} // namespace llmrt::jinja
