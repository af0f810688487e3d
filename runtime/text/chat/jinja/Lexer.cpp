#include "runtime/text/chat/jinja/Lexer.h"

#include "runtime/text/chat/jinja/StringLiteral.h"
#include "runtime/text/chat/jinja/TemplateError.h"
#include "runtime/text/chat/jinja/Unicode.h"
#include "runtime/text/chat/jinja/ValueText.h"

#include <algorithm>
#include <array>

namespace llmrt::jinja {

namespace {

bool isAsciiDigit(char c) { return c >= '0' && c <= '9'; }
bool isHexDigit(char c) { return isAsciiDigit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); }

/// All line ends as "\n", without the last one.
std::string normalizeLines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n')
        ++i;
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n')
    out.pop_back();
  return out;
}

class Lexer {
public:
  explicit Lexer(std::string_view source) : text_(normalizeLines(source)) {}

  std::vector<Token> run() {
    while (pos_ < text_.size())
      lexData();
    emit(TokenKind::End);
    return std::move(tokens_);
  }

private:
  [[noreturn]] void fail(const std::string &message) const {
    throw TemplateError(StatusCode::InvalidFile, line_, message);
  }

  bool at(size_t pos, std::string_view what) const {
    return std::string_view(text_).substr(std::min(pos, text_.size())).starts_with(what);
  }

  Token &emit(TokenKind kind, std::string text = {}) {
    Token t;
    t.kind = kind;
    t.line = line_;
    t.text = std::move(text);
    tokens_.push_back(std::move(t));
    return tokens_.back();
  }

