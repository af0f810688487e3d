#include "runtime/text/chat/jinja/NumberFormat.h"

#include "runtime/text/chat/jinja/Unicode.h"
#include "runtime/text/chat/jinja/ValueText.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace llmrt::jinja {

/// No double needs more digits: beyond them there are only zeros.
static constexpr Int maxPrecision = 1100;

std::string pad(Session &session, std::string_view text, Int width, std::string_view fill,
                char align) {
  Int missing = width - static_cast<Int>(countCodePoints(text));
  if (missing <= 0)
    return std::string(text);
  session.step(static_cast<uint64_t>(std::min(missing, Int(1) << 40)) / 64);
  Int left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  TextBuilder out(session);
  out.repeat(fill, left).append(text).repeat(fill, missing - left);
  return out.take();
}

std::string formatDouble(Session &session, double value, char type, Int precision) {
  const bool upper = type >= 'A' && type <= 'Z';
  std::string out;
  if (std::isnan(value)) {
    out = "nan";
  } else if (std::isinf(value)) {
    out = value < 0 ? "-inf" : "inf";
  } else {
    if (precision > maxPrecision)
      session.fail("the precision of a format is too large");
    const char lower = static_cast<char>(type | 0x20);
    auto format = lower == 'e'   ? std::chars_format::scientific
                  : lower == 'g' ? std::chars_format::general
                                 : std::chars_format::fixed;
    char buffer[maxPrecision + 400];
    auto result = std::to_chars(buffer, buffer + sizeof buffer, value, format,
                                static_cast<int>(lower == 'g' && precision == 0 ? 1 : precision));
    out.assign(buffer, result.ptr);
  }
  if (upper)
    for (char &c : out)
      c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  return out;
}

/// Puts \p separator between groups of \p size digits of the leading digits of \p digits.
static std::string group(std::string_view digits, char separator, size_t size) {
  size_t whole = 0;
  while (whole < digits.size() &&
         std::string_view(".eE%").find(digits[whole]) == std::string_view::npos)
    ++whole;
  std::string out;
  for (size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % size == 0)
      out += separator;
    out += digits[i];
  }
  return out.append(digits.substr(whole));
}

static bool isIntegerType(char type) {
  return type != 0 && std::string_view("bcdoxXn").find(type) != std::string_view::npos;
}

static std::string integerDigits(Session &session, const FormatSpec &spec, Int magnitude,
                                 std::string &prefix) {
  switch (spec.type) {
  case 'b':
    prefix = spec.alternate ? "0b" : "";
    return formatInt(magnitude, 2);
  case 'o':
    prefix = spec.alternate ? "0o" : "";
    return formatInt(magnitude, 8);
  case 'x':
  case 'X': {
    prefix = spec.alternate ? (spec.type == 'x' ? "0x" : "0X") : "";
    std::string digits = formatInt(magnitude, 16);
    return spec.type == 'X' ? toUpper(digits) : digits;
  }
  case 'c': {
    if (magnitude > 0x10FFFF || (magnitude >= 0xD800 && magnitude <= 0xDFFF))
      session.fail("the format 'c' needs the number of a Unicode character");
    std::string text;
    appendCodePoint(text, static_cast<uint32_t>(magnitude));
    return text;
  }
  default:
    return formatInt(magnitude);
  }
}

static std::string floatDigits(Session &session, const FormatSpec &spec, double magnitude) {
  if (spec.type == '%')
    return formatDouble(session, magnitude * 100, 'f', spec.precision.value_or(6)) + "%";
  if (spec.type != 0)
    return formatDouble(session, magnitude, spec.type == 'n' ? 'g' : spec.type,
                        spec.precision.value_or(6));
  if (!spec.precision)
    return formatFloat(magnitude);
  // Without a type: like 'g', but always seen to be a float, and with an exponent one digit sooner.
  const Int precision = std::max(*spec.precision, Int(1));
  std::string scientific = formatDouble(session, magnitude, 'e', precision - 1);
  size_t e = scientific.find('e');
  if (e == scientific.npos || std::isinf(magnitude))
    return scientific;
  int exponent = 0;
  std::from_chars(scientific.data() + e + 1 + (scientific[e + 1] == '+'),
                  scientific.data() + scientific.size(), exponent);
  auto trimmed = [](std::string digits) {
    if (digits.find('.') != digits.npos)
      digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.ends_with('.'))
      digits.pop_back();
    return digits;
  };
  if (exponent < -4 || exponent + 1 > precision - 1)
    return trimmed(scientific.substr(0, e)) + scientific.substr(e);
  std::string fixed = trimmed(formatDouble(session, magnitude, 'f', precision - 1 - exponent));
  return fixed.find('.') == fixed.npos ? fixed + ".0" : fixed;
}

