// llama.cpp's grammar format, from its published description (grammars/README.md).
#include "runtime/decode/grammar/GrammarBuilder.h"
#include "runtime/decode/grammar/Regex.h"

#include <algorithm>
#include <map>
#include <optional>

namespace llmrt {
namespace {

using Expr = GrammarBuilder::Expr;

constexpr int maxNesting = 200;
constexpr int64_t maxRepeat = 10000;

class GbnfParser {
public:
  GbnfParser(std::string_view text, GrammarBuilder &builder) : text_(text), builder_(builder) {}

  Status parse() {
    (void)ruleNamed("root"); // rule 0
    space(true);
    while (more()) {
      std::string name = word();
      if (name.empty())
        return fail("a rule's name is expected");
      space(false);
      if (text_.substr(at_, 3) != "::=")
        return fail("'::=' is expected after '" + name + "'");
      at_ += 3;
      space(true);
      uint32_t rule = ruleNamed(name);
      if (builder_.isDefined(rule))
        return fail("the rule '" + name + "' is defined twice");
      LLMRT_ASSIGN_OR_RETURN(Expr body, alternatives(0));
      builder_.define(rule, body);
      if (more() && text_[at_] != '\n' && text_[at_] != '\r')
        return fail(std::string("'") + text_[at_] + "' is not expected here");
      space(true);
    }
    return builder_.isDefined(0) ? Status::ok()
                                 : invalidArgument("grammar: there is no rule 'root'");
  }

private:
  Status fail(const std::string &why) const {
    auto line =
        std::count(text_.begin(), text_.begin() + ptrdiff_t(std::min(at_, text_.size())), '\n');
    return invalidArgument("grammar, line " + std::to_string(line + 1) + ": " + why);
  }
  bool more() const { return at_ < text_.size(); }
  bool peek(char c) const { return more() && text_[at_] == c; }
  bool take(char c) { return peek(c) ? (++at_, true) : false; }
  void space(bool newlines) {
    for (; more(); ++at_) {
      char c = text_[at_];
      if (c == '#')
        at_ = std::min(text_.find('\n', at_), text_.size()) - 1;
      else if (!(c == ' ' || c == '\t' || (newlines && (c == '\n' || c == '\r'))))
        return;
    }
  }
  std::string word() {
    size_t start = at_;
    while (more() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || peek('-') || peek('_')))
      ++at_;
    return std::string(text_.substr(start, at_ - start));
  }
  uint32_t ruleNamed(const std::string &name) {
    auto [place, isNew] = names_.try_emplace(name, 0);
    if (isNew)
      place->second = builder_.addRule(name);
    return place->second;
  }

  Result<Expr> alternatives(int depth) {
    if (depth > maxNesting)
      return fail("parentheses nested deeper than " + std::to_string(maxNesting));
    std::vector<Expr> parts;
    for (;;) {
      LLMRT_ASSIGN_OR_RETURN(Expr part, sequence(depth));
      parts.push_back(part);
      // An alternative may begin on the next line.
      size_t before = at_;
      space(true);
      if (!take('|')) {
        if (depth == 0)
          at_ = before;
        return builder_.either(std::move(parts));
      }
      space(true);
    }
  }

  Result<Expr> sequence(int depth) {
    std::vector<Expr> parts;
    for (space(depth > 0); more(); space(depth > 0)) {
      Expr part;
      if (take('"')) {
        LLMRT_ASSIGN_OR_RETURN(part, text());
      } else if (take('[')) {
        LLMRT_ASSIGN_OR_RETURN(part, characterClass());
      } else if (take('(')) {
        LLMRT_ASSIGN_OR_RETURN(part, alternatives(depth + 1));
        space(true);
        if (!take(')'))
          return fail("'(' without ')'");
      } else if (take('.')) {
        part = builder_.characters(complement({}));
      } else if (std::string name = word(); !name.empty()) {
        part = builder_.call(ruleNamed(name));
      } else {
        break;
      }
      LLMRT_RETURN_IF_ERROR(repetition(part));
      parts.push_back(part);
    }
    return builder_.sequence(std::move(parts));
  }

