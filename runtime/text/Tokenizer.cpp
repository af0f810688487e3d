#include "runtime/text/Tokenizer.h"

#include "runtime/text/AddedTokens.h"
#include "runtime/text/Bpe.h"
#include "runtime/text/GgufTokenizer.h"
#include "runtime/text/Normalizer.h"
#include "runtime/text/PreTokenizer.h"
#include "runtime/text/SentencePieceModel.h"
#include "runtime/text/Tiktoken.h"
#include "runtime/text/TokenDecoder.h"
#include "runtime/text/TokenizerBlob.h"
#include "runtime/text/TokenizerJson.h"
#include "runtime/text/Unigram.h"
#include "runtime/text/Utf8.h"
#include "runtime/text/WordPiece.h"

#include <algorithm>
#include <variant>

namespace llmrt {

namespace {
// Offsets in a piece are 32-bit, and byte mapping and normalization make text longer.
constexpr size_t kMaxTextBytes = 64 << 20;
constexpr size_t kMaxPieceBytes = INT32_MAX;
// From here on it pays to keep the tokens of words.
constexpr size_t kLongText = 16 << 10;
} // namespace

struct Tokenizer::Impl {
  std::string owned; ///< the blob, if it is ours
  std::span<const uint8_t> bytes;
  TokenizerTables tables;
  PipelineConfig config;
  Normalizer normalizer;
  PreTokenizer preTokenizer;
  TokenDecoder decoder;
  AddedTokens rawTokens, normalizedTokens;
  std::variant<std::monostate, Bpe, WordPiece, Unigram> model; ///< monostate: WordLevel
  std::vector<int32_t> specialIds;                             ///< ascending

