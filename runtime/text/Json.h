//===- Json.h - a small, strict, bounded JSON reader ---------------------------===//
//
// Reads RFC 8259 JSON into a flat array of 16-byte nodes in document order. Made for
// hostile files: nesting is limited, nothing is allocated from a number in the file, memory
// is at most about ten times the text, and duplicate keys stay visible to the caller.
// A document keeps a view of the text, which must outlive it.
//
//   LLMRT_ASSIGN_OR_RETURN(JsonDocument doc, JsonDocument::parse(text));
//   for (auto [key, value] : doc.root().members()) ...
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_TEXT_JSON_H
#define LLMRT_TEXT_JSON_H

#include "runtime/support/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llmrt {

enum class JsonType : uint8_t { Null, False, True, Number, String, Array, Object };

class JsonDocument;

/// A cheap handle on one value of a document. A default-made handle is "missing".
class JsonValue {
public:
  JsonValue() = default;
  explicit operator bool() const { return doc != nullptr; } ///< there is such a value
  JsonType type() const;
  bool isNull() const { return !doc || type() == JsonType::Null; } ///< missing or null
  bool isString() const { return doc && type() == JsonType::String; }
  bool isArray() const { return doc && type() == JsonType::Array; }
  bool isObject() const { return doc && type() == JsonType::Object; }
  bool isBool() const { return doc && (type() == JsonType::True || type() == JsonType::False); }
  bool asBool() const { return type() == JsonType::True; }
  std::string_view asString() const; ///< of a string: its decoded text; of a number: its digits
  /// The number as an integer, if it is written as one and fits.
  std::optional<int64_t> asInteger() const;
  /// "a string", "an object", ... for messages.
  const char *typeName() const;
  /// Elements of an array, members of an object.
  size_t size() const;
  /// The last member called \p key (as most readers choose), or missing.
  JsonValue operator[](std::string_view key) const;

  /// Range over an array's elements.
  class Elements;
  Elements elements() const;
  /// Range over an object's members, in order.
  class Members;
  Members members() const;

private:
  friend class JsonDocument;
  JsonValue(const JsonDocument *doc, uint32_t node) : doc(doc), node(node) {}
  const JsonDocument *doc = nullptr;
  uint32_t node = 0;
};

struct JsonMember {
  std::string_view key;
  JsonValue value;
};

class JsonDocument {
public:
  /// \p text of less than 2 GiB. An error names what was expected, with line and column.
  static Result<JsonDocument> parse(std::string_view text);
  JsonValue root() const { return JsonValue(this, 0); }

  /// Text, offsets and the number of nodes in the subtree; children follow their parent, and
  /// an object's are keys (strings) and values in turn.
  struct Node {
    uint32_t begin;  ///< offset of the string or number in its buffer
    uint32_t length; ///< its bytes; for arrays and objects the number of children
    uint32_t end;    ///< index of the first node after this subtree
    JsonType type;
    bool unescaped; ///< the string lies in `unescapedText`, not in the source
  };
  static_assert(sizeof(Node) == 16);

private:
  friend class JsonValue;
  friend class JsonParser;
  std::string_view source;
  std::string unescapedText;
  std::vector<Node> nodes;
};

class JsonValue::Elements {
public:
  class Iterator {
  public:
    JsonValue operator*() const { return JsonValue(doc, node); }
    Iterator &operator++();
    bool operator!=(const Iterator &other) const { return node != other.node; }

  private:
    friend class JsonValue::Elements;
    Iterator(const JsonDocument *doc, uint32_t node) : doc(doc), node(node) {}
    const JsonDocument *doc;
    uint32_t node;
  };
  Iterator begin() const { return {doc, first}; }
  Iterator end() const { return {doc, last}; }

private:
  friend class JsonValue;
  const JsonDocument *doc = nullptr;
  uint32_t first = 0, last = 0;
};

class JsonValue::Members {
public:
  class Iterator {
  public:
    JsonMember operator*() const;
    Iterator &operator++();
    bool operator!=(const Iterator &other) const { return node != other.node; }

  private:
    friend class JsonValue::Members;
    Iterator(const JsonDocument *doc, uint32_t node) : doc(doc), node(node) {}
    const JsonDocument *doc;
    uint32_t node;
  };
  Iterator begin() const { return {doc, first}; }
  Iterator end() const { return {doc, last}; }

private:
  friend class JsonValue;
  const JsonDocument *doc = nullptr;
  uint32_t first = 0, last = 0;
};

} // namespace llmrt

#endif // LLMRT_TEXT_JSON_H
