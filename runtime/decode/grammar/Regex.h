//===- Regex.h - regular expressions as grammar expressions -----------------===//
//
// Literals, `.`, classes, \d \w \s and their opposites, \n \t \r \f \v \0, \xNN \uNNNN \u{N},
// groups (capturing or not), alternation, * + ? {m} {m,} {m,n} (lazy forms match the same texts),
// and ^ $ at the ends. What looks around or back (lookahead, backreferences, \b) is no regular
// language and is refused.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_DECODE_GRAMMAR_REGEX_H
#define LLMRT_DECODE_GRAMMAR_REGEX_H

#include "runtime/decode/grammar/GrammarBuilder.h"

#include <optional>

namespace llmrt {

struct RegexOptions {
  /// The text stands inside a JSON string: quotes, backslashes and control characters are written
  /// as JSON writes them.
  bool insideJsonString = false;
  /// A text that contains a match matches, unless ^ and $ say otherwise; else it is the whole text.
  bool search = false;
};

/// InvalidArgument or Unsupported with the position.
Result<GrammarBuilder::Expr> parseRegex(std::string_view text, GrammarBuilder &builder,
                                        const RegexOptions &options = {});

/// The next character of \p text from \p at on, which moves behind it; none at the end or where it
/// is not UTF-8.
std::optional<uint32_t> nextCharacter(std::string_view text, size_t &at);

/// One character of \p ranges as a JSON string writes it: those that must be escaped are.
GrammarBuilder::Expr jsonCharacters(GrammarBuilder &builder, const std::vector<CharRange> &ranges);

} // namespace llmrt

#endif // LLMRT_DECODE_GRAMMAR_REGEX_H
