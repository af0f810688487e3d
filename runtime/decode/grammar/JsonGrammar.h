//===- JsonGrammar.h - JSON text as grammar expressions ----------------------===//
//
// RFC 8259, with what a model should not wander off in bounded: spaces, digits of a number.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_DECODE_GRAMMAR_JSONGRAMMAR_H
#define LLMRT_DECODE_GRAMMAR_JSONGRAMMAR_H

#include "runtime/decode/grammar/GrammarBuilder.h"
#include "runtime/text/Json.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace llmrt {

/// \p text as JSON writes it, in quotes.
std::string jsonString(std::string_view text);
/// The value as JSON without spaces. The parser has bounded its depth.
std::string writtenJson(const JsonValue &value);
/// The regex of a string format (draft 2020-12, section 7.3): date, time, date-time, uuid, ipv4 or
/// email; empty for others.
std::string jsonStringFormat(std::string_view name);

/// Makes expressions in a builder, whose first rule it adds.
class JsonGrammar {
public:
  using Expr = GrammarBuilder::Expr;
  explicit JsonGrammar(GrammarBuilder &builder);

  uint32_t root() const { return root_; }
  Expr ws() { return b_.call(space_); }
  Expr text(std::string_view t) { return b_.literal(t); }
  /// Up to 16 digits: what a double, and so most readers, can hold.
  Expr integer();
  Expr number();
  /// Between quotes, of \p least to \p most characters.
  Expr string(int64_t least = 0, int64_t most = GrammarBuilder::unlimited);
  /// "[" items "]" with commas.
  Expr listOf(Expr element, int64_t least, int64_t most);
  Expr member(Expr key, Expr content) { return b_.sequence({key, ws(), text(":"), ws(), content}); }
  Expr anyValue() { return b_.call(anyRule(JsonType::Null)); }
  /// The rule of all objects, of all arrays, or (for any other type) of all values.
  uint32_t anyRule(JsonType type);
  /// The rest of a key, behind the bytes that \p names, which are sorted, have in common, that
  /// makes none of them.
  Expr otherThan(std::vector<std::string> names);

protected:
  GrammarBuilder &b_;

private:
  Expr digit() { return b_.characters({{'0', '9'}}); }
  Expr hex() { return b_.characters({{'0', '9'}, {'A', 'F'}, {'a', 'f'}}); }
  Expr plainCharacter() { return b_.characters({{0x20, 0x21}, {0x23, 0x5b}, {0x5d, 0x10ffff}}); }
  /// One character of a string, as JSON writes it. Surrogates come in pairs.
  Expr stringCharacter();

  uint32_t root_, space_;
  std::optional<uint32_t> character_;
  std::map<JsonType, uint32_t> any_;
};

} // namespace llmrt

#endif // LLMRT_DECODE_GRAMMAR_JSONGRAMMAR_H
