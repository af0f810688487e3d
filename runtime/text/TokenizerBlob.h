//===- TokenizerBlob.h - a tokenizer as bytes that are used in place ------------===//
//
// A plan holds its tokenizer in this form, little-endian, without pointers, so that opening
// one is checking it: no table is built and nothing is copied. Sections, each at an offset
// that is a multiple of 8:
//
//   Header      "LLMTOK01", file size, number of tokens, sections' offsets and sizes
//   Pipeline    a stream of length-prefixed records: model flags, steps, added tokens
//   Ids         u32[tokens], ascending; absent if the ids are 0..tokens-1
//   Offsets     u32[tokens + 1] into Text
//   Text        the tokens' bytes
//   Vocabulary  u32[2^k] open-addressed hash table of token index + 1, 0 = free
//   Merges      {u32 left, right, rank, result}[2^k] open-addressed, left = ~0 = free
//   Ranks       u32[tokens], only with ModelKind::ScoredBpe: how many different scores are higher
//   Scores      f64[tokens], only with ModelKind::Unigram; NaN: not one of the model's tokens
//   Trie        TokenTrie of the vocabulary, only with Unigram and WordPiece
//
// Blobs of the first version end their list of sections with Ranks.
//
// Tables are keyed by token *index* (position in id order), so gaps in the ids cost nothing.
// The reader checks every offset, index and count once, at load; a damaged blob is an error
// there, never a bad read later.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_TEXT_TOKENIZERBLOB_H
#define LLMRT_TEXT_TOKENIZERBLOB_H

#include "runtime/support/Status.h"
#include "runtime/text/TokenTrie.h"
#include "runtime/text/TokenizerSpec.h"

#include <bit>
#include <cstring>
#include <span>
#include <string_view>

namespace llmrt {

static_assert(std::endian::native == std::endian::little, "blobs are read in place");

namespace blob {

inline constexpr char kMagic[8] = {'L', 'L', 'M', 'T', 'O', 'K', '0', '1'};
enum Section {
  Pipeline,
  Ids,
  Offsets,
  Text,
  Vocabulary,
  Merges,
  Ranks,
  Scores,
  Trie,
  kSectionCount
};
/// Sections of a blob of the first version.
inline constexpr uint32_t kFirstSectionCount = Scores;

struct Extent {
  uint64_t offset, size;
};
struct Header {
  char magic[8];
  uint64_t size;
  uint32_t tokens;
  uint32_t sections; ///< how many extents follow: kFirstSectionCount or kSectionCount
  Extent extents[kSectionCount];
};
struct MergeSlot {
  uint32_t left, right, rank, result;
};
inline constexpr uint32_t kFree = UINT32_MAX;

/// Part of the format. FNV-1a with a final mix, for strings.
inline uint32_t hashText(std::string_view text) {
  uint64_t h = 0xCBF29CE484222325u;
  for (char c : text)
    h = (h ^ static_cast<uint8_t>(c)) * 0x100000001B3u;
  h ^= h >> 32;
  h *= 0x9E3779B97F4A7C15u;
  return static_cast<uint32_t>(h >> 32);
}
/// Part of the format. A multiplicative mix, for pairs of token indices.
inline uint32_t hashPair(uint32_t left, uint32_t right) {
  uint64_t h = (static_cast<uint64_t>(left) << 32 | right) * 0x9E3779B97F4A7C15u;
  h = (h ^ h >> 29) * 0xBF58476D1CE4E5B9u;
  return static_cast<uint32_t>(h >> 32);
}

/// The unaligned element \p index of an array.
template <typename T> T load(const uint8_t *array, size_t index) {
  T value;
  std::memcpy(&value, array + index * sizeof(T), sizeof(T));
  return value;
}

} // namespace blob

/// An added token as the runtime needs it.
struct AddedEntry {
  AddedToken token;
  uint32_t index = 0;  ///< token index
  std::string pattern; ///< what is looked for: the content, normalized if the token is
};

/// The blob's Pipeline section, decoded.
struct PipelineConfig {
  ModelKind kind = ModelKind::RankedBpe;
  uint32_t maxWordCharacters = 100; ///< WordPiece only
  bool fuseUnknown = false, ignoreMerges = false;
  std::vector<uint32_t> byteTokens; ///< token indices or kFree; empty or 256 long
  bool joinWithSpaces = false, cleanUpSpaces = false;
  std::string continuingPrefix, endSuffix;
  std::optional<uint32_t> modelUnknown; ///< token index
  std::optional<int32_t> bos, eos, pad, unknown;
  std::vector<int32_t> prefixIds, suffixIds;
  std::vector<PipelineStep> normalizers, preTokenizers, decoders;
  /// Sorted by (normalized, pattern). Of equal patterns the first one counts; an empty one
  /// (a content that normalizes to nothing) is never looked for.
  std::vector<AddedEntry> added;
};

/// A merge that exists: its rank and the token index it makes.
struct Merge {
  uint32_t rank, result;
};

/// Read access to the tables of a checked blob. Copies nothing: the bytes must outlive it.
class TokenizerTables {
public:
  /// Checks \p bytes in full. InvalidFile with the section and the reason if damaged.
  static Result<TokenizerTables> open(std::span<const uint8_t> bytes);