  Status repetition(Expr &part) {
    if (take('*'))
      part = builder_.repeat(part, 0);
    else if (take('+'))
      part = builder_.repeat(part, 1);
    else if (take('?'))
      part = builder_.optional(part);
    else if (take('{')) {
      auto number = [&]() -> std::optional<int64_t> {
        space(false);
        size_t start = at_;
        int64_t value = 0;
        for (; more() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
          value = std::min<int64_t>(value * 10 + (text_[at_] - '0'), maxRepeat + 1);
        std::optional<int64_t> read;
        if (at_ > start)
          read = value;
        space(false);
        return read;
      };
      std::optional<int64_t> least = number(), most = least;
      if (!least)
        return fail("a repetition needs a number: {m}, {m,} or {m,n}");
      if (take(','))
        most = number();
      if (!take('}'))
        return fail("'{' without '}'");
      if (*least > maxRepeat || most.value_or(0) > maxRepeat)
        return fail("more than " + std::to_string(maxRepeat) + " repetitions");
      if (most && *most < *least)
        return fail("a repetition whose limits are out of order");
      part = builder_.repeat(part, *least, most.value_or(GrammarBuilder::unlimited));
    }
    return Status::ok();
  }

  /// One character of a text or class, an escape or itself.
  Result<uint32_t> character() {
    if (!take('\\')) {
      std::optional<uint32_t> c = nextCharacter(text_, at_);
      if (!c)
        return fail("invalid UTF-8");
      return *c;
    }
    char c = more() ? text_[at_++] : 0;
    int digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits) {
      uint32_t value = 0;
      for (int i = 0; i < digits; ++i, ++at_) {
        char d = more() ? text_[at_] : 'x';
        if (!std::isxdigit(static_cast<unsigned char>(d)))
          return fail("an escape needs " + std::to_string(digits) + " hexadecimal digits");
        value = value * 16 + static_cast<uint32_t>(d <= '9' ? d - '0' : (d | 32) - 'a' + 10);
      }
      if (value > 0x10ffff)
        return fail("no such character");
      return value;
    }
    switch (c) {
    case 'n':
      return uint32_t('\n');
    case 'r':
      return uint32_t('\r');
    case 't':
      return uint32_t('\t');
    case '"':
    case '\\':
    case '[':
    case ']':
    case '-':
    case '^':
      return uint32_t(c);
    default:
      return fail("unknown escape");
    }
  }

  Result<Expr> text() {
    std::vector<Expr> parts;
    while (!take('"')) {
      if (!more() || peek('\n'))
        return fail("a text without its closing '\"'");
      LLMRT_ASSIGN_OR_RETURN(uint32_t c, character());
      parts.push_back(builder_.characters({{c, c}}));
    }
    return builder_.sequence(std::move(parts));
  }

  Result<Expr> characterClass() {
    bool negated = take('^');
    std::vector<CharRange> ranges;
    while (!take(']')) {
      if (!more())
        return fail("'[' without ']'");
      LLMRT_ASSIGN_OR_RETURN(uint32_t low, character());
      uint32_t high = low;
      if (peek('-') && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        LLMRT_ASSIGN_OR_RETURN(high, character());
        if (high < low)
          return fail("a range whose ends are out of order");
      }
      ranges.push_back({low, high});
    }
    return builder_.characters(negated ? complement(ranges) : ranges);
  }

  std::string_view text_;
  GrammarBuilder &builder_;
  size_t at_ = 0;
  std::map<std::string, uint32_t> names_;
};

} // namespace

Result<std::shared_ptr<const Grammar>> Grammar::fromGbnf(std::string_view text) {
  GrammarBuilder builder;
  LLMRT_RETURN_IF_ERROR(GbnfParser(text, builder).parse());
  Result<std::shared_ptr<const Grammar>> made = builder.build();
  return made ? made : made.status().withContext("grammar");
}

} // namespace llmrt
