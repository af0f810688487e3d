//===- Normalizer.h - the text before it is split -------------------------------===//
#ifndef LLMRT_TEXT_NORMALIZER_H
#define LLMRT_TEXT_NORMALIZER_H

#include "runtime/text/CharsMap.h"
#include "runtime/text/Pattern.h"
#include "runtime/text/TokenizerSpec.h"

namespace llmrt {

/// The normalizer steps of a tokenizer, applied in order.
class Normalizer {
public:
  /// Compiles the steps' patterns; Unsupported names one that PCRE2 can't express.
  static Result<Normalizer> create(std::vector<PipelineStep> steps);
  bool empty() const { return steps.empty(); }
  /// \p startKept is cleared when the first characters of \p text were removed.
  Result<std::string> apply(std::string_view text, PatternScratch &scratch, bool &startKept) const;

private:
  struct Step {
    PipelineStep spec;
    Pattern pattern;
    CharsMap charsMap;
  };
  std::vector<Step> steps;
};

/// The pattern of a step: a literal or a regular expression.
Result<Pattern> compileStepPattern(const PipelineStep &step);

/// \p text with each match of \p pattern replaced by \p content.
Result<std::string> replaceMatches(std::string_view text, const Pattern &pattern,
                                   std::string_view content, PatternScratch &scratch);

/// Each byte as one of GPT-2's 256 printable characters.
std::string mapBytes(std::string_view text);
/// The same, appended to \p out.
void appendMappedBytes(std::string_view text, std::string &out);

/// The byte that \p c stands for, or -1 if it is none of the 256 characters.
int unmapByte(char32_t c);

} // namespace llmrt

#endif // LLMRT_TEXT_NORMALIZER_H