  Status open();
  Status encodePiece(std::string_view piece, struct Working &work) const;
  Status encodeText(std::string_view text, bool atStart, struct Working &work) const;
};

/// What one call of encode works with.
struct Working {
  bool specialAsText;
  PatternScratch patterns;
  BpeScratch bpe;
  UnigramScratch unigram;
  std::vector<uint32_t> tokens;
  std::string mapped; ///< a piece in the characters that stand for its bytes
};

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;

Status Tokenizer::Impl::open() {
  LLMRT_ASSIGN_OR_RETURN(tables, TokenizerTables::open(bytes));
  LLMRT_ASSIGN_OR_RETURN(config, tables.pipeline());
  LLMRT_ASSIGN_OR_RETURN(normalizer, Normalizer::create(config.normalizers));
  LLMRT_ASSIGN_OR_RETURN(preTokenizer, PreTokenizer::create(config.preTokenizers));
  LLMRT_ASSIGN_OR_RETURN(decoder, TokenDecoder::create(config.decoders, config.joinWithSpaces));
  rawTokens = AddedTokens(config.added, false);
  normalizedTokens = AddedTokens(config.added, true);
  switch (config.kind) {
  case ModelKind::RankedBpe:
  case ModelKind::ScoredBpe:
    model.emplace<Bpe>(tables, config, preTokenizer.endsInByteMap());
    break;
  case ModelKind::WordPiece:
    model.emplace<WordPiece>(tables, config);
    break;
  case ModelKind::Unigram:
    model.emplace<Unigram>(tables, config);
    break;
  case ModelKind::WordLevel:
    break;
  }
  for (const AddedEntry &entry : config.added)
    if (entry.token.special)
      specialIds.push_back(entry.token.id);
  std::sort(specialIds.begin(), specialIds.end());
  return Status::ok();
}

Result<std::shared_ptr<Tokenizer>> Tokenizer::fromBlob(std::span<const uint8_t> bytes) {
  auto impl = std::make_unique<Impl>();
  impl->bytes = bytes;
  LLMRT_RETURN_IF_ERROR(impl->open());
  return std::shared_ptr<Tokenizer>(new Tokenizer(std::move(impl)));
}

Result<std::shared_ptr<Tokenizer>> Tokenizer::fromOwnedBlob(std::string blob) {
  auto impl = std::make_unique<Impl>();
  impl->owned = std::move(blob);
  impl->bytes = {reinterpret_cast<const uint8_t *>(impl->owned.data()), impl->owned.size()};
  LLMRT_RETURN_IF_ERROR(impl->open());
  return std::shared_ptr<Tokenizer>(new Tokenizer(std::move(impl)));
}

Result<std::shared_ptr<Tokenizer>> Tokenizer::fromSpec(TokenizerSpec &spec, Rows *rows,
                                                       const char *source) {
  if (rows)
    rows->leftOut = removeAddedBeyond(spec, rows->count);
  Result<std::string> blob = writeTokenizerBlob(spec);
  if (!blob)
    return blob.status().withContext(source);
  return fromOwnedBlob(std::move(*blob));
}

std::vector<std::string> removeAddedBeyond(TokenizerSpec &spec, int64_t rows) {
  const auto isNamed = [&](int32_t id) {
    const auto in = [&](const std::vector<int32_t> &ids) {
      return std::find(ids.begin(), ids.end(), id) != ids.end();
    };
    return spec.bos == id || spec.eos == id || spec.modelUnknown == id || in(spec.prefixIds) ||
           in(spec.suffixIds) || in(spec.byteTokens);
  };
  std::vector<std::string> removed;
  std::erase_if(spec.added, [&](const AddedToken &token) {
    if (token.id < rows || isNamed(token.id))
      return false;
    removed.push_back(token.content);
    return true;
  });
  // Padding and the unknown token are named for batches and for display: no text needs them.
  for (std::optional<int32_t> *id : {&spec.pad, &spec.unknown})
    if (*id && **id >= rows && !removed.empty())
      id->reset();
  return removed;
}

Result<std::shared_ptr<Tokenizer>>
Tokenizer::fromTokenizerJson(std::string_view json, std::string_view tokenizerConfigJson,
                             std::string_view specialTokensMapJson, Rows *rows) {
  LLMRT_ASSIGN_OR_RETURN(TokenizerSpec spec,
                         specFromTokenizerJson(json, tokenizerConfigJson, specialTokensMapJson));
  return fromSpec(spec, rows, "tokenizer.json");
}

Result<std::shared_ptr<Tokenizer>>
Tokenizer::fromSentencePiece(std::string_view model, std::string_view tokenizerConfigJson,
                             std::string_view specialTokensMapJson, Rows *rows) {
  LLMRT_ASSIGN_OR_RETURN(TokenizerSpec spec,
                         specFromSentencePiece(model, tokenizerConfigJson, specialTokensMapJson));
  return fromSpec(spec, rows, "tokenizer.model");
}

Result<std::shared_ptr<Tokenizer>>
Tokenizer::fromTiktoken(std::string_view ranks, std::string_view tokenizerConfigJson, Rows *rows) {
  LLMRT_ASSIGN_OR_RETURN(TokenizerSpec spec, specFromTiktoken(ranks, tokenizerConfigJson));
  return fromSpec(spec, rows, "tiktoken ranks");
}

Result<std::shared_ptr<Tokenizer>> Tokenizer::fromGguf(const GgufTokenizerData &data) {
  LLMRT_ASSIGN_OR_RETURN(TokenizerSpec spec, specFromGguf(data));
  return fromSpec(spec, nullptr, "GGUF tokenizer");
}

Result<std::string> Tokenizer::serialize() const {
  return std::string(reinterpret_cast<const char *>(impl->bytes.data()), impl->bytes.size());
}

Status Tokenizer::Impl::encodePiece(std::string_view piece, Working &work) const {
  if (const Bpe *bpe = std::get_if<Bpe>(&model)) {
    bpe->encode(piece, work.bpe, work.tokens);
    return Status::ok();
  }
  if (preTokenizer.endsInByteMap()) {
    work.mapped.clear();
    appendMappedBytes(piece, work.mapped);
    piece = work.mapped;
  }
  if (const WordPiece *wordPiece = std::get_if<WordPiece>(&model))
    return wordPiece->encode(piece, work.tokens);
  if (const Unigram *unigram = std::get_if<Unigram>(&model))
    return unigram->encode(piece, work.unigram, work.tokens);
  std::optional<uint32_t> token = tables.find(piece);
  if (!token)
    token = config.modelUnknown;
  if (!token)
    return invalidArgument("the tokenizer has no token for '" + std::string(piece.substr(0, 40)) +
                           "' and no unknown token");
  work.tokens.push_back(*token);
  return Status::ok();
}

Status Tokenizer::Impl::encodeText(std::string_view text, bool atStart, Working &work) const {
  std::string normalized;
  if (!normalizer.empty()) {
    LLMRT_ASSIGN_OR_RETURN(normalized, normalizer.apply(text, work.patterns, atStart));
    text = normalized;
  }
  for (const Segment &segment : normalizedTokens.cut(text, work.specialAsText)) {
    if (segment.token) {
      work.tokens.push_back(*segment.token);
      continue;
    }
    LLMRT_ASSIGN_OR_RETURN(PieceList list,
                           preTokenizer.apply(text.substr(segment.span.begin, segment.span.size()),
                                              atStart && segment.span.begin == 0, work.patterns));
    for (size_t i = 0; i < list.pieces.size(); ++i) {
      if (list.pieces[i].size() > kMaxPieceBytes)
        return invalidArgument("the text is too long");
      LLMRT_RETURN_IF_ERROR(encodePiece(list.piece(i), work));
    }
  }
  return Status::ok();
}

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  if (text.size() > kMaxTextBytes)
    return invalidArgument("the text has " + std::to_string(text.size()) + " bytes; at most " +
                           std::to_string(kMaxTextBytes) + " are possible");
  if (std::optional<size_t> bad = firstInvalidUtf8(text))
    return invalidArgument("the text is not UTF-8 at byte " + std::to_string(*bad));
  Working work;
  work.specialAsText = !options.parseSpecial;
  if (text.size() >= kLongText)
    work.bpe.remember();
  for (const Segment &segment : impl->rawTokens.cut(text, work.specialAsText)) {
    if (segment.token)
      work.tokens.push_back(*segment.token);
    else
      LLMRT_RETURN_IF_ERROR(impl->encodeText(text.substr(segment.span.begin, segment.span.size()),
                                             segment.span.begin == 0, work));
  }
  std::vector<int32_t> ids;
  const PipelineConfig &config = impl->config;
  ids.reserve(work.tokens.size() + config.prefixIds.size() + config.suffixIds.size());
  if (options.addSpecial)
    ids = config.prefixIds;
  for (uint32_t token : work.tokens)
    ids.push_back(impl->tables.idOf(token));
  if (options.addSpecial)
    ids.insert(ids.end(), config.suffixIds.begin(), config.suffixIds.end());
  return ids;
}