std::string formatNumber(Session &session, const FormatSpec &spec, const Value &value) {
  if (spec.type == 's')
    session.fail("the format 's' needs a string, not a number");
  const bool integral = value.isIntegral() && (spec.type == 0 || isIntegerType(spec.type));
  if (!integral && isIntegerType(spec.type) && spec.type != 'n')
    session.fail(std::string("the format '") + spec.type + "' needs a whole number, not a " +
                 typeName(value));
  std::string sign, prefix, digits;
  if (integral) {
    if (spec.precision)
      session.fail("a whole number can't have a precision");
    Int i = value.asInt();
    sign = i < 0 ? "-" : "";
    digits = integerDigits(session, spec, i < 0 ? -i : i, prefix);
  } else {
    double d = value.asDouble();
    sign = std::signbit(d) && !std::isnan(d) ? "-" : "";
    digits = floatDigits(session, spec, std::fabs(d));
  }
  if (sign.empty() && spec.sign != '-')
    sign = spec.sign;
  if (spec.grouping) {
    const bool binary =
        spec.type == 'b' || spec.type == 'o' || spec.type == 'x' || spec.type == 'X';
    digits = group(digits, spec.grouping, binary ? 4 : 3);
  }
  const char align = spec.align ? spec.align : '>';
  if (align != '=')
    return pad(session, sign + prefix + digits, spec.width, spec.fill, align);
  Int width = spec.width - static_cast<Int>(sign.size() + prefix.size());
  if (spec.grouping && spec.fill == "0") {
    // The zeros are grouped too, and a group never begins with a separator.
    while (static_cast<Int>(digits.size()) < width) {
      std::string plain = digits;
      plain.erase(std::remove(plain.begin(), plain.end(), spec.grouping), plain.end());
      session.step();
      session.checkRoom(plain.size() * 2);
      digits = group("0" + plain, spec.grouping, 3);
    }
  }
  return sign + prefix + pad(session, digits, width, spec.fill, '>');
}

std::string formatText(Session &session, const FormatSpec &spec, std::string_view text) {
  if (spec.precision && *spec.precision < static_cast<Int>(text.size()))
    text = text.substr(0, byteOffset(text, static_cast<size_t>(*spec.precision)));
  return pad(session, text, spec.width, spec.fill, spec.align ? spec.align : '<');
}

std::string formatValue(Session &session, const FormatSpec &spec, const Value &value) {
  const bool plain = spec.type == 0 && spec.width == 0 && !spec.precision && spec.sign == '-' &&
                     !spec.alternate && !spec.grouping;
  if (value.isNumber() && !(value.is(Kind::Bool) && plain))
    return formatNumber(session, spec, value);
  if (value.isString() || plain) {
    if (spec.type != 0 && spec.type != 's')
      session.fail(std::string("the format '") + spec.type + "' needs a number, not a " +
                   typeName(value));
    if (spec.align == '=' || spec.sign != '-' || spec.alternate || spec.grouping)
      session.fail("a sign, '=', '#' or a grouping needs a number, not a string");
    return formatText(session, spec, strOf(session, value));
  }
  if (value.isUndefined())
    session.failUndefined(value);
  session.fail(std::string("a ") + typeName(value) + " takes no format specification");
}

static Int parseCount(Session &session, std::string_view text, size_t &i) {
  Int n = 0;
  for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
    n = n * 10 + (text[i] - '0');
    if (n > (Int(1) << 40))
      session.fail("a number in a format is too large");
  }
  return n;
}

FormatSpec parseFormatSpec(Session &session, std::string_view text) {
  FormatSpec spec;
  auto isAlign = [&](size_t at) {
    return at < text.size() && std::string_view("<>^=").find(text[at]) != std::string_view::npos;
  };
  size_t i = 0;
  bool explicitFill = false;
  if (!text.empty()) {
    size_t first = decodeAt(text, 0).size;
    if (isAlign(first)) {
      spec.fill = std::string(text.substr(0, first));
      spec.align = text[first];
      i = first + 1;
      explicitFill = true;
    } else if (isAlign(0)) {
      spec.align = text[i++];
    }
  }
  if (i < text.size() && (text[i] == '+' || text[i] == '-' || text[i] == ' '))
    spec.sign = text[i++];
  if (i < text.size() && text[i] == '#') {
    spec.alternate = true;
    ++i;
  }
  bool zero = false;
  if (i < text.size() && text[i] == '0') {
    zero = true;
    ++i;
  }
  spec.width = parseCount(session, text, i);
  if (i < text.size() && (text[i] == ',' || text[i] == '_'))
    spec.grouping = text[i++];
  if (i < text.size() && text[i] == '.') {
    size_t before = ++i;
    spec.precision = parseCount(session, text, i);
    if (i == before)
      session.fail("a format has no precision after its '.'");
  }
  if (i < text.size())
    spec.type = text[i++];
  if (i != text.size() ||
      (spec.type && std::string_view("bcdoxXneEfFgG%s").find(spec.type) == std::string_view::npos))
    session.fail("'" + std::string(text.substr(0, 50)) + "' is no format specification");
  if (zero && !explicitFill) {
    spec.fill = "0";
    if (!spec.align)
      spec.align = '=';
  }
  return spec;
}

} // namespace llmrt::jinja
