#include "runtime/text/chat/jinja/Unicode.h"

#include <array>
#include <cstring>
#include <utf8proc.h>
#include <utility>

namespace llmrt::jinja {

CodePoint decodeAt(std::string_view text, size_t offset) {
  unsigned char first = static_cast<unsigned char>(text[offset]);
  if (first < 0x80)
    return {first, 1};
  utf8proc_int32_t value = -1;
  utf8proc_ssize_t size =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t *>(text.data()) + offset,
                       static_cast<utf8proc_ssize_t>(text.size() - offset), &value);
  if (size <= 0)
    return {-1, 1};
  return {value, static_cast<unsigned>(size)};
}

void appendCodePoint(std::string &out, uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

bool isValidUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    CodePoint c = decodeAt(text, i);
    if (c.value < 0)
      return false;
    i += c.size;
  }
  return true;
}

static bool isAscii(std::string_view text) {
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + i, 8);
    if (word & 0x8080808080808080ull)
      return false;
  }
  for (; i < text.size(); ++i)
    if (static_cast<unsigned char>(text[i]) >= 0x80)
      return false;
  return true;
}

size_t countCodePoints(std::string_view text) {
  if (isAscii(text))
    return text.size();
  size_t count = 0;
  for (size_t i = 0; i < text.size(); ++count)
    i += decodeAt(text, i).size;
  return count;
}

size_t byteOffset(std::string_view text, size_t index) {
  size_t offset = 0;
  while (index > 0 && offset < text.size()) {
    offset += decodeAt(text, offset).size;
    --index;
  }
  return offset;
}

bool isSpace(int32_t c) {
  if (c < 0x80)
    return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

static utf8proc_category_t category(int32_t c) {
  return c < 0 ? UTF8PROC_CATEGORY_CN : utf8proc_category(c);
}

bool isAlpha(int32_t c) {
  switch (category(c)) {
  case UTF8PROC_CATEGORY_LU:
  case UTF8PROC_CATEGORY_LL:
  case UTF8PROC_CATEGORY_LT:
  case UTF8PROC_CATEGORY_LM:
  case UTF8PROC_CATEGORY_LO:
    return true;
  default:
    return false;
  }
}

bool isDecimal(int32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }

bool isDigit(int32_t c) {
  // Beyond the decimal digits: superscripts, subscripts and circled digits (Numeric_Type=Digit).
  return isDecimal(c) || c == 0xB2 || c == 0xB3 || c == 0xB9 || c == 0x2070 ||
         (c >= 0x2074 && c <= 0x2079) || (c >= 0x2080 && c <= 0x2089) ||
         (c >= 0x2460 && c <= 0x2468) || (c >= 0x2474 && c <= 0x247C) ||
         (c >= 0x2488 && c <= 0x2490);
}

bool isNumeric(int32_t c) {
  utf8proc_category_t k = category(c);
  return k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO;
}

bool isUpper(int32_t c) { return c >= 0 && utf8proc_isupper(c); }
bool isLower(int32_t c) { return c >= 0 && utf8proc_islower(c); }

bool isPrintable(int32_t c) {
  if (c < 0x80)
    return c >= 0x20 && c < 0x7F;
  switch (category(c)) {
  case UTF8PROC_CATEGORY_CC:
  case UTF8PROC_CATEGORY_CF:
  case UTF8PROC_CATEGORY_CS:
  case UTF8PROC_CATEGORY_CO:
  case UTF8PROC_CATEGORY_CN:
  case UTF8PROC_CATEGORY_ZL:
  case UTF8PROC_CATEGORY_ZP:
  case UTF8PROC_CATEGORY_ZS:
    return false;
  default:
    return true;
  }
}

namespace {
/// Code points whose upper or title case is more than one code point (Unicode SpecialCasing.txt,
/// the entries without conditions for Latin and Armenian letters).
struct SpecialCase {
  int32_t from;
  const char *upper, *title;
};
constexpr std::array<SpecialCase, 15> specialCases = {{{0xDF, "SS", "Ss"},
                                                       {0x149, "\u02BCN", "\u02BCN"},
                                                       {0x1F0, "J\u030C", "J\u030C"},
                                                       {0x587, "\u0535\u0552", "\u0535\u0582"},
                                                       {0x1E96, "H\u0331", "H\u0331"},
                                                       {0x1E97, "T\u0308", "T\u0308"},
                                                       {0x1E98, "W\u030A", "W\u030A"},
                                                       {0x1E99, "Y\u030A", "Y\u030A"},
                                                       {0xFB00, "FF", "Ff"},
                                                       {0xFB01, "FI", "Fi"},
                                                       {0xFB02, "FL", "Fl"},
                                                       {0xFB03, "FFI", "Ffi"},
                                                       {0xFB04, "FFL", "Ffl"},
                                                       {0xFB05, "ST", "St"},
                                                       {0xFB06, "ST", "St"}}};

enum class Case { Upper, Lower, Title };

void appendCased(std::string &out, std::string_view text, size_t at, CodePoint c, Case which) {
  if (c.value < 0) {
    out += text[at];
    return;
  }
  if (c.value >= 0x80 && which != Case::Lower)
    for (const SpecialCase &s : specialCases)
      if (s.from == c.value) {
        out += which == Case::Upper ? s.upper : s.title;
        return;
      }
  if (which == Case::Lower && c.value == 0x130) { // I with a dot above
    out += "i\u0307";
    return;
  }
  if (which == Case::Lower && c.value == 0x3A3) {
    // A sigma that ends a word has a form of its own.
    auto cased = [](int32_t v) { return isUpper(v) || isLower(v); };
    bool before = false, after = false;
    if (at > 0) {
      size_t p = at - 1;
      while (p > 0 && (static_cast<unsigned char>(text[p]) & 0xC0) == 0x80)
        --p;
      before = cased(decodeAt(text, p).value);
    }
    if (at + c.size < text.size())
      after = cased(decodeAt(text, at + c.size).value);
    out += before && !after ? "\u03C2" : "\u03C3";
    return;
  }
  int32_t mapped = which == Case::Upper   ? utf8proc_toupper(c.value)
                   : which == Case::Lower ? utf8proc_tolower(c.value)
                                          : utf8proc_totitle(c.value);
  appendCodePoint(out, static_cast<uint32_t>(mapped));
}

template <typename Choose> std::string mapCase(std::string_view text, Choose choose) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    CodePoint c = decodeAt(text, i);
    appendCased(out, text, i, c, choose(c.value));
    i += c.size;
  }
  return out;
}
} // namespace

