#include "runtime/decode/grammar/Regex.h"

#include <algorithm>

namespace llmrt {
namespace {

using Expr = GrammarBuilder::Expr;
using Ranges = std::vector<CharRange>;

constexpr int maxNesting = 200;
constexpr int64_t maxRepeat = 10000;

const Ranges digits = {{'0', '9'}};
const Ranges wordChars = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
/// ECMAScript's white space.
const Ranges spaces = {{'\t', '\r'},     {' ', ' '},       {0xa0, 0xa0},     {0x1680, 0x1680},
                       {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f},
                       {0x3000, 0x3000}, {0xfeff, 0xfeff}};
const Ranges lineEnds = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

class Parser {
public:
  Parser(std::string_view text, GrammarBuilder &builder, const RegexOptions &options)
      : text_(text), builder_(builder), options_(options) {}

  Result<Expr> parse() {
    LLMRT_ASSIGN_OR_RETURN(Expr all, alternatives(0));
    if (at_ < text_.size())
      return fail("')' without '('");
    return all;
  }

private:
  Status fail(const std::string &why, StatusCode code = StatusCode::InvalidArgument) const {
    return Status(code, "regex: " + why + " at position " + std::to_string(at_));
  }
  bool more() const { return at_ < text_.size(); }
  bool peek(char c) const { return more() && text_[at_] == c; }
  bool take(char c) { return peek(c) ? (++at_, true) : false; }

  Expr anything() { return builder_.repeat(emit(complement({})), 0); }
  Expr emit(const Ranges &ranges) {
    return options_.insideJsonString ? jsonCharacters(builder_, ranges)
                                     : builder_.characters(ranges);
  }

  Result<Expr> alternatives(int depth) {
    if (depth > maxNesting)
      return fail("groups nested deeper than " + std::to_string(maxNesting));
    std::vector<Expr> parts;
    do {
      LLMRT_ASSIGN_OR_RETURN(Expr part, sequence(depth));
      parts.push_back(part);
    } while (take('|'));
    return builder_.either(std::move(parts));
  }

  Result<Expr> sequence(int depth) {
    std::vector<Expr> parts;
    bool begins = false, ends = false;
    while (more() && !peek('|') && !peek(')')) {
      if (peek('^') || peek('$')) {
        bool start = text_[at_] == '^';
        if (depth > 0 || (start && !parts.empty()))
          return fail(std::string("'") + text_[at_] + "' other than at the ends is not supported",
                      StatusCode::Unsupported);
        ++at_;
        (start ? begins : ends) = true;
        continue;
      }
      if (ends)
        return fail("'$' other than at the ends is not supported", StatusCode::Unsupported);
      LLMRT_ASSIGN_OR_RETURN(Expr part, repeated(depth));
      parts.push_back(part);
    }
    if (depth == 0 && options_.search) {
      if (!begins)
        parts.insert(parts.begin(), anything());
      if (!ends)
        parts.push_back(anything());
    }
    return builder_.sequence(std::move(parts));
  }

  Result<Expr> repeated(int depth) {
    LLMRT_ASSIGN_OR_RETURN(Expr part, atom(depth));
    for (int count = 0; more(); ++count) {
      int64_t least = 0, most = GrammarBuilder::unlimited;
      if (take('*')) {
      } else if (take('+')) {
        least = 1;
      } else if (take('?')) {
        most = 1;
      } else if (peek('{') && at_ + 1 < text_.size() && text_[at_ + 1] >= '0' &&
                 text_[at_ + 1] <= '9') {
        LLMRT_RETURN_IF_ERROR(bounds(least, most));
      } else {
        break;
      }
      if (count > 0)
        return fail("nothing to repeat");
      (void)take('?'); // lazy: the same texts
      if (peek('+'))
        return fail("possessive repetition is not supported", StatusCode::Unsupported);
      part = builder_.repeat(part, least, most);
    }
    return part;
  }

