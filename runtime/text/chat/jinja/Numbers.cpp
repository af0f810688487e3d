//===- Numbers.cpp - numbers to and from text, as Python writes them -----------===//
#include "runtime/text/chat/jinja/Unicode.h"
#include "runtime/text/chat/jinja/ValueText.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace llmrt::jinja {

std::string formatInt(Int value, unsigned base) {
  unsigned __int128 rest =
      value < 0 ? -static_cast<unsigned __int128>(value) : static_cast<unsigned __int128>(value);
  std::string digits;
  do {
    digits += "0123456789abcdef"[static_cast<unsigned>(rest % base)];
    rest /= base;
  } while (rest != 0);
  if (value < 0)
    digits += '-';
  std::reverse(digits.begin(), digits.end());
  return digits;
}

std::string formatFloat(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  char buffer[64];
  auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  std::string_view text(buffer, static_cast<size_t>(end - buffer)); // d.ddde+XX
  bool negative = text[0] == '-';
  if (negative)
    text.remove_prefix(1);
  size_t e = text.find('e');
  int exponent = 0;
  const char *first = text.data() + e + 1 + (text[e + 1] == '+');
  std::from_chars(first, text.data() + text.size(), exponent);
  std::string digits(text.substr(0, 1));
  if (e > 2)
    digits += text.substr(2, e - 2);

  std::string out = negative ? "-" : "";
  const int n = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (n > 1)
      out += "." + digits.substr(1);
    out += exponent < 0 ? "e-" : "e+";
    int magnitude = std::abs(exponent);
    if (magnitude < 10)
      out += '0';
    return out + std::to_string(magnitude);
  }
  if (exponent < 0)
    return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  if (n <= exponent + 1)
    return out + digits + std::string(static_cast<size_t>(exponent + 1 - n), '0') + ".0";
  return out + digits.substr(0, static_cast<size_t>(exponent) + 1) + "." +
         digits.substr(static_cast<size_t>(exponent) + 1);
}

static int digitValue(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'z')
    return c - 'a' + 10;
  if (c >= 'A' && c <= 'Z')
    return c - 'A' + 10;
  return 99;
}

std::optional<Int> parseInt(std::string_view text, int base, bool &overflow) {
  overflow = false;
  text = stripSpace(text, true, true);
  bool negative = false;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  bool prefixed = false;
  if (text.size() >= 2 && text[0] == '0') {
    int implied = 0;
    switch (text[1] | 0x20) {
    case 'x':
      implied = 16;
      break;
    case 'o':
      implied = 8;
      break;
    case 'b':
      implied = 2;
      break;
    default:
      break;
    }
    if (implied && (base == implied || base == 0)) {
      base = implied;
      text.remove_prefix(2);
      prefixed = true;
    }
  }
  const bool noLeadingZero = base == 0;
  if (base == 0)
    base = 10;
  if (text.empty())
    return std::nullopt;
  Int value = 0;
  bool lastUnderscore = !prefixed; // an underscore may follow a prefix, not begin a number
  bool nonZero = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '_') {
      if (lastUnderscore || i + 1 == text.size())
        return std::nullopt;
      lastUnderscore = true;
      continue;
    }
    lastUnderscore = false;
    int digit = digitValue(text[i]);
    if (digit >= base)
      return std::nullopt;
    nonZero |= digit != 0;
    if (!overflow && (__builtin_mul_overflow(value, Int(base), &value) ||
                      __builtin_add_overflow(value, Int(digit), &value)))
      overflow = true;
  }
  if (noLeadingZero && text[0] == '0' && nonZero)
    return std::nullopt;
  return negative ? -value : value;
}

std::optional<double> parseFloat(std::string_view text) {
  text = stripSpace(text, true, true);
  std::string clean;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '_') {
      auto digit = [&](size_t k) { return k < text.size() && text[k] >= '0' && text[k] <= '9'; };
      if (i == 0 || !digit(i - 1) || !digit(i + 1))
        return std::nullopt;
      continue;
    }
    clean += text[i];
  }
  const char *first = clean.data(), *last = first + clean.size();
  bool negative = first != last && *first == '-';
  if (first != last && (*first == '+' || *first == '-'))
    ++first;
  if (first == last)
    return std::nullopt;
  std::string lower;
  for (const char *p = first; p != last && lower.size() < 9; ++p)
    lower += static_cast<char>(*p >= 'A' && *p <= 'Z' ? *p + 32 : *p);
  double value = 0;
  if (lower == "inf" || lower == "infinity") {
    value = std::numeric_limits<double>::infinity();
  } else if (lower == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    if (!((*first >= '0' && *first <= '9') || *first == '.'))
      return std::nullopt;
    auto [end, error] = std::from_chars(first, last, value);
    if (end != last)
      return std::nullopt;
    if (error == std::errc::result_out_of_range) {
      // from_chars leaves the value alone; the exponent's sign tells which way it went.
      size_t e = lower.npos;
      std::string_view all(first, static_cast<size_t>(last - first));
      e = all.find_first_of("eE");
      value = e != all.npos && all[e + 1] == '-' ? 0.0 : std::numeric_limits<double>::infinity();
    } else if (error != std::errc()) {
      return std::nullopt;
    }
  }
  return negative ? -value : value;
}

} // namespace llmrt::jinja