std::string toUpper(std::string_view text) {
  return mapCase(text, [](int32_t) { return Case::Upper; });
}
std::string toLower(std::string_view text) {
  return mapCase(text, [](int32_t) { return Case::Lower; });
}
std::string capitalize(std::string_view text) {
  bool first = true;
  return mapCase(text,
                 [&](int32_t) { return std::exchange(first, false) ? Case::Title : Case::Lower; });
}
std::string titleCase(std::string_view text) {
  bool inWord = false;
  return mapCase(text, [&](int32_t c) {
    bool cased = isUpper(c) || isLower(c) || (c >= 0 && category(c) == UTF8PROC_CATEGORY_LT);
    return std::exchange(inWord, cased) ? Case::Lower : Case::Title;
  });
}
std::string swapCase(std::string_view text) {
  return mapCase(text, [](int32_t c) { return isUpper(c) ? Case::Lower : Case::Upper; });
}

std::string caseFold(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    CodePoint c = decodeAt(text, i);
    if (c.value < 0) {
      out += text[i];
    } else {
      utf8proc_int32_t folded[8];
      int boundary = 0;
      utf8proc_ssize_t n =
          utf8proc_decompose_char(c.value, folded, 8, UTF8PROC_CASEFOLD, &boundary);
      if (n <= 0 || n > 8)
        appendCodePoint(out, static_cast<uint32_t>(c.value));
      else
        for (utf8proc_ssize_t k = 0; k < n; ++k)
          appendCodePoint(out, static_cast<uint32_t>(folded[k]));
    }
    i += c.size;
  }
  return out;
}

/// The offset where the code point that ends at \p end begins.
static size_t previousStart(std::string_view text, size_t end) {
  size_t p = end - 1;
  while (p > 0 && end - p < 4 && (static_cast<unsigned char>(text[p]) & 0xC0) == 0x80)
    --p;
  return decodeAt(text, p).size == end - p ? p : end - 1;
}

template <typename Match>
static std::string_view stripIf(std::string_view text, bool left, bool right, Match match) {
  size_t begin = 0, end = text.size();
  while (left && begin < end) {
    CodePoint c = decodeAt(text, begin);
    if (!match(begin, c))
      break;
    begin += c.size;
  }
  while (right && begin < end) {
    size_t p = previousStart(text, end);
    if (p < begin || !match(p, decodeAt(text, p)))
      break;
    end = p;
  }
  return text.substr(begin, end - begin);
}

std::string_view stripSpace(std::string_view text, bool left, bool right) {
  return stripIf(text, left, right, [](size_t, CodePoint c) { return isSpace(c.value); });
}

std::string_view stripSet(std::string_view text, std::string_view set, bool left, bool right) {
  return stripIf(text, left, right, [&](size_t at, CodePoint c) {
    for (size_t i = 0; i < set.size();) {
      CodePoint s = decodeAt(set, i);
      if (set.substr(i, s.size) == text.substr(at, c.size))
        return true;
      i += s.size;
    }
    return false;
  });
}

std::vector<std::string_view> splitLines(std::string_view text, bool keepEnds) {
  std::vector<std::string_view> lines;
  size_t start = 0;
  for (size_t i = 0; i < text.size();) {
    CodePoint c = decodeAt(text, i);
    size_t next = i + c.size;
    int32_t v = c.value;
    if ((v >= 0x0A && v <= 0x0D) || (v >= 0x1C && v <= 0x1E) || v == 0x85 || v == 0x2028 ||
        v == 0x2029) {
      if (v == '\r' && next < text.size() && text[next] == '\n')
        ++next;
      lines.push_back(text.substr(start, (keepEnds ? next : i) - start));
      start = next;
    }
    i = next;
  }
  if (start < text.size())
    lines.push_back(text.substr(start));
  return lines;
}

size_t findText(std::string_view text, std::string_view what, size_t from) {
  if (from > text.size())
    return std::string_view::npos;
  if (what.empty())
    return from;
  // memmem keeps its linear bound on repetitive text, which string_view::find does not.
  const void *hit = memmem(text.data() + from, text.size() - from, what.data(), what.size());
  return hit ? static_cast<size_t>(static_cast<const char *>(hit) - text.data())
             : std::string_view::npos;
}

} // namespace llmrt::jinja
