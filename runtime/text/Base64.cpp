#include "runtime/text/Base64.h"

#include <cstdint>

namespace llmrt {

static int valueOf(char c) {
  if (c >= 'A' && c <= 'Z')
    return c - 'A';
  if (c >= 'a' && c <= 'z')
    return c - 'a' + 26;
  if (c >= '0' && c <= '9')
    return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

std::optional<std::string> decodeBase64(std::string_view text) {
  if (text.size() % 4)
    return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=')
    ++padding;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  uint32_t bits = 0, count = 0;
  for (char c : text.substr(0, text.size() - padding)) {
    int value = valueOf(c);
    if (value < 0)
      return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out += static_cast<char>(bits >> count & 0xFF);
    }
  }
  if (bits & ((1u << count) - 1)) // bits that belong to no byte
    return std::nullopt;
  return out;
}

} // namespace llmrt
