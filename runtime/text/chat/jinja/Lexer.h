//===- Lexer.h - template text to tokens ---------------------------------------===//
#ifndef LLMRT_TEXT_CHAT_JINJA_LEXER_H
#define LLMRT_TEXT_CHAT_JINJA_LEXER_H

#include "runtime/text/chat/jinja/Value.h"

#include <string>
#include <string_view>
#include <vector>

namespace llmrt::jinja {

enum class TokenKind : uint8_t {
  Data,          ///< literal text
  VariableBegin, ///< {{
  VariableEnd,   ///< }}
  BlockBegin,    ///< {%
  BlockEnd,      ///< %}
  Name,
  String,
  Integer,
  Float,
  Operator,
  End
};

struct Token {
  TokenKind kind = TokenKind::End;
  int line = 0;
  std::string text; ///< the name, the operator, or the value of a string or of literal text
  Int integer = 0;
  double real = 0;

  bool isOperator(std::string_view op) const { return kind == TokenKind::Operator && text == op; }
  bool isName(std::string_view name) const { return kind == TokenKind::Name && text == name; }
};

/// Splits \p source with trim_blocks and lstrip_blocks on, one newline at the end dropped and all
/// line ends made "\n". The last token is End. Throws TemplateError.
std::vector<Token> tokenize(std::string_view source);

/// How errors name a token.
std::string describe(const Token &token);

} // namespace llmrt::jinja

#endif // LLMRT_TEXT_CHAT_JINJA_LEXER_H
