#include "runtime/text/PatternSyntax.h"

#include "runtime/text/Utf8.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace llmrt {

namespace {

constexpr std::string_view kNotSpace =
    R"(\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})";

/// `\w` outside of brackets.
constexpr std::string_view kWord =
    R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";

/// What Oniguruma's POSIX brackets mean; the body of a class, or nothing.
std::string_view posixClass(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> kClasses[] = {
      {"alpha", R"(\p{Alphabetic})"}, {"alnum", R"(\p{Alphabetic}\p{Nd})"},
      {"upper", R"(\p{Uppercase})"},  {"lower", R"(\p{Lowercase})"},
      {"digit", R"(\p{Nd})"},         {"punct", R"(\p{P}\p{S})"},
      {"space", kClassSpace},         {"blank", R"(\p{Zs}\x{9})"},
      {"cntrl", R"(\p{Cc})"},         {"xdigit", "0-9a-fA-F"},
      {"ascii", R"(\x{0}-\x{7f})"},   {"word", kClassWord}};
  for (auto [known, body] : kClasses)
    if (name == known)
      return body;
  return {};
}

/// Whether \p{name} must be a script: it is no general category and no binary property.
bool isScript(std::string_view name) {
  if (name.size() <= 2)
    return false;
  for (std::string_view known :
       {"Any", "Alphabetic", "Alpha", "Uppercase", "Upper", "Lowercase", "Lower", "White_Space",
        "Space", "Emoji", "Emoji_Presentation", "Emoji_Modifier", "Emoji_Modifier_Base",
        "Emoji_Component", "Extended_Pictographic", "ASCII", "Ideographic"})
    if (name == known)
      return false;
  return true;
}

class Translator {
public:
  explicit Translator(std::string_view in) : in(in) { groups.push_back({}); }

  Result<std::string> run() {
    while (at < in.size())
      LLMRT_RETURN_IF_ERROR(item());
    if (groups.size() > 1)
      return fail("a ')' is missing");
    out.append(groups.back().extraCloses, ')');
    return std::move(out);
  }

private:
  struct Group {
    size_t start = 0;       ///< where it begins in `out`
    size_t extraCloses = 0; ///< (?i) turned into (?i: that end with it
  };

  Status fail(std::string_view what) const {
    return unsupported("pattern '" + std::string(in) + "', offset " + std::to_string(at) + ": " +
                       std::string(what));
  }
  bool startsWith(std::string_view prefix) const { return in.substr(at, prefix.size()) == prefix; }
  void atom(std::string_view text) {
    atomStart = out.size();
    out += text;
  }

  Status item() {
    switch (in[at]) {
    case '\\':
      return escape(false);
    case '[':
      return characterClass();
    case '(':
      return openGroup();
    case ')': {
      if (groups.size() == 1)
        return fail("')' without '('");
      out.append(groups.back().extraCloses + 1, ')');
      atomStart = groups.back().start;
      groups.pop_back();
      ++at;
      return Status::ok();
    }
    case '*':
    case '+':
    case '?':
      return quantifier(in.substr(at, 1), 1, false);
    case '{':
      return interval();
    case '|':
      atomStart.reset();
      out += in[at++];
      return Status::ok();
    default: {
      size_t width = utf8Width(in, at);
      atom(in.substr(at, width));
      at += width;
      return Status::ok();
    }
    }
  }

  /// A repetition `spelled` in PCRE2's way; `consumed` bytes of the input.
  Status quantifier(std::string_view spelled, size_t consumed, bool isInterval) {
    if (!atomStart)
      return fail("nothing to repeat");
    at += consumed;
    out += spelled;
    bool suffix = at < in.size() && (in[at] == '+' || in[at] == '?');
    if (!suffix)
      return Status::ok();
    // x{2}+ and x{2}? repeat the repetition; x{1,2}? is lazy, as x+? and x++ mean the same.
    bool exact = isInterval && spelled.find(',') == std::string_view::npos;
    if (isInterval && (in[at] == '+' || exact)) {
      out.insert(*atomStart, "(?:");
      out += ')';
    }
    out += in[at++];
    return Status::ok();
  }

