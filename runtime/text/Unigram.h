//===- Unigram.h - the most likely tokens of one piece ----------------------------===//
//
// Kudo 2018, arXiv:1804.10959: a token has a log probability, and a piece becomes the tokens
// with the greatest sum (Viterbi's algorithm). A character that no token covers costs 10 more
// than the least likely token. What SentencePiece and the `tokenizers` library do with ties,
// unknown characters in a row and bytes is kept.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_TEXT_UNIGRAM_H
#define LLMRT_TEXT_UNIGRAM_H

#include "runtime/text/TokenizerBlob.h"

#include <vector>

namespace llmrt {

/// The working memory of one thread's encoding.
struct UnigramScratch {
  /// The best way to the byte at this index.
  struct Best {
    double score = 0;
    uint32_t begin = 0; ///< of the last token on the way
    uint32_t token = 0; ///< token index, or Unigram::kUnknown
    bool reached = false;
  };
  std::vector<Best> best;
  std::vector<uint32_t> reversed;
};

class Unigram {
public:
  static constexpr uint32_t kUnknown = UINT32_MAX;

  /// \p tables must outlive it.
  Unigram(const TokenizerTables &tables, const PipelineConfig &config);

  /// Appends the token indices of \p piece, well-formed UTF-8 of less than 2 GiB. InvalidArgument
  /// for an unknown character if the model has no unknown token.
  Status encode(std::string_view piece, UnigramScratch &scratch, std::vector<uint32_t> &out) const;

private:
  Status emit(std::string_view text, std::vector<uint32_t> &reversed) const;

  const TokenizerTables &tables;
  double unknownScore = 0;
  bool fuseUnknown;
  std::optional<uint32_t> unknown;
  std::vector<uint32_t> byteTokens; ///< empty without byte fallback
};

} // namespace llmrt

#endif // LLMRT_TEXT_UNIGRAM_H
