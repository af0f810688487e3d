#include "runtime/decode/grammar/JsonGrammar.h"

#include "runtime/decode/grammar/Regex.h"

#include <algorithm>

namespace llmrt {

std::string jsonString(std::string_view text) {
  std::string out = "\"";
  constexpr char hex[] = "0123456789abcdef";
  for (char c : text) {
    uint8_t byte = static_cast<uint8_t>(c);
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\r')
      out += "\\r";
    else if (byte < 0x20)
      out += std::string("\\u00") + hex[byte >> 4] + hex[byte & 15];
    else
      out += c;
  }
  return out + "\"";
}

std::string writtenJson(const JsonValue &value) {
  switch (value.type()) {
  case JsonType::Null:
    return "null";
  case JsonType::True:
    return "true";
  case JsonType::False:
    return "false";
  case JsonType::Number:
    return std::string(value.asString());
  case JsonType::String:
    return jsonString(value.asString());
  case JsonType::Array: {
    std::string out;
    for (JsonValue element : value.elements())
      out += (out.empty() ? "" : ",") + writtenJson(element);
    return "[" + out + "]";
  }
  case JsonType::Object: {
    std::string out;
    for (JsonMember member : value.members())
      out += (out.empty() ? "" : ",") + jsonString(member.key) + ":" + writtenJson(member.value);
    return "{" + out + "}";
  }
  }
  return {};
}

std::string jsonStringFormat(std::string_view name) {
  const std::string date = "\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])";
  const std::string time =
      "([01]\\d|2[0-3]):[0-5]\\d:([0-5]\\d|60)(\\.\\d{1,9})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)";
  if (name == "date")
    return "^" + date + "$";
  if (name == "time")
    return "^" + time + "$";
  if (name == "date-time")
    return "^" + date + "T" + time + "$";
  if (name == "uuid")
    return "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$";
  if (name == "ipv4")
    return "^((25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)\\.){3}(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)$";
  if (name == "email")
    return "^[A-Za-z0-9._%+-]{1,64}@([A-Za-z0-9-]{1,63}\\.){1,8}[A-Za-z]{2,63}$";
  return "";
}

JsonGrammar::JsonGrammar(GrammarBuilder &builder) : b_(builder) {
  root_ = b_.addRule("the schema");
  // Enough for people to read, not for a model to wander off in.
  space_ = b_.addRule("space");
  b_.define(space_, b_.repeat(b_.characters({{' ', ' '}, {'\n', '\n'}, {'\t', '\t'}}), 0, 20));
}

JsonGrammar::Expr JsonGrammar::integer() {
  // 16 digits: what a double, and so most readers, can hold.
  Expr big = b_.sequence({b_.characters({{'1', '9'}}), b_.repeat(digit(), 0, 15)});
  return b_.sequence({b_.optional(text("-")), b_.either({text("0"), big})});
}

JsonGrammar::Expr JsonGrammar::number() {
  Expr fraction = b_.sequence({text("."), b_.repeat(digit(), 1, 16)});
  Expr exponent =
      b_.sequence({b_.characters({{'E', 'E'}, {'e', 'e'}}),
                   b_.optional(b_.characters({{'+', '+'}, {'-', '-'}})), b_.repeat(digit(), 1, 3)});
  return b_.sequence({integer(), b_.optional(fraction), b_.optional(exponent)});
}

JsonGrammar::Expr JsonGrammar::stringCharacter() {
  if (character_)
    return b_.call(*character_);
  character_ = b_.addRule("character");
  Expr low = b_.sequence({text("\\u"), b_.characters({{'D', 'D'}, {'d', 'd'}}),
                          b_.characters({{'C', 'F'}, {'c', 'f'}}), hex(), hex()});
  Expr code = b_.either(
      {b_.sequence({b_.characters({{'0', '9'}, {'A', 'C'}, {'E', 'F'}, {'a', 'c'}, {'e', 'f'}}),
                    hex(), hex(), hex()}),
       b_.sequence(
           {b_.characters({{'D', 'D'}, {'d', 'd'}}), b_.characters({{'0', '7'}}), hex(), hex()}),
       b_.sequence({b_.characters({{'D', 'D'}, {'d', 'd'}}),
                    b_.characters({{'8', '9'}, {'A', 'B'}, {'a', 'b'}}), hex(), hex(), low})});
  Expr escape = b_.sequence({text("\\"), b_.either({b_.characters({{'"', '"'},
                                                                   {'/', '/'},
                                                                   {'\\', '\\'},
                                                                   {'b', 'b'},
                                                                   {'f', 'f'},
                                                                   {'n', 'n'},
                                                                   {'r', 'r'},
                                                                   {'t', 't'}}),
                                                    b_.sequence({text("u"), code})})});
  b_.define(*character_, b_.either({plainCharacter(), escape}));
  return b_.call(*character_);
}

JsonGrammar::Expr JsonGrammar::string(int64_t least, int64_t most) {
  return b_.sequence({text("\""), b_.repeat(stringCharacter(), least, most), text("\"")});
}

JsonGrammar::Expr JsonGrammar::listOf(Expr element, int64_t least, int64_t most) {
  Expr more = b_.sequence({text(","), ws(), element});
  if (most == 0)
    return b_.sequence({text("["), ws(), text("]")});
  Expr items = b_.sequence(
      {element, b_.repeat(more, std::max<int64_t>(least - 1, 0), most < 0 ? most : most - 1)});
  return b_.sequence({text("["), ws(), least == 0 ? b_.optional(items) : items, ws(), text("]")});
}

uint32_t JsonGrammar::anyRule(JsonType type) {
  auto [place, isNew] = any_.try_emplace(type, 0);
  if (!isNew)
    return place->second;
  uint32_t rule = place->second = b_.addRule("any value");
  if (type == JsonType::Array) {
    b_.define(rule, listOf(anyValue(), 0, GrammarBuilder::unlimited));
  } else if (type == JsonType::Object) {
    Expr one = member(string(), anyValue());
    Expr more = b_.repeat(b_.sequence({text(","), ws(), one}), 0);
    b_.define(rule, b_.sequence(
                        {text("{"), ws(), b_.optional(b_.sequence({one, more})), ws(), text("}")}));
  } else { // stands for all types
    b_.define(rule,
              b_.either({b_.call(anyRule(JsonType::Object)), b_.call(anyRule(JsonType::Array)),
                         string(), number(), text("true"), text("false"), text("null")}));
  }
  return rule;
}

JsonGrammar::Expr JsonGrammar::otherThan(std::vector<std::string> names) {
  std::vector<CharRange> firsts;
  std::vector<Expr> parts;
  Expr rest = b_.repeat(plainCharacter(), 0);
  bool endIsOne = false;
  std::map<uint32_t, std::vector<std::string>> byFirst;
  for (const std::string &name : names) {
    size_t at = 0;
    std::optional<uint32_t> c = nextCharacter(name, at);
    if (!c) {
      endIsOne = endIsOne || name.empty();
      continue;
    }
    byFirst[*c].push_back(name.substr(at));
    firsts.push_back({*c, *c});
  }
  if (!endIsOne)
    parts.push_back(b_.empty());
  firsts.insert(firsts.end(), {{0, 0x1f}, {'"', '"'}, {'\\', '\\'}});
  parts.push_back(b_.sequence({b_.characters(complement(firsts)), rest}));
  for (auto &[c, tails] : byFirst)
    if (c >= 0x20 && c != '"' && c != '\\')
      parts.push_back(b_.sequence({b_.characters({{c, c}}), otherThan(std::move(tails))}));
  return b_.either(std::move(parts));
}

} // namespace llmrt