  Status interval() {
    size_t end = at + 1;
    auto digits = [&] {
      size_t first = end;
      while (end < in.size() && in[end] >= '0' && in[end] <= '9')
        ++end;
      return std::string(in.substr(first, end - first));
    };
    std::string low = digits(), high;
    bool comma = end < in.size() && in[end] == ',';
    if (comma) {
      ++end;
      high = digits();
    }
    if (end >= in.size() || in[end] != '}' || (low.empty() && high.empty())) {
      atom("\\{"); // not an interval: the character itself
      ++at;
      return Status::ok();
    }
    std::string spelled = "{" + (low.empty() ? "0" : low) + (comma ? "," + high : "") + "}";
    return quantifier(spelled, end + 1 - at, true);
  }

  Status openGroup() {
    size_t start = out.size();
    if (startsWith("(*"))
      return fail("'(*' is not supported");
    for (std::string_view opener : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"}) {
      if (startsWith(opener)) {
        at += opener.size();
        return enter(start, opener);
      }
    }
    if (!startsWith("(?")) {
      ++at;
      return enter(start, "(");
    }
    size_t end = at + 2;
    if (end < in.size() && in[end] == '<') { // a named group; the name has no use here
      end = in.find('>', end);
      if (end == std::string_view::npos)
        return fail("a '>' is missing after a group's name");
      at = end + 1;
      return enter(start, "(");
    }
    std::string options;
    for (; end < in.size() && in[end] != ':' && in[end] != ')'; ++end) {
      char c = in[end];
      if (c != 'i' && c != 'm' && c != '-')
        return fail("this kind of group is not supported");
      options += c == 'm' ? 's' : c;
    }
    if (end == in.size())
      return fail("a ')' is missing");
    at = end + 1;
    if (in[end] == ':')
      return enter(start, "(?" + options + ":");
    out += "(?" + options + ":";
    ++groups.back().extraCloses;
    atomStart.reset();
    return Status::ok();
  }

  Status enter(size_t start, std::string_view opener) {
    out += opener;
    groups.push_back({start, 0});
    atomStart.reset();
    return Status::ok();
  }

  Status characterClass() {
    atom("[");
    ++at;
    if (at < in.size() && in[at] == '^')
      out += in[at++];
    bool first = true;
    for (; at < in.size(); first = false) {
      if (in[at] == ']' && !first) {
        out += in[at++];
        return Status::ok();
      }
      if (startsWith("&&"))
        return fail("intersections of character classes are not supported");
      if (startsWith("[:")) {
        size_t end = in.find(":]", at);
        if (end == std::string_view::npos)
          return fail("':]' is missing");
        std::string_view body = posixClass(in.substr(at + 2, end - at - 2));
        if (body.empty())
          return fail("this [: :] class is not supported");
        out += body;
        at = end + 2;
      } else if (in[at] == '[') {
        return fail("nested character classes are not supported");
      } else if (in[at] == '\\') {
        LLMRT_RETURN_IF_ERROR(escape(true));
      } else {
        size_t width = utf8Width(in, at);
        if (in[at] == ']')
          out += '\\';
        out += in.substr(at, width);
        at += width;
      }
    }
    return fail("a ']' is missing");
  }

