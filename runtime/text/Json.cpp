#include "runtime/text/Json.h"

#include "runtime/text/Utf8.h"

#include <charconv>

namespace llmrt {

namespace {
constexpr size_t kMaxDepth = 128;
} // namespace

/// A parser with its own stack: nesting costs no machine stack.
class JsonParser {
public:
  explicit JsonParser(std::string_view text) : text(text) { doc.source = text; }

  Result<JsonDocument> run() {
    if (text.size() > INT32_MAX)
      return fail("the file is larger than 2 GiB");
    if (std::optional<size_t> bad = firstInvalidUtf8(text)) {
      at = *bad;
      return fail("a byte that is not UTF-8");
    }
    LLMRT_RETURN_IF_ERROR(parseDocument());
    skipSpace();
    if (at != text.size())
      return fail("more text after the value");
    return std::move(doc);
  }

private:
  enum class State { Value, AfterValue, FirstMember, Member, FirstElement };

  Status fail(const std::string &what) const {
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at && i < text.size(); ++i) {
      ++column;
      if (text[i] == '\n') {
        ++line;
        column = 1;
      }
    }
    return invalidFile("not valid JSON at line " + std::to_string(line) + ", column " +
                       std::to_string(column) + ": " + what);
  }

  void skipSpace() {
    while (at < text.size() &&
           (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t'))
      ++at;
  }
  bool consume(char c) {
    if (at >= text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }

  Status parseDocument() {
    State state = State::Value;
    while (true) {
      skipSpace();
      if (at == text.size())
        return fail("the text ends inside a value (truncated file?)");
      switch (state) {
      case State::FirstElement:
        if (consume(']')) {
          close();
          state = State::AfterValue;
          break;
        }
        [[fallthrough]];
      case State::Value: {
        if (!open.empty())
          ++doc.nodes[open.back()].length;
        char c = text[at];
        if (c == '{' || c == '[') {
          if (open.size() == kMaxDepth)
            return fail("nested deeper than " + std::to_string(kMaxDepth) + " levels");
          ++at;
          open.push_back(push(c == '{' ? JsonType::Object : JsonType::Array));
          state = c == '{' ? State::FirstMember : State::FirstElement;
          break;
        }
        LLMRT_RETURN_IF_ERROR(c == '"' ? parseString() : parseScalar());
        state = State::AfterValue;
        break;
      }
      case State::FirstMember:
        if (consume('}')) {
          close();
          state = State::AfterValue;
          break;
        }
        [[fallthrough]];
      case State::Member:
        if (text[at] != '"')
          return fail("a member's name in double quotes is missing");
        LLMRT_RETURN_IF_ERROR(parseString());
        skipSpace();
        if (!consume(':'))
          return fail("':' is missing after a member's name");
        state = State::Value;
        break;
      case State::AfterValue: {
        bool object = doc.nodes[open.back()].type == JsonType::Object;
        if (consume(',')) {
          state = object ? State::Member : State::Value;
        } else if (consume(object ? '}' : ']')) {
          close();
        } else {
          return fail(object ? "',' or '}' is missing" : "',' or ']' is missing");
        }
        break;
      }
      }
      if (state == State::AfterValue && open.empty())
        return Status::ok();
    }
  }

  uint32_t push(JsonType type, size_t begin = 0, size_t length = 0, bool unescaped = false) {
    auto index = static_cast<uint32_t>(doc.nodes.size());
    doc.nodes.push_back(
        {static_cast<uint32_t>(begin), static_cast<uint32_t>(length), index + 1, type, unescaped});
    return index;
  }
  void close() {
    doc.nodes[open.back()].end = static_cast<uint32_t>(doc.nodes.size());
    open.pop_back();
  }

  Status parseScalar() {
    for (auto [word, type] : {std::pair{std::string_view("null"), JsonType::Null},
                              std::pair{std::string_view("true"), JsonType::True},
                              std::pair{std::string_view("false"), JsonType::False}}) {
      if (text.substr(at, word.size()) == word) {
        at += word.size();
        push(type);
        return Status::ok();
      }
    }
    size_t begin = at;
    auto digits = [&] {
      size_t first = at;
      while (at < text.size() && text[at] >= '0' && text[at] <= '9')
        ++at;
      return at > first;
    };
    consume('-');
    bool leadingZero = at < text.size() && text[at] == '0';
    size_t first = at;
    if (!digits()) {
      at = begin;
      return fail("a value is missing");
    }
    if (leadingZero && at - first > 1)
      return fail("a number with a leading zero");
    if (consume('.') && !digits())
      return fail("a digit is missing after '.'");
    if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
      ++at;
      if (!consume('+'))
        consume('-');
      if (!digits())
        return fail("a digit is missing in an exponent");
    }
    push(JsonType::Number, begin, at - begin);
    return Status::ok();
  }

  Status parseString() {
    size_t begin = ++at; // after the quote
    while (at < text.size() && text[at] != '"' && text[at] != '\\' &&
           static_cast<uint8_t>(text[at]) >= 0x20)
      ++at;
    if (consume('"')) { // the usual case: no escapes
      push(JsonType::String, begin, at - 1 - begin);
      return Status::ok();
    }
    std::string &out = doc.unescapedText;
    size_t start = out.size();
    out.append(text, begin, at - begin);
    while (true) {
      if (at == text.size())
        return fail("the text ends inside a string (truncated file?)");
      char c = text[at];
      if (static_cast<uint8_t>(c) < 0x20)
        return fail("a control character in a string");
      ++at;
      if (c == '"')
        break;
      if (c != '\\') {
        out += c;
        continue;
      }
      LLMRT_RETURN_IF_ERROR(parseEscape(out));
    }
    push(JsonType::String, start, out.size() - start, true);
    return Status::ok();
  }

  Status parseEscape(std::string &out) {
    static constexpr std::string_view kNames = "\"\\/bfnrt", kValues = "\"\\/\b\f\n\r\t";
    char c = at < text.size() ? text[at++] : '\0';
    if (size_t index = kNames.find(c); index != std::string_view::npos && c) {
      out += kValues[index];
      return Status::ok();
    }
    if (c != 'u')
      return fail("an unknown escape in a string");
    std::optional<uint32_t> unit = hex4();
    if (unit && *unit >= 0xD800 && *unit <= 0xDBFF && text.substr(at, 2) == "\\u") {
      at += 2;
      std::optional<uint32_t> low = hex4();
      if (low && *low >= 0xDC00 && *low <= 0xDFFF)
        unit = 0x10000 + ((*unit - 0xD800) << 10) + (*low - 0xDC00);
    }
    if (!unit || (*unit >= 0xD800 && *unit <= 0xDFFF))
      return fail("a \\u escape that is no character (bad digits or half a surrogate pair)");
    appendUtf8(out, *unit);
    return Status::ok();
  }

  std::optional<uint32_t> hex4() {
    if (text.size() - at < 4)
      return std::nullopt;
    uint32_t value = 0;
    auto [end, error] = std::from_chars(text.data() + at, text.data() + at + 4, value, 16);
    if (error != std::errc() || end != text.data() + at + 4)
      return std::nullopt;
    at += 4;
    return value;
  }

  std::string_view text;
  size_t at = 0;
  JsonDocument doc;
  std::vector<uint32_t> open; ///< the enclosing arrays and objects
};

Result<JsonDocument> JsonDocument::parse(std::string_view text) { return JsonParser(text).run(); }

JsonType JsonValue::type() const { return doc->nodes[node].type; }

std::string_view JsonValue::asString() const {
  const JsonDocument::Node &n = doc->nodes[node];
  std::string_view buffer = n.unescaped ? std::string_view(doc->unescapedText) : doc->source;
  return buffer.substr(n.begin, n.length);
}

std::optional<int64_t> JsonValue::asInteger() const {
  if (!doc || type() != JsonType::Number)
    return std::nullopt;
  std::string_view digits = asString();
  int64_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size())
    return std::nullopt;
  return value;
}

const char *JsonValue::typeName() const {
  if (!doc)
    return "nothing";
  switch (type()) {
  case JsonType::Null:
    return "null";
  case JsonType::False:
  case JsonType::True:
    return "a boolean";
  case JsonType::Number:
    return "a number";
  case JsonType::String:
    return "a string";
  case JsonType::Array:
    return "an array";
  case JsonType::Object:
    return "an object";
  }
  return "nothing";
}

size_t JsonValue::size() const { return isArray() || isObject() ? doc->nodes[node].length : 0; }

JsonValue JsonValue::operator[](std::string_view key) const {
  JsonValue found;
  for (auto [name, value] : members())
    if (name == key)
      found = value;
  return found;
}

JsonValue::Elements JsonValue::elements() const {
  Elements range;
  range.doc = doc;
  if (isArray()) {
    range.first = node + 1;
    range.last = doc->nodes[node].end;
  }
  return range;
}

JsonValue::Members JsonValue::members() const {
  Members range;
  range.doc = doc;
  if (isObject()) {
    range.first = node + 1;
    range.last = doc->nodes[node].end;
  }
  return range;
}

JsonValue::Elements::Iterator &JsonValue::Elements::Iterator::operator++() {
  node = doc->nodes[node].end;
  return *this;
}

JsonMember JsonValue::Members::Iterator::operator*() const {
  return {JsonValue(doc, node).asString(), JsonValue(doc, node + 1)};
}

JsonValue::Members::Iterator &JsonValue::Members::Iterator::operator++() {
  node = doc->nodes[node + 1].end;
  return *this;
}

} // namespace llmrt
