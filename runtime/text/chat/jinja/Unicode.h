//===- Unicode.h - strings as Python sees them, over UTF-8 --------------------===//
//
// Templates are written for Python, whose strings are sequences of code points. Here text is
// UTF-8; these helpers count, cut and classify by code point. A byte that belongs to no valid
// sequence counts as one code point, so that no input can break an index.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_TEXT_CHAT_JINJA_UNICODE_H
#define LLMRT_TEXT_CHAT_JINJA_UNICODE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace llmrt::jinja {

/// One decoded code point; \p size is the number of bytes it takes (at least 1).
struct CodePoint {
  int32_t value; ///< -1 for a stray byte
  unsigned size;
};

CodePoint decodeAt(std::string_view text, size_t offset);
void appendCodePoint(std::string &out, uint32_t codePoint);
bool isValidUtf8(std::string_view text);

/// The number of code points.
size_t countCodePoints(std::string_view text);
/// The byte offset of code point \p index, or text.size() when there are fewer.
size_t byteOffset(std::string_view text, size_t index);

/// str.isspace() of one code point; also what \s matches.
bool isSpace(int32_t codePoint);
bool isAlpha(int32_t codePoint);
bool isDecimal(int32_t codePoint);
bool isDigit(int32_t codePoint);
bool isNumeric(int32_t codePoint);
bool isUpper(int32_t codePoint);
bool isLower(int32_t codePoint);
bool isPrintable(int32_t codePoint);
inline bool isAlnum(int32_t c) { return isAlpha(c) || isDecimal(c) || isDigit(c) || isNumeric(c); }

std::string toUpper(std::string_view text);
std::string toLower(std::string_view text);
/// The first code point in title case, the others lowered.
std::string capitalize(std::string_view text);
/// str.title(): a letter after a non-letter is in title case, the others lowered.
std::string titleCase(std::string_view text);
std::string swapCase(std::string_view text);
std::string caseFold(std::string_view text);

/// Text without white space at its left or right end.
std::string_view stripSpace(std::string_view text, bool left, bool right);
/// Text without the code points in \p set at its left or right end.
std::string_view stripSet(std::string_view text, std::string_view set, bool left, bool right);

/// str.splitlines().
std::vector<std::string_view> splitLines(std::string_view text, bool keepEnds);

/// Linear-time search; npos when absent.
size_t findText(std::string_view text, std::string_view what, size_t from = 0);

} // namespace llmrt::jinja

#endif // LLMRT_TEXT_CHAT_JINJA_UNICODE_H
