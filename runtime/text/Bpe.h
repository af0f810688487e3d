//===- Bpe.h - byte-pair encoding of one piece --------------------------------===//
//
// Both kinds in use, over the tables of a blob:
//   Rank   (GPT-2; Sennrich et al. 2016, arXiv:1508.07909): the adjacent pair with the lowest
//          rank in the list of merges is merged first, from the left among equals.
//   Score  (SentencePiece; Kudo and Richardson 2018, arXiv:1808.06226): the pair that makes
//          the token with the highest score first, from the left among equals.
// A heap of candidate pairs over a linked list: n log n, whatever the text is.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_TEXT_BPE_H
#define LLMRT_TEXT_BPE_H

#include "runtime/text/TokenizerBlob.h"

#include <array>
#include <vector>

namespace llmrt {

/// The working memory of one thread's encoding.
struct BpeScratch {
  struct Symbol {
    uint32_t token; ///< token index, or Bpe::kNoToken (Score: a character that is no token)
    uint32_t begin; ///< offset of its text in the piece
    uint32_t end;
    int32_t previous, next; ///< neighbours, -1 at the ends
  };
  struct Candidate {
    uint32_t priority;    ///< smaller comes first
    uint32_t position;    ///< index of the left symbol
    uint32_t left, right; ///< Rank: tokens, Score: the pair's text [left, right)
    uint32_t result;
  };
  std::vector<Symbol> symbols;
  std::vector<Candidate> heap;
};

class Bpe {
public:
  static constexpr uint32_t kNoToken = UINT32_MAX;

  /// Looks up what every piece needs: \p tables must outlive it.
  Bpe(const TokenizerTables &tables, const PipelineConfig &config);

  /// Appends the token indices of \p piece (well-formed UTF-8 of less than 2 GiB).
  /// What is neither a token nor bytes gives the unknown token, or nothing if there is none.
  void encode(std::string_view piece, BpeScratch &scratch, std::vector<uint32_t> &out) const;

private:
  void initialSymbols(std::string_view piece, BpeScratch &scratch) const;
  void initialCharacters(std::string_view piece, BpeScratch &scratch) const;
  void mergeByRank(BpeScratch &scratch) const;
  void mergeByScore(std::string_view piece, BpeScratch &scratch) const;
  void emitScored(std::string_view piece, const BpeScratch &scratch,
                  std::vector<uint32_t> &out) const;
  std::optional<uint32_t> findCharacter(std::string_view character) const;
  bool appendBytes(std::string_view text, std::vector<uint32_t> &out) const;

  const TokenizerTables &tables;
  MergeMode mode;
  bool fuseUnknown, ignoreMerges;
  std::string continuingPrefix, endSuffix;
  std::optional<uint32_t> unknown;
  std::array<uint32_t, 0x180> byCodePoint; ///< tokens of the characters below U+0180
  std::array<uint32_t, 256> byteTokens;    ///< all kNoToken without byte fallback
};

} // namespace llmrt

#endif // LLMRT_TEXT_BPE_H
