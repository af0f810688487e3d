//===- TokenizerSpec.h - what a tokenizer consists of, as plain data ------------===//
//
// The importers (TokenizerJson, GgufTokenizer) fill a TokenizerSpec; the blob writer turns it
// into the compact form that a Tokenizer runs from. Components that mean the same are
// lowered to one: Digits, Punctuation, Whitespace, ByteLevel's own split and so on all become
// `Split` with a pattern.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_TEXT_TOKENIZERSPEC_H
#define LLMRT_TEXT_TOKENIZERSPEC_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llmrt {

/// Stored in plans: values are append-only.
enum class StepKind : uint8_t {
  // Normalizers: text -> text.
  Nfc = 0,
  Nfd = 1,
  Nfkc = 2,
  Nfkd = 3,
  Lowercase = 4,
  StripAccents = 5,     ///< removes combining marks
  Strip = 6,            ///< white space at the ends (left, right)
  Replace = 7,          ///< pattern -> content; also a decoder, where it works on each token
  Prepend = 8,          ///< content before a text that is not empty
  ByteMap = 9,          ///< bytes -> the 256 printable characters of GPT-2; also a pre-tokenizer
  BertClean = 10,       ///< drops controls, makes each white space " "
  CjkSpaces = 11,       ///< " " around each Chinese character
  StripNonspacing = 12, ///< removes the marks of category Mn
  Precompiled = 13,     ///< by the table in content (see CharsMap), as tokenizer.json does it
  Nmt = 14,             ///< SentencePiece's nmt rule for controls and spaces
  /// SentencePiece's whole normalization: by the table in content, if any; then, if left, a mark
  /// before the text (after it, if invert); if right, spaces at the ends and repeated ones go; if
  /// split, spaces become marks
  SentencePiece = 15,
  // Pre-tokenizers: pieces -> pieces.
  Split = 16,       ///< at the matches of pattern, by behavior
  Metaspace = 17,   ///< " " -> content (one character), prefix by scheme, split before it
  PrefixSpace = 18, ///< " " before each piece that does not start with one
  // Decoders: tokens -> tokens, which are joined at the end.
  ByteLevel = 32,       ///< joins, and inverts ByteMap
  ByteFallback = 33,    ///< runs of "<0xHH>" -> the characters they encode
  Fuse = 34,            ///< joins all tokens to one
  StripChars = 35,      ///< up to start (stop) times content at a token's start (end)
  MetaspaceDecode = 36, ///< content -> " ", but dropped in the first token unless scheme is Never
  SuffixDecode = 37,    ///< pattern (a word's end) -> " ", or nothing in the last token
  WordPieceDecode = 38, ///< drops content before a token, or puts " " there; cleans up if split
};

enum class SplitBehavior : uint8_t {
  Removed = 0,
  Isolated = 1,
  MergedWithPrevious = 2,
  MergedWithNext = 3,
  Contiguous = 4
};

enum class PrefixScheme : uint8_t { Always = 0, First = 1, Never = 2 };

struct PipelineStep {
  StepKind kind{};
  bool regex = false;  ///< pattern is a regular expression, not a literal
  bool invert = false; ///< what does not match is taken for the match
  bool left = false, right = false;
  bool split = false;
  SplitBehavior behavior = SplitBehavior::Removed;
  PrefixScheme scheme = PrefixScheme::Always;
  uint32_t start = 0, stop = 0;
  std::string pattern, content;
};

struct AddedToken {
  int32_t id = 0;
  std::string content;
  std::string pattern; ///< looked for instead of the (normalized) content, if not empty
  bool special = false;
  bool normalized = false; ///< looked for in the normalized text, not in the text as given
  bool singleWord = false; ///< only where no word character touches it
  bool lstrip = false, rstrip = false; ///< takes the white space before, after it along
};

/// How pieces become tokens. Stored in plans: values are append-only.
enum class ModelKind : uint8_t {
  RankedBpe = 0, ///< merges pairs by their rank in a list
  ScoredBpe = 1, ///< merges pairs by the score of the token they make (SentencePiece, tiktoken)
  WordPiece = 2, ///< the longest tokens from the start of a word
  Unigram = 3,   ///< the tokens with the greatest sum of scores
  WordLevel = 4, ///< a piece is a token
};

struct SpecToken {
  int32_t id = 0;
  std::string text;
  double score = 0;       ///< used with ModelKind::ScoredBpe and Unigram
  bool searchable = true; ///< false: the model never makes it from text (control, byte tokens)
};

struct SpecMerge {
  int32_t left = 0, right = 0, result = 0; ///< token ids; the position in the list is the rank
};

struct TokenizerSpec {
  std::vector<SpecToken> vocabulary; ///< the model's; added tokens may be missing here
  std::vector<SpecMerge> merges;
  std::vector<AddedToken> added;
  ModelKind kind = ModelKind::RankedBpe;
  uint32_t maxWordCharacters = 100; ///< WordPiece: longer words are unknown
  /// Byte fallback: the id of each byte's token or -1, which unknown characters become;
  /// empty without it, else 256 long.
  std::vector<int32_t> byteTokens;
  bool fuseUnknown = false;  ///< adjacent unknown characters give one unknown token
  bool ignoreMerges = false; ///< a piece that is a token is that token, whatever the merges say
  std::string continuingPrefix, endSuffix;
  std::optional<int32_t> modelUnknown; ///< what the model emits for an unknown character

  std::vector<PipelineStep> normalizers, preTokenizers, decoders;
  bool joinWithSpaces = false;               ///< no decoder: tokens are joined with " "
  std::vector<int32_t> prefixIds, suffixIds; ///< put around a text that asks for special tokens

  std::optional<int32_t> bos, eos, pad, unknown; ///< named by the model's configuration
  bool cleanUpSpaces = false;                    ///< what clean_up_tokenization_spaces says
};

/// Takes out the added tokens whose ids have no row among the \p rows of a model's embeddings and
/// that nothing else names, and returns how they are spelled. Such tokens come from converters that
/// add those of another family; the model can't be given them.
std::vector<std::string> removeAddedBeyond(TokenizerSpec &spec, int64_t rows);

/// Token ids lie in 0..kMaxTokenId.
inline constexpr int64_t kMaxTokenId = INT32_MAX - 1;

} // namespace llmrt

#endif // LLMRT_TEXT_TOKENIZERSPEC_H
