//===- TokenDecoder.h - tokens back to text -------------------------------------===//
#ifndef LLMRT_TEXT_TOKENDECODER_H
#define LLMRT_TEXT_TOKENDECODER_H

#include "runtime/text/Pattern.h"
#include "runtime/text/TokenizerSpec.h"

namespace llmrt {

/// The decoder steps of a tokenizer.
class TokenDecoder {
public:
  static Result<TokenDecoder> create(std::vector<PipelineStep> steps, bool joinWithSpaces);

  /// The whole text of \p tokens (as spelled in the vocabulary), exactly as Hugging Face's
  /// decoders give it: well-formed, with U+FFFD for what is not.
  Result<std::string> decode(std::vector<std::string> tokens) const;

  /// The bytes one token stands for in the middle of a text; they may be part of a character.
  Result<std::string> bytesOf(std::string_view token) const;

  /// What decode() does at a text's start and bytesOf() can't know: up to this many spaces
  /// there are dropped (the mark of a word's start that SentencePiece puts before a text).
  size_t leadingSpacesDropped() const { return leadingSpaces; }
  /// Tokens are separated by spaces (a tokenizer.json without a decoder).
  bool joinsWithSpaces() const { return joinWithSpaces; }

private:
  struct Step {
    PipelineStep spec;
    Pattern pattern;
  };
  std::vector<Step> steps;
  bool joinWithSpaces = false;
  size_t leadingSpaces = 0;
};

/// clean_up_tokenization_spaces: drops the space before . ? ! , and English contractions.
std::string cleanUpSpaces(std::string text);

/// The byte of a token spelled "<0xHH>", or -1.
int byteOfToken(std::string_view token);

} // namespace llmrt

#endif // LLMRT_TEXT_TOKENDECODER_H