  Status bounds(int64_t &least, int64_t &most) {
    ++at_;
    auto number = [&](int64_t &value) {
      value = 0;
      size_t start = at_;
      for (; more() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
        value = std::min<int64_t>(value * 10 + (text_[at_] - '0'), maxRepeat + 1);
      return at_ > start;
    };
    (void)number(least);
    most = least;
    if (take(',') && !number(most))
      most = GrammarBuilder::unlimited;
    if (!take('}'))
      return fail("a repetition {m,n} that does not end");
    if (least > maxRepeat || most > maxRepeat)
      return fail("more than " + std::to_string(maxRepeat) + " repetitions");
    if (most >= 0 && most < least)
      return fail("a repetition whose limits are out of order");
    return Status::ok();
  }

  Result<Expr> atom(int depth) {
    if (take('(')) {
      if (take('?')) {
        if (take('<') || take('P')) { // a name: only groups' texts would need it
          if (peek('=') || peek('!'))
            return fail("lookbehind is not supported", StatusCode::Unsupported);
          (void)take('<');
          while (more() && !peek('>'))
            ++at_;
          if (!take('>'))
            return fail("a group's name that does not end");
        } else if (!take(':')) {
          return fail("lookahead and flags are not supported", StatusCode::Unsupported);
        }
      }
      LLMRT_ASSIGN_OR_RETURN(Expr inner, alternatives(depth + 1));
      if (!take(')'))
        return fail("'(' without ')'");
      return inner;
    }
    if (take('['))
      return characterClass();
    if (take('.'))
      return emit(complement(lineEnds));
    if (peek('*') || peek('+') || peek('?'))
      return fail("nothing to repeat");
    if (take('\\')) {
      Ranges ranges;
      LLMRT_RETURN_IF_ERROR(escape(ranges));
      return emit(ranges);
    }
    std::optional<uint32_t> c = nextCharacter(text_, at_);
    if (!c)
      return fail("invalid UTF-8");
    return emit({{*c, *c}});
  }

  Status hex(int n, uint32_t &value) {
    value = 0;
    for (int i = 0; i < n; ++i, ++at_) {
      char c = more() ? text_[at_] : 0;
      int digit = c >= '0' && c <= '9'   ? c - '0'
                  : c >= 'a' && c <= 'f' ? c - 'a' + 10
                  : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                         : -1;
      if (digit < 0)
        return fail("an escape needs " + std::to_string(n) + " hexadecimal digits");
      value = value * 16 + static_cast<uint32_t>(digit);
    }
    return Status::ok();
  }

  /// Behind a backslash; one character or a set.
  Status escape(Ranges &ranges) {
    if (!more())
      return fail("a backslash at the end");
    auto one = [&](uint32_t c) { ranges = {{c, c}}; };
    char c = text_[at_];
    if (c >= '1' && c <= '9')
      return fail("backreferences are not supported", StatusCode::Unsupported);
    if (c == 'b' || c == 'B' || c == 'A' || c == 'Z' || c == 'z' || c == 'G')
      return fail(std::string("\\") + c + " is not supported", StatusCode::Unsupported);
    if (c == 'p' || c == 'P')
      return fail("character properties (\\p) are not supported", StatusCode::Unsupported);
    ++at_;
    uint32_t value = 0;
    switch (c) {
    case 'd':
      ranges = digits;
      break;
    case 'D':
      ranges = complement(digits);
      break;
    case 'w':
      ranges = wordChars;
      break;
    case 'W':
      ranges = complement(wordChars);
      break;
    case 's':
      ranges = spaces;
      break;
    case 'S':
      ranges = complement(spaces);
      break;
    case 'n':
      one('\n');
      break;
    case 't':
      one('\t');
      break;
    case 'r':
      one('\r');
      break;
    case 'f':
      one('\f');
      break;
    case 'v':
      one('\v');
      break;
    case '0':
      one(0);
      break;
    case 'x':
      LLMRT_RETURN_IF_ERROR(hex(2, value));
      one(value);
      break;
    case 'u':
      if (take('{')) {
        size_t end = text_.find('}', at_);
        if (end == std::string_view::npos || end - at_ > 6 || end == at_)
          return fail("\\u{...} needs 1 to 6 hexadecimal digits");
        LLMRT_RETURN_IF_ERROR(hex(static_cast<int>(end - at_), value));
        ++at_;
      } else {
        LLMRT_RETURN_IF_ERROR(hex(4, value));
        uint32_t low = 0;
        if (value >= 0xd800 && value < 0xdc00 && text_.substr(at_, 2) == "\\u") {
          at_ += 2;
          LLMRT_RETURN_IF_ERROR(hex(4, low));
          value = 0x10000 + ((value - 0xd800) << 10) + (low - 0xdc00);
        }
      }
      if (value > 0x10ffff)
        return fail("no such character");
      one(value);
      break;
    default:
      if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
        --at_;
        return fail(std::string("unknown escape \\") + c);
      }
      --at_;
      std::optional<uint32_t> itself = nextCharacter(text_, at_);
      if (!itself)
        return fail("invalid UTF-8");
      one(*itself);
    }
    return Status::ok();
  }

