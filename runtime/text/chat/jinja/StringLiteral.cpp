#include "runtime/text/chat/jinja/StringLiteral.h"

#include "runtime/text/chat/jinja/Unicode.h"

#include <cstdio>

namespace llmrt::jinja {

static int hexValue(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  c |= 0x20;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/// Reads \p digits hexadecimal digits at \p i.
static bool readHex(std::string_view body, size_t &i, int digits, uint32_t &value) {
  value = 0;
  for (int k = 0; k < digits; ++k, ++i) {
    int d = i < body.size() ? hexValue(body[i]) : -1;
    if (d < 0)
      return false;
    value = value * 16 + static_cast<uint32_t>(d);
  }
  return true;
}

static bool appendScalar(std::string &out, uint32_t value, std::string &error) {
  if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) {
    error = "a string escape names no Unicode character";
    return false;
  }
  appendCodePoint(out, value);
  return true;
}

std::optional<std::string> unescapeLiteral(std::string_view body, std::string &error) {
  std::string out;
  out.reserve(body.size());
  for (size_t i = 0; i < body.size();) {
    if (body[i] != '\\') {
      out += body[i++];
      continue;
    }
    ++i; // the lexer never ends a literal on a lone backslash
    const char c = body[i++];
    switch (c) {
    case '\n':
      break;
    case '\\':
    case '\'':
    case '"':
      out += c;
      break;
    case 'a':
      out += '\a';
      break;
    case 'b':
      out += '\b';
      break;
    case 'f':
      out += '\f';
      break;
    case 'n':
      out += '\n';
      break;
    case 'r':
      out += '\r';
      break;
    case 't':
      out += '\t';
      break;
    case 'v':
      out += '\v';
      break;
    case 'x':
    case 'u':
    case 'U': {
      uint32_t value;
      if (!readHex(body, i, c == 'x' ? 2 : c == 'u' ? 4 : 8, value)) {
        error = std::string("a string has a '\\") + c + "' escape that is too short";
        return std::nullopt;
      }
      if (!appendScalar(out, value, error))
        return std::nullopt;
      break;
    }
    case 'N':
      error = "'\\N{...}' escapes are not supported; write the character or a '\\u' escape";
      return std::nullopt;
    default:
      if (c >= '0' && c <= '7') {
        uint32_t value = static_cast<uint32_t>(c - '0');
        for (int k = 0; k < 2 && i < body.size() && body[i] >= '0' && body[i] <= '7'; ++k)
          value = value * 8 + static_cast<uint32_t>(body[i++] - '0');
        appendCodePoint(out, value);
      } else if (static_cast<unsigned char>(c) >= 0x80) {
        // Jinja turns other characters into escapes before it reads the escapes, so that a
        // backslash before one of them leaves that escape's text.
        CodePoint p = decodeAt(body, i - 1);
        char hex[16];
        uint32_t v = static_cast<uint32_t>(p.value);
        std::snprintf(hex, sizeof hex,
                      v < 0x100     ? "\\x%02x"
                      : v < 0x10000 ? "\\u%04x"
                                    : "\\U%08x",
                      v);
        out += hex;
        i += p.size - 1;
      } else {
        out += '\\';
        out += c;
      }
    }
  }
  return out;
}

} // namespace llmrt::jinja
