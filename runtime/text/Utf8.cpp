#include "runtime/text/Utf8.h"

#include <cstring>

namespace llmrt {

Utf8Step decodeUtf8(std::string_view text, size_t at) {
  auto byteAt = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  uint8_t lead = byteAt(at);
  Utf8Step step;
  step.size = 1;
  if (lead < 0x80) {
    step.codePoint = lead;
    step.valid = true;
    return step;
  }
  // The second byte's range excludes overlong forms, surrogates and values above U+10FFFF.
  uint8_t low = 0x80, high = 0xBF;
  unsigned length;
  char32_t value;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
    value = lead & 0x1F;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    value = lead & 0x0F;
    if (lead == 0xE0)
      low = 0xA0;
    else if (lead == 0xED)
      high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    value = lead & 0x07;
    if (lead == 0xF0)
      low = 0x90;
    else if (lead == 0xF4)
      high = 0x8F;
  } else {
    return step;
  }
  for (unsigned i = 1; i < length; ++i) {
    if (at + i >= text.size()) {
      step.partial = true;
      return step;
    }
    uint8_t byte = byteAt(at + i);
    if (byte < low || byte > high)
      return step;
    value = value << 6 | (byte & 0x3F);
    low = 0x80;
    high = 0xBF;
    step.size = static_cast<uint8_t>(i + 1);
  }
  step.codePoint = value;
  step.valid = true;
  return step;
}

void appendUtf8(std::string &out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

std::optional<size_t> firstInvalidUtf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    uint64_t word;
    while (at + 8 <= text.size()) {
      std::memcpy(&word, text.data() + at, 8);
      if (word & 0x8080808080808080u)
        break;
      at += 8;
    }
    if (at == text.size())
      break;
    Utf8Step step = decodeUtf8(text, at);
    if (!step.valid)
      return at;
    at += step.size;
  }
  return std::nullopt;
}

std::string repairUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  size_t at = 0;
  while (at < text.size()) {
    size_t good = firstInvalidUtf8(text.substr(at)).value_or(text.size() - at);
    out.append(text, at, good);
    at += good;
    if (at == text.size())
      break;
    at += decodeUtf8(text, at).size;
    appendUtf8(out, kReplacementCharacter);
  }
  return out;
}

} // namespace llmrt
