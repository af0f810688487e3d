//===- Utf8.h - decoding, checking and repairing UTF-8 ------------------------===//
//
// The one place that knows what well-formed UTF-8 is (Unicode 15, table 3-7: no overlong
// forms, no surrogates, nothing above U+10FFFF). Ill-formed input is cut into "maximal
// subparts" (Unicode 15, section 3.9), one U+FFFD each, as Python, Rust and browsers do it.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_TEXT_UTF8_H
#define LLMRT_TEXT_UTF8_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace llmrt {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;

/// One step of decoding.
struct Utf8Step {
  char32_t codePoint = kReplacementCharacter;
  uint8_t size = 0;     ///< bytes to advance: the character's, or those of the maximal subpart
  bool valid = false;   ///< a well-formed character
  bool partial = false; ///< ill-formed only because the text ends: more bytes could complete it
};

/// Decodes the character that starts at \p at; \p at < text.size().
Utf8Step decodeUtf8(std::string_view text, size_t at);

/// Appends \p codePoint (a scalar value) to \p out.
void appendUtf8(std::string &out, char32_t codePoint);

/// The offset of the first byte that is not part of a well-formed character.
std::optional<size_t> firstInvalidUtf8(std::string_view text);

/// \p text with each maximal ill-formed subpart replaced by U+FFFD.
std::string repairUtf8(std::string_view text);

/// The bytes of the character at \p at of well-formed text.
inline size_t utf8Width(std::string_view text, size_t at) {
  auto byte = static_cast<uint8_t>(text[at]);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

} // namespace llmrt

#endif // LLMRT_TEXT_UTF8_H
