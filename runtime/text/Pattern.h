//===- Pattern.h - a literal or regular expression to find in text -------------===//
//
// Regular expressions run on PCRE2's JIT code with a stack of our own and a match limit, so
// neither a long text nor a bad pattern can exhaust the thread's stack or run for ever.
// A Pattern is immutable and shared by threads; each call of a tokenizer uses its own
// PatternScratch.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_TEXT_PATTERN_H
#define LLMRT_TEXT_PATTERN_H

#include "runtime/support/Status.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llmrt {

/// A byte range [begin, end) of some text.
struct Span {
  size_t begin = 0, end = 0;
  size_t size() const { return end - begin; }
  bool empty() const { return begin == end; }
  friend bool operator==(const Span &, const Span &) = default;
};

/// Working memory of one thread's matching.
class PatternScratch {
public:
  PatternScratch();
  ~PatternScratch();
  PatternScratch(const PatternScratch &) = delete;
  PatternScratch &operator=(const PatternScratch &) = delete;

private:
  friend class Pattern;
  struct Impl;
  std::unique_ptr<Impl> impl;
};

class Pattern {
public:
  /// Matches \p text itself. An empty literal matches nowhere.
  static Pattern literal(std::string text);
  /// A regular expression in tokenizer.json's syntax (see PatternSyntax.h).
  static Result<Pattern> regex(std::string_view expression);

  /// Calls \p found(Span) for the matches in well-formed \p text from left to right. An empty
  /// match directly after another is not reported. Fails when a pattern exceeds its step limit.
  template <typename Callback>
  Status forEachMatch(std::string_view text, PatternScratch &scratch, Callback found) const {
    size_t from = 0;
    std::optional<size_t> lastEnd;
    while (from <= text.size()) {
      Span match;
      int code = find(text, from, scratch, match);
      if (code < 0)
        return failure(code, text.size());
      if (code == 0)
        break;
      if (match.empty() && lastEnd == match.end) {
        from = next(text, from);
        continue;
      }
      from = match.end;
      lastEnd = match.end;
      found(match);
    }
    return Status::ok();
  }

private:
  struct Code;
  /// 1: the first match from \p from on is \p match; 0: there is none; else PCRE2's error.
  int find(std::string_view text, size_t from, PatternScratch &scratch, Span &match) const;
  Status failure(int error, size_t size) const;
  static size_t next(std::string_view text, size_t at);

  std::string source;         ///< the literal, or the expression for messages
  std::shared_ptr<Code> code; ///< null for a literal
};

} // namespace llmrt

#endif // LLMRT_TEXT_PATTERN_H