  Result<Expr> characterClass() {
    bool negated = take('^');
    Ranges all;
    for (; !peek(']');) {
      if (!more())
        return fail("'[' without ']'");
      Ranges low;
      LLMRT_RETURN_IF_ERROR(classItem(low));
      bool single = low.size() == 1 && low[0].first == low[0].second;
      if (single && peek('-') && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        Ranges high;
        LLMRT_RETURN_IF_ERROR(classItem(high));
        if (high.size() != 1 || high[0].first != high[0].second || high[0].first < low[0].first)
          return fail("a range whose ends are out of order");
        low[0].second = high[0].second;
      }
      all.insert(all.end(), low.begin(), low.end());
    }
    ++at_;
    return emit(negated ? complement(all) : normalized(all));
  }

  Status classItem(Ranges &ranges) {
    if (take('\\')) {
      if (take('b')) { // in a class: backspace
        ranges = {{8, 8}};
        return Status::ok();
      }
      if (take('-')) {
        ranges = {{'-', '-'}};
        return Status::ok();
      }
      return escape(ranges);
    }
    std::optional<uint32_t> c = nextCharacter(text_, at_);
    if (!c)
      return fail("invalid UTF-8");
    ranges = {{*c, *c}};
    return Status::ok();
  }

  std::string_view text_;
  GrammarBuilder &builder_;
  RegexOptions options_;
  size_t at_ = 0;
};

} // namespace

std::optional<uint32_t> nextCharacter(std::string_view text, size_t &at) {
  if (at >= text.size())
    return std::nullopt;
  uint8_t first = static_cast<uint8_t>(text[at]);
  int n = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (n == 0 || first > 0xf4 || at + static_cast<size_t>(n) > text.size())
    return std::nullopt;
  uint32_t c = n == 1 ? first : first & (0x7fu >> n);
  for (int i = 1; i < n; ++i) {
    uint8_t next = static_cast<uint8_t>(text[at + static_cast<size_t>(i)]);
    if ((next & 0xc0) != 0x80)
      return std::nullopt;
    c = c << 6 | (next & 0x3f);
  }
  constexpr uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (c < least[n] || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
    return std::nullopt;
  at += static_cast<size_t>(n);
  return c;
}

GrammarBuilder::Expr jsonCharacters(GrammarBuilder &builder, const std::vector<CharRange> &given) {
  std::vector<CharRange> plain;
  std::vector<Expr> parts;
  auto contains = [&](uint32_t c) {
    return std::any_of(given.begin(), given.end(),
                       [c](const CharRange &r) { return r.first <= c && c <= r.second; });
  };
  for (CharRange r : normalized(given))
    for (CharRange free : std::vector<CharRange>{{0x20, 0x21}, {0x23, 0x5b}, {0x5d, 0x10ffff}})
      if (std::max(r.first, free.first) <= std::min(r.second, free.second))
        plain.push_back({std::max(r.first, free.first), std::min(r.second, free.second)});
  if (!plain.empty())
    parts.push_back(builder.characters(plain));
  constexpr std::pair<uint32_t, const char *> escapes[] = {
      {'"', "\\\""}, {'\\', "\\\\"}, {'\b', "\\b"}, {'\f', "\\f"},
      {'\n', "\\n"}, {'\r', "\\r"},  {'\t', "\\t"}};
  for (auto [c, text] : escapes)
    if (contains(c))
      parts.push_back(builder.literal(text));
  if (parts.empty())
    return builder.characters({});
  return builder.either(std::move(parts));
}

Result<GrammarBuilder::Expr> parseRegex(std::string_view text, GrammarBuilder &builder,
                                        const RegexOptions &options) {
  return Parser(text, builder, options).parse();
}

Result<std::shared_ptr<const Grammar>> Grammar::fromRegex(std::string_view regex) {
  GrammarBuilder builder;
  uint32_t root = builder.addRule("root");
  LLMRT_ASSIGN_OR_RETURN(GrammarBuilder::Expr body, parseRegex(regex, builder));
  builder.define(root, body);
  Result<std::shared_ptr<const Grammar>> made = builder.build();
  return made ? made : made.status().withContext("regex");
}

} // namespace llmrt