Result<std::string> Tokenizer::decode(std::span<const int32_t> ids, DecodeOptions options) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (int32_t id : ids) {
    std::optional<std::string_view> text = tokenText(id);
    if (text && !(options.skipSpecial && isSpecial(id)))
      tokens.emplace_back(*text);
  }
  LLMRT_ASSIGN_OR_RETURN(std::string text, impl->decoder.decode(std::move(tokens)));
  return options.cleanUpSpaces ? cleanUpSpaces(std::move(text)) : std::move(text);
}

Result<std::string> Tokenizer::tokenBytes(int32_t id) const {
  std::optional<std::string_view> text = tokenText(id);
  return text ? impl->decoder.bytesOf(*text) : std::string();
}

std::optional<std::string_view> Tokenizer::tokenText(int32_t id) const {
  std::optional<uint32_t> index = impl->tables.indexOf(id);
  return index ? std::optional(impl->tables.text(*index)) : std::nullopt;
}

std::optional<int32_t> Tokenizer::idOf(std::string_view spelled) const {
  for (const AddedEntry &entry : impl->config.added)
    if (entry.token.content == spelled)
      return entry.token.id;
  std::optional<uint32_t> index = impl->tables.find(spelled);
  return index ? std::optional(impl->tables.idOf(*index)) : std::nullopt;
}

int32_t Tokenizer::vocabSize() const { return impl->tables.maxId() + 1; }

Status Tokenizer::checkVocabulary(int64_t rows) const {
  if (vocabSize() <= rows)
    return Status::ok();
  const TokenizerTables &tables = impl->tables;
  uint32_t index = 0;
  while (tables.idOf(index) < rows)
    ++index;
  return invalidFile("token '" + std::string(tables.text(index)) + "' has the id " +
                     std::to_string(tables.idOf(index)) + ", but the model has only " +
                     std::to_string(rows) + " rows of embeddings");
}

bool Tokenizer::isToken(int32_t id) const { return impl->tables.indexOf(id).has_value(); }
bool Tokenizer::isSpecial(int32_t id) const {
  return std::binary_search(impl->specialIds.begin(), impl->specialIds.end(), id);
}
std::optional<int32_t> Tokenizer::bosId() const { return impl->config.bos; }
std::optional<int32_t> Tokenizer::eosId() const { return impl->config.eos; }
std::optional<int32_t> Tokenizer::padId() const { return impl->config.pad; }
std::optional<int32_t> Tokenizer::unknownId() const { return impl->config.unknown; }
bool Tokenizer::addsPrefix() const { return !impl->config.prefixIds.empty(); }
bool Tokenizer::addsSuffix() const { return !impl->config.suffixIds.empty(); }
bool Tokenizer::cleanUpSpacesByDefault() const { return impl->config.cleanUpSpaces; }
size_t Tokenizer::leadingSpacesDropped() const { return impl->decoder.leadingSpacesDropped(); }
bool Tokenizer::joinsWithSpaces() const { return impl->decoder.joinsWithSpaces(); }

} // namespace llmrt
