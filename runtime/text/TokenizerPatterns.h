//===- TokenizerPatterns.h - patterns that formats refer to by a name ------------===//
//
// In tokenizer.json's syntax (see PatternSyntax.h).
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_TEXT_TOKENIZERPATTERNS_H
#define LLMRT_TEXT_TOKENIZERPATTERNS_H

#include <string_view>

namespace llmrt::patterns {

/// GPT-2 (Radford et al. 2019), and what ByteLevel with use_regex means.
inline constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
/// Llama 3; with three digits at a time.
inline constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
/// Qwen 2: the same with single digits.
inline constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
/// GPT-4o: words by case, contractions as their end.
inline constexpr std::string_view kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// Rust's char::is_numeric.
inline constexpr std::string_view kNumeric = R"(\p{N})";
/// Unicode's P and the rest of ASCII's punctuation.
inline constexpr std::string_view kPunctuation = R"([\p{P}$+<=>^`|~])";
/// Whitespace: words and runs of what is neither word nor space, `\w` as in Rust's regex.
inline constexpr std::string_view kWordsOrOther =
    R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}]+|[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}\s]+)";

} // namespace llmrt::patterns

#endif // LLMRT_TEXT_TOKENIZERPATTERNS_H