  Status escape(bool inClass) {
    if (at + 1 >= in.size())
      return fail("a character is missing after '\\'");
    char c = in[at + 1];
    size_t width = 1 + utf8Width(in, at + 1);
    auto emit = [&](std::string_view text) {
      if (inClass)
        out += text;
      else
        atom(text);
      at += width;
      return Status::ok();
    };
    auto emitClass = [&](std::string_view body, bool negated) {
      if (inClass)
        return emit(body);
      return emit((negated ? "[^" : "[") + std::string(body) + "]");
    };
    switch (c) {
    case 's':
      return emitClass(kClassSpace, false);
    case 'S':
      return inClass ? emit(kNotSpace) : emitClass(kClassSpace, true);
    case 'w':
      return emitClass(inClass ? kClassWord : kWord, false);
    case 'W':
      return inClass ? fail("'\\W' in a character class is not supported") : emitClass(kWord, true);
    case 'h':
      return emitClass("0-9a-fA-F", false);
    case 'H':
      return inClass ? fail("'\\H' in a character class is not supported")
                     : emitClass("0-9a-fA-F", true);
    case 'v':
      return emit("\\x{b}");
    case 'b':
    case 'B': {
      if (inClass)
        return c == 'b' ? emit("\\x{8}") : fail("'\\B' in a character class");
      std::string word = "[" + std::string(kWord) + "]";
      std::string same = c == 'b' ? "(?!" : "(?=", other = c == 'b' ? "(?=" : "(?!";
      return emit("(?:(?<=" + word + ")" + same + word + ")|(?<!" + word + ")" + other + word +
                  "))");
    }
    case 'u':
    case 'x':
      return hexEscape(inClass);
    case 'p':
    case 'P': {
      size_t end = in.find('}', at);
      if (at + 2 >= in.size() || in[at + 2] != '{' || end == std::string_view::npos)
        return fail("a property in braces is missing");
      width = end + 1 - at;
      std::string_view name = in.substr(at + 3, end - at - 3);
      bool negated = name.starts_with('^');
      name.remove_prefix(negated);
      if (!std::all_of(name.begin(), name.end(), [](char ch) {
            return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_' || ch == ' ';
          }))
        return fail("this property is not supported");
      return emit("\\" + std::string(1, c) + (negated ? "{^" : "{") +
                  (isScript(name) ? "sc:" : "") + std::string(name) + "}");
    }
    case 'd':
    case 'D':
    case 'n':
    case 'r':
    case 't':
    case 'f':
    case 'a':
    case 'e':
      return emit(in.substr(at, 2));
    case 'A':
    case 'z':
    case 'Z':
    case 'R':
      return inClass ? fail("an escape that a character class can't have") : emit(in.substr(at, 2));
    default:
      if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
        return fail("the escape '\\" + std::string(1, c) + "' is not supported");
      if (static_cast<uint8_t>(c) >= 0x80)
        return emit(in.substr(at + 1, width - 1)); // itself
      return emit(in.substr(at, 2));
    }
  }

  Status hexEscape(bool inClass) {
    size_t end = at + 2;
    bool braces = end < in.size() && in[end] == '{';
    size_t wanted = in[at + 1] == 'u' ? 4 : 2;
    if (braces)
      ++end;
    uint32_t value = 0;
    size_t count = 0;
    for (; end < in.size() && count < (braces ? 8 : wanted); ++end, ++count) {
      char c = in[end];
      int digit = c >= '0' && c <= '9'   ? c - '0'
                  : c >= 'a' && c <= 'f' ? c - 'a' + 10
                  : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                         : -1;
      if (digit < 0)
        break;
      value = value << 4 | static_cast<uint32_t>(digit);
    }
    bool closed = !braces || (end < in.size() && in[end] == '}');
    // Without braces \x names a byte, which is a character only below 0x80.
    bool character = value <= 0x10FFFF && !(value >= 0xD800 && value <= 0xDFFF) &&
                     (braces || wanted == 4 || value < 0x80);
    if (!count || !closed || !character || (!braces && wanted == 4 && count != 4))
      return fail("a hexadecimal escape that is no character");
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    do {
      text.insert(text.begin(), kDigits[value & 15]);
    } while (value >>= 4);
    text = "\\x{" + text + "}";
    if (inClass)
      out += text;
    else
      atom(text);
    at = end + (braces ? 1 : 0);
    return Status::ok();
  }

  std::string_view in;
  size_t at = 0;
  std::string out;
  std::vector<Group> groups;
  std::optional<size_t> atomStart; ///< where what a quantifier would repeat begins in `out`
};

} // namespace

Result<std::string> translatePattern(std::string_view pattern) { return Translator(pattern).run(); }

} // namespace llmrt
