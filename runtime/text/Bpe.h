//===- Bpe.h - byte-pair encoding of one piece --------------------------------===//
//
// Both kinds in use, over the tables of a blob:
//   Rank   (GPT-2; Sennrich et al. 2016, arXiv:1508.07909): the adjacent pair with the lowest
//          rank in the list of merges is merged first, from the left among equals.
//   Score  (SentencePiece; Kudo and Richardson 2018, arXiv:1808.06226): the pair that makes
//          the token with the highest score first, from the left among equals. Scores are
//          turned into ranks when the blob is written.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_TEXT_BPE_H
#define LLMRT_TEXT_BPE_H

#include "runtime/text/MergeQueue.h"
#include "runtime/text/TokenizerBlob.h"

#include <array>
#include <vector>

namespace llmrt {

/// The working memory of one thread's encoding.
struct BpeScratch {
  struct Symbol {
    uint32_t token;         ///< token index, or Bpe::kNoToken (Score: a character that is no token)
    uint32_t begin;         ///< offset of its text in the piece; Score only
    uint32_t rank;          ///< of the pair with the next symbol, or Bpe::kNoRank
    uint32_t result;        ///< the token that this pair makes
    int32_t previous, next; ///< neighbours, -1 at the ends
  };
  std::vector<Symbol> symbols;
  MergeQueue queue;
  std::string mapped; ///< the piece in the characters that stand for its bytes

  /// Short pieces and their tokens, at the place that their hash says: a long text repeats its
  /// words. Empty (nothing is remembered) unless remember() was called.
  struct Remembered {
    char piece[22];
    uint8_t size = 0, count = 0; ///< count 0: the place is free
    uint32_t tokens[6];
  };
  std::vector<Remembered> remembered;
  void remember() { remembered.resize(1 << 13); }
};

class Bpe {
public:
  static constexpr uint32_t kNoToken = UINT32_MAX;
  static constexpr uint32_t kNoRank = UINT32_MAX;

  /// Looks up what every piece needs: \p tables must outlive it. \p mapsBytes: the tokens are made
  /// of the characters that stand for the bytes of a piece (appendMappedBytes).
  Bpe(const TokenizerTables &tables, const PipelineConfig &config, bool mapsBytes = false);

  /// Appends the token indices of \p piece (well-formed UTF-8 of less than 2 GiB).
  /// What is neither a token nor bytes gives the unknown token, or nothing if there is none.
  void encode(std::string_view piece, BpeScratch &scratch, std::vector<uint32_t> &out) const;

private:
  using Symbols = std::vector<BpeScratch::Symbol>;
  void encodeNew(std::string_view piece, BpeScratch &scratch, std::vector<uint32_t> &out) const;
  void initialSymbols(std::string_view piece, Symbols &symbols) const;
  void initialCharacters(std::string_view piece, Symbols &symbols) const;
  void updatePair(std::string_view piece, Symbols &symbols, size_t left) const;
  void mergeShort(std::string_view piece, Symbols &symbols) const;
  void mergeLong(std::string_view piece, BpeScratch &scratch) const;
  void emitScored(std::string_view piece, const Symbols &symbols, std::vector<uint32_t> &out) const;
  std::optional<uint32_t> findCharacter(std::string_view character) const;
  bool appendBytes(std::string_view text, std::vector<uint32_t> &out) const;

  const TokenizerTables &tables;
  ModelKind kind;
  bool fuseUnknown, ignoreMerges, mapsBytes;
  std::string continuingPrefix, endSuffix;
  std::optional<uint32_t> unknown;
  std::array<uint32_t, 0x180> byCodePoint; ///< tokens of the characters below U+0180
  std::array<uint32_t, 256> byteTokens;    ///< all kNoToken without byte fallback
};

} // namespace llmrt

#endif // LLMRT_TEXT_BPE_H
