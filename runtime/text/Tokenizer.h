//===- Tokenizer.h - text to token ids and back ---------------------------------===//
//
// A tokenizer comes from tokenizer.json (with its companions), a SentencePiece tokenizer.model, a
// list of tiktoken ranks, GGUF metadata, or from the blob that a plan holds; all run the same code
// on the same tables. It gives the ids that Hugging Face's tokenizers library gives for the same
// files (SentencePiece and tiktoken for theirs):
//
//   text ─ added tokens (as given) ─ normalizers ─ added tokens (normalized)
//        ─ pre-tokenizers ─ BPE, Unigram, WordPiece or words ─ ids put around (addSpecial)
//
// An importer fails on a component it does not know, naming it; nothing falls back to
// another rule. All members are const and may be called from any number of threads.
//
//   auto made = Tokenizer::fromTokenizerJson(json, config);          // compile time
//   LLMRT_ASSIGN_OR_RETURN(std::string blob, (*made)->serialize());  // into the plan
//   auto tokenizer = Tokenizer::fromBlob(bytesOfPlan);               // run time: checks only
//   auto ids = (*tokenizer)->encode("Hello", {.parseSpecial = false});
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_TEXT_TOKENIZER_H
#define LLMRT_TEXT_TOKENIZER_H

#include "runtime/support/Status.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace llmrt {

struct GgufTokenizerData;

struct EncodeOptions {
  /// Control tokens written in the text become those tokens. False for text of a user, who
  /// must not be able to write them.
  bool parseSpecial = true;
  /// Put the model's beginning (and end) tokens around the text. False for text that a chat
  /// template made, which has them already.
  bool addSpecial = true;
};

struct DecodeOptions {
  bool skipSpecial = true;
  /// Drop spaces before punctuation. Never done unless asked for: it changes code and quotes.
  bool cleanUpSpaces = false;
};

struct TokenizerSpec;

class Tokenizer {
public:
  ~Tokenizer();

  /// The model that a tokenizer is for: added tokens beyond its rows are left out (see
  /// removeAddedBeyond).
  struct Rows {
    int64_t count;                    ///< of the embeddings
    std::vector<std::string> leftOut; ///< filled: how those tokens are spelled
  };

  /// From the texts of tokenizer.json and, where the model has them, tokenizer_config.json and
  /// special_tokens_map.json (empty if not). InvalidFile or Unsupported, naming the place.
  static Result<std::shared_ptr<Tokenizer>>
  fromTokenizerJson(std::string_view json, std::string_view tokenizerConfigJson = {},
                    std::string_view specialTokensMapJson = {}, Rows *rows = nullptr);
  /// From the bytes of a SentencePiece tokenizer.model, with the same companions.
  static Result<std::shared_ptr<Tokenizer>>
  fromSentencePiece(std::string_view model, std::string_view tokenizerConfigJson = {},
                    std::string_view specialTokensMapJson = {}, Rows *rows = nullptr);
  /// From a list of tiktoken ranks; \p tokenizerConfigJson may name control tokens.
  static Result<std::shared_ptr<Tokenizer>> fromTiktoken(std::string_view ranks,
                                                         std::string_view tokenizerConfigJson = {},
                                                         Rows *rows = nullptr);
  /// From GGUF metadata (tokenizer.ggml.*).
  static Result<std::shared_ptr<Tokenizer>> fromGguf(const GgufTokenizerData &data);
  /// From what serialize() gave. \p bytes are used in place and must outlive the tokenizer.
  static Result<std::shared_ptr<Tokenizer>> fromBlob(std::span<const uint8_t> bytes);
  /// The compact form; equal for equal inputs.
  Result<std::string> serialize() const;

  /// InvalidArgument if \p text is not UTF-8.
  Result<std::vector<int32_t>> encode(std::string_view text, EncodeOptions options = {}) const;
  /// Well-formed text: incomplete characters give U+FFFD. Ids that are no tokens give nothing
  /// (a model's padded rows). For streaming see TextStream.
  Result<std::string> decode(std::span<const int32_t> ids, DecodeOptions options = {}) const;

  /// What \p id adds to a text, as bytes, which may be part of a character; empty if it is no
  /// token.
  Result<std::string> tokenBytes(int32_t id) const;
  /// How \p id is spelled in the vocabulary ("Ġthe"), if it is a token.
  std::optional<std::string_view> tokenText(int32_t id) const;
  /// The token, of the model or added, that is spelled so.
  std::optional<int32_t> idOf(std::string_view spelled) const;

  /// One more than the greatest id: what a head must have at least, see checkVocabulary.
  int32_t vocabSize() const;
  /// InvalidFile naming the first token that an embedding of \p rows rows does not have.
  Status checkVocabulary(int64_t rows) const;
  bool isToken(int32_t id) const;
  /// Control tokens: skipped by decode, written by templates only.
  bool isSpecial(int32_t id) const;
  std::optional<int32_t> bosId() const;
  std::optional<int32_t> eosId() const;
  std::optional<int32_t> padId() const;
  std::optional<int32_t> unknownId() const;
  /// Whether encode with addSpecial puts something before, after the text.
  bool addsPrefix() const;
  bool addsSuffix() const;
  /// What tokenizer_config.json says about clean_up_tokenization_spaces.
  bool cleanUpSpacesByDefault() const;
  /// Up to this many spaces go at the start of a text (see TokenDecoder).
  size_t leadingSpacesDropped() const;
  bool joinsWithSpaces() const;

private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  static Result<std::shared_ptr<Tokenizer>> fromSpec(TokenizerSpec &spec, Rows *rows,
                                                     const char *source);
  static Result<std::shared_ptr<Tokenizer>> fromOwnedBlob(std::string blob);
  std::unique_ptr<Impl> impl;
};

} // namespace llmrt

#endif // LLMRT_TEXT_TOKENIZER_H