  /// The Pipeline section; checked like the rest.
  Result<PipelineConfig> pipeline() const;

  uint32_t tokenCount() const { return count; }
  std::string_view text(uint32_t index) const {
    uint32_t begin = blob::load<uint32_t>(offsets, index);
    return {textBytes + begin, blob::load<uint32_t>(offsets, index + 1) - begin};
  }
  int32_t idOf(uint32_t index) const {
    return ids ? static_cast<int32_t>(blob::load<uint32_t>(ids, index))
               : static_cast<int32_t>(index);
  }
  /// The index of the token with this id, for any id.
  std::optional<uint32_t> indexOf(int64_t id) const;
  int32_t maxId() const { return count ? idOf(count - 1) : -1; }
  /// The longest token in bytes.
  size_t longestToken() const { return longest; }

  /// The model's token that is spelled \p token.
  std::optional<uint32_t> find(std::string_view token) const {
    if (token.size() > longest)
      return std::nullopt;
    for (uint32_t slot = blob::hashText(token);; ++slot) {
      uint32_t entry = blob::load<uint32_t>(vocabulary, slot & vocabularyMask);
      if (!entry)
        return std::nullopt;
      if (text(entry - 1) == token)
        return entry - 1;
    }
  }
  std::optional<Merge> findMerge(uint32_t left, uint32_t right) const {
    for (uint32_t slot = blob::hashPair(left, right);; ++slot) {
      auto entry = blob::load<blob::MergeSlot>(merges, slot & mergesMask);
      if (entry.left == left && entry.right == right)
        return Merge{entry.rank, entry.result};
      if (entry.left == blob::kFree)
        return std::nullopt;
    }
  }
  /// With ModelKind::ScoredBpe: the rank of the merges that make this token.
  uint32_t rankOf(uint32_t index) const { return blob::load<uint32_t>(ranks, index); }
  /// With ModelKind::Unigram: the token's log probability.
  double scoreOf(uint32_t index) const { return blob::load<double>(scores, index); }
  /// With ModelKind::Unigram and WordPiece.
  const TokenTrie &trie() const { return tokenTrie; }
  /// All ranks are smaller.
  uint32_t rankCount() const { return ranks ? count : mergesMask + 1; }

private:
  Status checkTables(const blob::Header &header);

  std::span<const uint8_t> bytes, pipelineBytes;
  uint32_t count = 0;
  uint32_t vocabularyMask = 0, mergesMask = 0;
  size_t longest = 0;
  const uint8_t *ids = nullptr, *offsets = nullptr, *vocabulary = nullptr, *merges = nullptr,
                *ranks = nullptr, *scores = nullptr;
  const char *textBytes = nullptr;
  TokenTrie tokenTrie;
};

/// The blob of \p spec. InvalidFile if ids, texts or merges of the spec contradict each other.
Result<std::string> writeTokenizerBlob(const TokenizerSpec &spec);

} // namespace llmrt

#endif // LLMRT_TEXT_TOKENIZERBLOB_H
