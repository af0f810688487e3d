//===- Unicode.h - character classes and normalization forms -------------------===//
//
// What tokenizers ask of Unicode beyond UTF-8, on top of utf8proc. The definitions follow
// the Rust standard library and the `regex` crate, because the tokenizer.json format means
// what its Rust implementation does.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_TEXT_UNICODE_H
#define LLMRT_TEXT_UNICODE_H

#include <string>
#include <string_view>

namespace llmrt {

/// The White_Space property.
bool isUnicodeSpace(char32_t c);
/// General category M (combining marks: Mn, Mc, Me).
bool isUnicodeMark(char32_t c);
/// General category Mn.
bool isUnicodeNonspacingMark(char32_t c);
/// General category C without what is unassigned: controls, formats, surrogates, private use.
bool isUnicodeOther(char32_t c);
/// The Chinese characters that BERT puts spaces around.
bool isBertCjk(char32_t c);
/// What `\w` means in a Unicode regular expression (UTS #18, annex C): letters, marks,
/// decimal digits, connectors and joiners.
bool isUnicodeWord(char32_t c);

enum class NormalForm { Nfc, Nfd, Nfkc, Nfkd };

/// \p text (well-formed) in the given form. Linear but for sorting runs of combining marks,
/// which is n log n, so that hostile runs cost nothing special.
std::string normalizeUnicode(std::string_view text, NormalForm form);

/// Each character's full lower-case mapping, without context rules.
std::string lowercaseUnicode(std::string_view text);

} // namespace llmrt

#endif // LLMRT_TEXT_UNICODE_H