  /// Moves to \p pos, counting lines.
  void advanceTo(size_t pos) {
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<long>(pos_),
                                         text_.begin() + static_cast<long>(pos), '\n'));
    pos_ = pos;
  }

  size_t skipSpace(size_t pos) const {
    while (pos < text_.size()) {
      CodePoint c = decodeAt(text_, pos);
      if (!isSpace(c.value))
        break;
      pos += c.size;
    }
    return pos;
  }

  /// '-', '+' or 0 at \p pos.
  char signAt(size_t pos) const {
    return pos < text_.size() && (text_[pos] == '-' || text_[pos] == '+') ? text_[pos] : 0;
  }

  /// Emits the literal text before a tag that begins at \p tag. \p sign is the tag's white-space
  /// mark; \p strips says whether a tag of this kind takes the blanks of its line with it.
  void emitData(size_t tag, char sign, bool strips) {
    std::string_view data = std::string_view(text_).substr(pos_, tag - pos_);
    if (sign == '-') {
      data = stripSpace(data, false, true);
    } else if (sign != '+' && strips) {
      size_t newline = data.rfind('\n');
      size_t lineStart = newline == data.npos ? 0 : newline + 1;
      if ((newline != data.npos || lineStarting_) &&
          stripSpace(data.substr(lineStart), true, false).empty())
        data = data.substr(0, lineStart);
    }
    if (!data.empty())
      emit(TokenKind::Data, std::string(data));
    advanceTo(tag);
  }

  /// Takes the end of a block or comment at \p end ("%}" or "#}" plus its mark), with the white
  /// space or the one newline that goes with it.
  void closeTag(size_t end, char sign) {
    size_t next = end;
    if (sign == '-')
      next = skipSpace(end);
    else if (sign == 0 && at(end, "\n"))
      next = end + 1;
    advanceTo(next);
    lineStarting_ = text_[next - 1] == '\n';
  }

  void lexData() {
    size_t tag = pos_;
    for (;; ++tag) {
      tag = text_.find('{', tag);
      if (tag == text_.npos || tag + 1 >= text_.size()) {
        emit(TokenKind::Data, text_.substr(pos_));
        advanceTo(text_.size());
        return;
      }
      char c = text_[tag + 1];
      if (c == '{' || c == '%' || c == '#')
        break;
    }
    const char kind = text_[tag + 1];
    const char sign = signAt(tag + 2);
    const size_t inside = tag + 2 + (sign != 0);
    emitData(tag, sign, kind != '{');
    if (kind == '#') {
      lexComment(inside);
    } else if (kind == '%') {
      if (!lexRaw(inside))
        lexTag(inside, TokenKind::BlockBegin, TokenKind::BlockEnd);
    } else {
      lexTag(inside, TokenKind::VariableBegin, TokenKind::VariableEnd);
    }
  }

  void lexComment(size_t inside) {
    size_t end = text_.find("#}", inside);
    if (end == text_.npos)
      fail("the comment is never closed: '#}' is missing");
    closeTag(end + 2, end > inside ? signAt(end - 1) : 0);
  }

  /// {% raw %} ... {% endraw %}; false if no raw block begins here.
  bool lexRaw(size_t inside) {
    size_t p = skipSpace(inside);
    if (!at(p, "raw"))
      return false;
    p = skipSpace(p + 3);
    size_t content;
    if (at(p, "-%}"))
      content = skipSpace(p + 3);
    else if (at(p, "%}"))
      content = p + 2;
    else
      return false;
    advanceTo(content);
    lineStarting_ = text_[content - 1] == '\n';
    for (size_t tag = text_.find("{%", pos_); tag != text_.npos; tag = text_.find("{%", tag + 1)) {
      char sign = signAt(tag + 2);
      size_t q = skipSpace(tag + 2 + (sign != 0));
      if (!at(q, "endraw"))
        continue;
      q = skipSpace(q + 6);
      char endSign = signAt(q);
      q += endSign != 0;
      if (!at(q, "%}"))
        continue;
      emitData(tag, sign, true);
      closeTag(q + 2, endSign);
      return true;
    }
    fail("the raw block is never closed: '{% endraw %}' is missing");
  }

  void lexTag(size_t inside, TokenKind begin, TokenKind end) {
    const int openLine = line_;
    emit(begin);
    advanceTo(inside);
    const bool block = begin == TokenKind::BlockBegin;
    std::string open; // the closing brackets that are due
    for (;;) {
      advanceTo(skipSpace(pos_));
      if (pos_ >= text_.size())
        throw TemplateError(StatusCode::InvalidFile, openLine,
                            std::string("the tag is never closed: '") + (block ? "%}" : "}}") +
                                "' is missing");
      if (open.empty() && lexTagEnd(block, end))
        return;
      lexToken(open);
    }
  }

  bool lexTagEnd(bool block, TokenKind kind) {
    char sign = signAt(pos_);
    size_t p = pos_ + (sign != 0);
    if (!at(p, block ? "%}" : "}}") || (!block && sign == '+'))
      return false;
    emit(kind);
    if (block) {
      closeTag(p + 2, sign);
    } else {
      size_t next = sign == '-' ? skipSpace(p + 2) : p + 2;
      advanceTo(next);
      lineStarting_ = text_[next - 1] == '\n';
    }
    return true;
  }

  void lexToken(std::string &open) {
    if (lexNumber() || lexName() || lexString() || lexOperator(open))
      return;
    unsigned size = decodeAt(text_, pos_).size;
    fail("unexpected character '" + text_.substr(pos_, size) + "'");
  }

  /// The end of digits at \p pos, single underscores between them; \p pos itself if there are none.
  template <typename IsDigit> size_t digitsEnd(size_t pos, IsDigit isDigit) const {
    if (pos >= text_.size() || !isDigit(text_[pos]))
      return pos;
    for (++pos; pos < text_.size();) {
      if (isDigit(text_[pos]))
        ++pos;
      else if (text_[pos] == '_' && pos + 1 < text_.size() && isDigit(text_[pos + 1]))
        pos += 2;
      else
        break;
    }
    return pos;
  }

  bool lexNumber() {
    if (!isAsciiDigit(text_[pos_]))
      return false;
    if ((pos_ == 0 || text_[pos_ - 1] != '.') && lexFloat())
      return true;
    size_t end = pos_;
    if (text_[pos_] == '0') {
      end = digitsEnd(pos_, [](char c) { return c == '0'; });
      char mark = pos_ + 1 < text_.size() ? static_cast<char>(text_[pos_ + 1] | 0x20) : 0;
      size_t from = pos_ + 2;
      if (from < text_.size() && text_[from] == '_')
        ++from;
      size_t prefixed = from;
      if (mark == 'x')
        prefixed = digitsEnd(from, isHexDigit);
      else if (mark == 'o')
        prefixed = digitsEnd(from, [](char c) { return c >= '0' && c <= '7'; });
      else if (mark == 'b')
        prefixed = digitsEnd(from, [](char c) { return c == '0' || c == '1'; });
      if (prefixed > from)
        end = prefixed;
    } else {
      end = digitsEnd(pos_, isAsciiDigit);
    }
    std::string digits = text_.substr(pos_, end - pos_);
    bool overflow = false;
    std::optional<Int> value = parseInt(digits, 0, overflow);
    if (!value || overflow)
      fail("the number " + digits.substr(0, 50) + " is too large");
    emit(TokenKind::Integer, std::move(digits)).integer = *value;
    advanceTo(end);
    return true;
  }

  bool lexFloat() {
    size_t end = digitsEnd(pos_, isAsciiDigit);
    bool isFloat = false;
    if (at(end, ".")) {
      size_t fraction = digitsEnd(end + 1, isAsciiDigit);
      if (fraction > end + 1) {
        end = fraction;
        isFloat = true;
      }
    }
    if (end < text_.size() && (text_[end] | 0x20) == 'e') {
      size_t digits = end + 1 + (signAt(end + 1) != 0);
      size_t exponent = digitsEnd(digits, isAsciiDigit);
      if (exponent > digits) {
        end = exponent;
        isFloat = true;
      }
    }
    if (!isFloat)
      return false;
    std::string digits = text_.substr(pos_, end - pos_);
    std::optional<double> value = parseFloat(digits);
    if (!value)
      fail("'" + digits.substr(0, 50) + "' is no number");
    emit(TokenKind::Float, std::move(digits)).real = *value;
    advanceTo(end);
    return true;
  }

  bool lexName() {
    size_t end = pos_;
    while (end < text_.size()) {
      CodePoint c = decodeAt(text_, end);
      if (c.value != '_' && !isAlnum(c.value))
        break;
      end += c.size;
    }
    if (end == pos_)
      return false;
    emit(TokenKind::Name, text_.substr(pos_, end - pos_));
    advanceTo(end);
    return true;
  }

  bool lexString() {
    const char quote = text_[pos_];
    if (quote != '"' && quote != '\'')
      return false;
    size_t end = pos_ + 1;
    while (end < text_.size() && text_[end] != quote)
      end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size())
      fail("the string is never closed");
    std::string error;
    std::optional<std::string> value =
        unescapeLiteral(std::string_view(text_).substr(pos_ + 1, end - pos_ - 1), error);
    if (!value)
      fail(error);
    emit(TokenKind::String, std::move(*value));
    advanceTo(end + 1);
    return true;
  }

  bool lexOperator(std::string &open) {
    static constexpr std::array<std::string_view, 6> two = {"//", "**", "==", "!=", ">=", "<="};
    static constexpr std::string_view one = "+-/*%~[](){}<>=.:|,;";
    size_t size = 0;
    for (std::string_view op : two)
      if (at(pos_, op))
        size = 2;
    if (size == 0 && one.find(text_[pos_]) != one.npos)
      size = 1;
    if (size == 0)
      return false;
    std::string op = text_.substr(pos_, size);
    if (op == "(" || op == "[" || op == "{") {
      open += op == "(" ? ')' : op == "[" ? ']' : '}';
    } else if (op == ")" || op == "]" || op == "}") {
      if (open.empty())
        fail("unexpected '" + op + "'");
      if (open.back() != op[0])
        fail("unexpected '" + op + "', expected '" + open.back() + "'");
      open.pop_back();
    }
    emit(TokenKind::Operator, std::move(op));
    advanceTo(pos_ + size);
    return true;
  }

  const std::string text_;
  size_t pos_ = 0;
  int line_ = 1;
  bool lineStarting_ = true; ///< the last tag ended with a newline, or none came yet
  std::vector<Token> tokens_;
};

} // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(source).run(); }

std::string describe(const Token &token) {
  switch (token.kind) {
  case TokenKind::Data:
    return "text";
  case TokenKind::VariableBegin:
    return "'{{'";
  case TokenKind::VariableEnd:
    return "'}}'";
  case TokenKind::BlockBegin:
    return "'{%'";
  case TokenKind::BlockEnd:
    return "'%}'";
  case TokenKind::String:
    return "a string";
  case TokenKind::End:
    return "the end of the template";
  default:
    return "'" + token.text + "'";
  }
}

} // namespace llmrt::jinja
