#include "runtime/text/Unicode.h"

#include "runtime/text/Utf8.h"

#include <algorithm>
#include <utf8proc.h>
#include <vector>

namespace llmrt {

bool isUnicodeSpace(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

static utf8proc_category_t categoryOf(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool isUnicodeMark(char32_t c) {
  utf8proc_category_t category = categoryOf(c);
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
         category == UTF8PROC_CATEGORY_ME;
}

bool isUnicodeNonspacingMark(char32_t c) { return categoryOf(c) == UTF8PROC_CATEGORY_MN; }

bool isUnicodeOther(char32_t c) {
  switch (categoryOf(c)) {
  case UTF8PROC_CATEGORY_CC:
  case UTF8PROC_CATEGORY_CF:
  case UTF8PROC_CATEGORY_CS:
  case UTF8PROC_CATEGORY_CO:
    return true;
  default:
    return false;
  }
}

bool isBertCjk(char32_t c) {
  // The gap between 2B81F and 2B920 is part of the rule.
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

bool isUnicodeWord(char32_t c) {
  if (c < 0x80)
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
  switch (categoryOf(c)) {
  case UTF8PROC_CATEGORY_LU:
  case UTF8PROC_CATEGORY_LL:
  case UTF8PROC_CATEGORY_LT:
  case UTF8PROC_CATEGORY_LM:
  case UTF8PROC_CATEGORY_LO:
  case UTF8PROC_CATEGORY_MN:
  case UTF8PROC_CATEGORY_MC:
  case UTF8PROC_CATEGORY_ME:
  case UTF8PROC_CATEGORY_ND:
  case UTF8PROC_CATEGORY_NL:
  case UTF8PROC_CATEGORY_PC:
    return true;
  case UTF8PROC_CATEGORY_SO: // the circled and squared letters have Other_Alphabetic
    return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
           (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
  default:
    return c == 0x200C || c == 0x200D; // Join_Control
  }
}

static bool isAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<uint8_t>(c) < 0x80; });
}

std::string normalizeUnicode(std::string_view text, NormalForm form) {
  if (isAscii(text))
    return std::string(text);
  bool compatibility = form == NormalForm::Nfkc || form == NormalForm::Nfkd;
  bool compose = form == NormalForm::Nfc || form == NormalForm::Nfkc;
  auto options =
      static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | (compatibility ? UTF8PROC_COMPAT : 0));

  std::vector<utf8proc_int32_t> points;
  points.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    Utf8Step step = decodeUtf8(text, at);
    at += step.size;
    utf8proc_int32_t decomposed[32]; // the longest decomposition has 18 characters
    int boundClass = 0;
    utf8proc_ssize_t count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(step.codePoint),
                                                     decomposed, 32, options, &boundClass);
    if (count < 1 || count > 32)
      points.push_back(static_cast<utf8proc_int32_t>(step.codePoint));
    else
      points.insert(points.end(), decomposed, decomposed + count);
  }

  // Canonical ordering: a stable sort of every run of characters with a combining class.
  auto combiningClass = [](utf8proc_int32_t c) {
    return c < 0x300 ? 0 : utf8proc_get_property(c)->combining_class;
  };
  struct Mark {
    int combiningClass;
    size_t place;
    utf8proc_int32_t codePoint;
  };
  std::vector<Mark> run;
  for (size_t i = 0; i < points.size();) {
    if (!combiningClass(points[i])) {
      ++i;
      continue;
    }
    size_t end = i + 1;
    while (end < points.size() && combiningClass(points[end]))
      ++end;
    run.clear();
    for (size_t k = i; k < end; ++k)
      run.push_back({combiningClass(points[k]), k, points[k]});
    std::sort(run.begin(), run.end(), [](const Mark &a, const Mark &b) {
      return std::pair(a.combiningClass, a.place) < std::pair(b.combiningClass, b.place);
    });
    for (size_t k = i; k < end; ++k)
      points[k] = run[k - i].codePoint;
    i = end;
  }
  if (compose) {
    utf8proc_ssize_t count = utf8proc_normalize_utf32(
        points.data(), static_cast<utf8proc_ssize_t>(points.size()),
        static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
    if (count >= 0)
      points.resize(static_cast<size_t>(count));
  }
  std::string out;
  out.reserve(text.size());
  for (utf8proc_int32_t c : points)
    appendUtf8(out, static_cast<char32_t>(c));
  return out;
}

std::string lowercaseUnicode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    Utf8Step step = decodeUtf8(text, at);
    at += step.size;
    if (step.codePoint < 0x80) {
      auto c = static_cast<char>(step.codePoint);
      out += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    } else if (step.codePoint == 0x130) { // the only character with a longer lower case
      out += "i\u0307";
    } else {
      appendUtf8(out, static_cast<char32_t>(
                          utf8proc_tolower(static_cast<utf8proc_int32_t>(step.codePoint))));
    }
  }
  return out;
}

} // namespace llmrt
