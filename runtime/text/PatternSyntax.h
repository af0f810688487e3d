//===- PatternSyntax.h - regular expressions of tokenizer.json for PCRE2 -------===//
//
// tokenizer.json writes its patterns in Oniguruma's Ruby syntax. The two languages look
// alike and differ in silence; this translation keeps the meaning:
//
//   \s \S            White_Space (PCRE2's also has U+180E)
//   \w \W \b \B      alphabetic, marks, decimal digits, connectors (PCRE2's has no marks),
//                    and outside of brackets Latin-1's six other numbers
//   \p{Han}          the script alone (PCRE2: with the characters that scripts share)
//   [[:punct:]] ...  by Unicode's properties, as \s and \w
//   \h \v            a hexadecimal digit, U+000B (PCRE2: classes of white space)
//   x{2}+  x{2}?     a repeated, an optional group (PCRE2: possessive, lazy)
//   (?m:...)         dot matches newline, (?s: in PCRE2
//   a(?i)b|c         the option's group ends at the enclosing one: a(?i:b|c)
//   ^ $              always at line borders
//
// What has no counterpart (nested classes, &&, absent operators, subroutine calls, ...) is an
// error that names it.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_TEXT_PATTERNSYNTAX_H
#define LLMRT_TEXT_PATTERNSYNTAX_H

#include "runtime/support/Status.h"

#include <string>
#include <string_view>

namespace llmrt {

/// The PCRE2 pattern (for PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, newline LF) that means
/// what \p pattern means to Oniguruma.
Result<std::string> translatePattern(std::string_view pattern);

/// Bodies of character classes, to be put between brackets.
inline constexpr std::string_view kClassSpace =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
inline constexpr std::string_view kClassWord = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";

} // namespace llmrt

#endif // LLMRT_TEXT_PATTERNSYNTAX_H
