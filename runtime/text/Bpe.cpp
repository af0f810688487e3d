#include "runtime/text/Bpe.h"

#include "runtime/text/Normalizer.h"
#include "runtime/text/Utf8.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace llmrt {

using Symbol = BpeScratch::Symbol;

// Up to this many symbols the next pair is found by looking at all of them.
static constexpr size_t kShort = 48;

static void link(std::vector<Symbol> &symbols) {
  for (size_t i = 0; i < symbols.size(); ++i) {
    symbols[i].previous = static_cast<int32_t>(i) - 1;
    symbols[i].next = i + 1 < symbols.size() ? static_cast<int32_t>(i) + 1 : -1;
  }
}

Bpe::Bpe(const TokenizerTables &tables, const PipelineConfig &config, bool mapsBytes)
    : tables(tables), kind(config.kind), fuseUnknown(config.fuseUnknown),
      ignoreMerges(config.ignoreMerges), mapsBytes(mapsBytes),
      continuingPrefix(config.continuingPrefix), endSuffix(config.endSuffix),
      unknown(config.modelUnknown) {
  for (char32_t c = 0; c < byCodePoint.size(); ++c) {
    std::string character;
    appendUtf8(character, c);
    byCodePoint[c] = tables.find(character).value_or(kNoToken);
  }
  byteTokens.fill(kNoToken);
  static_assert(kNoToken == blob::kFree);
  std::copy(config.byteTokens.begin(), config.byteTokens.end(), byteTokens.begin());
}

std::optional<uint32_t> Bpe::findCharacter(std::string_view character) const {
  Utf8Step step = decodeUtf8(character, 0);
  if (step.codePoint < byCodePoint.size() && step.size == character.size()) {
    uint32_t token = byCodePoint[step.codePoint];
    return token == kNoToken ? std::nullopt : std::optional(token);
  }
  return tables.find(character);
}

bool Bpe::appendBytes(std::string_view text, std::vector<uint32_t> &out) const {
  for (char c : text)
    if (byteTokens[static_cast<uint8_t>(c)] == kNoToken)
      return false;
  for (char c : text)
    out.push_back(byteTokens[static_cast<uint8_t>(c)]);
  return !text.empty();
}

/// Of up to 24 bytes, for the places of remembered pieces.
static size_t hashShort(std::string_view piece) {
  uint64_t head = 0, tail = 0, middle = 0;
  const size_t size = piece.size();
  if (size >= 8) {
    std::memcpy(&head, piece.data(), 8);
    std::memcpy(&tail, piece.data() + size - 8, 8);
    std::memcpy(&middle, piece.data() + size / 2 - 4, 8);
  } else {
    std::memcpy(&head, piece.data(), size);
  }
  uint64_t h = (head ^ size) * 0x9E3779B97F4A7C15u;
  h = (h ^ h >> 32 ^ tail) * 0xBF58476D1CE4E5B9u;
  h = (h ^ h >> 32 ^ middle) * 0x94D049BB133111EBu;
  return h >> 40;
}

void Bpe::encode(std::string_view piece, BpeScratch &scratch, std::vector<uint32_t> &out) const {
  if (piece.empty())
    return;
  if (scratch.remembered.empty() || piece.size() > sizeof(BpeScratch::Remembered::piece))
    return encodeNew(piece, scratch, out);
  BpeScratch::Remembered &place =
      scratch.remembered[hashShort(piece) & (scratch.remembered.size() - 1)];
  if (place.count && std::string_view(place.piece, place.size) == piece) {
    out.insert(out.end(), place.tokens, place.tokens + place.count);
    return;
  }
  const size_t before = out.size();
  encodeNew(piece, scratch, out);
  const size_t count = out.size() - before;
  if (count == 0 || count > std::size(place.tokens))
    return;
  std::memcpy(place.piece, piece.data(), piece.size());
  place.size = static_cast<uint8_t>(piece.size());
  place.count = static_cast<uint8_t>(count);
  std::copy_n(out.data() + before, count, place.tokens);
}

void Bpe::encodeNew(std::string_view piece, BpeScratch &scratch, std::vector<uint32_t> &out) const {
  if (mapsBytes) {
    scratch.mapped.clear();
    appendMappedBytes(piece, scratch.mapped);
    piece = scratch.mapped;
  }
  if (ignoreMerges)
    if (std::optional<uint32_t> whole = tables.find(piece)) {
      out.push_back(*whole);
      return;
    }
  Symbols &symbols = scratch.symbols;
  symbols.clear();
  if (kind == ModelKind::ScoredBpe)
    initialCharacters(piece, symbols);
  else
    initialSymbols(piece, symbols);
  if (symbols.empty())
    return;
  if (symbols.size() <= kShort)
    mergeShort(piece, symbols);
  else
    mergeLong(piece, scratch);
  if (kind == ModelKind::ScoredBpe)
    return emitScored(piece, symbols, out);
  for (int32_t i = 0; i >= 0; i = symbols[static_cast<size_t>(i)].next)
    out.push_back(symbols[static_cast<size_t>(i)].token);
}

void Bpe::initialSymbols(std::string_view piece, Symbols &symbols) const {
  auto add = [&](uint32_t token) { symbols.push_back({token, 0, kNoRank, 0, -1, -1}); };
  std::vector<uint32_t> bytes;
  // An unknown character's token waits for the next known one, so that it can be fused; bytes
  // of a fallback go before it (so does the reference implementation).
  bool unknownWaits = false;
  std::string decorated;
  for (size_t at = 0; at < piece.size();) {
    size_t width = utf8Width(piece, at);
    std::string_view character = piece.substr(at, width);
    bool first = at == 0, last = at + width >= piece.size();
    at += width;
    std::optional<uint32_t> token;
    if ((!first && !continuingPrefix.empty()) || (last && !endSuffix.empty())) {
      decorated =
          (first ? "" : continuingPrefix) + std::string(character) + (last ? endSuffix : "");
      character = decorated;
      token = tables.find(character);
    } else {
      token = findCharacter(character);
    }
    if (token) {
      if (unknownWaits)
        add(*unknown);
      unknownWaits = false;
      add(*token);
      continue;
    }
    bytes.clear();
    if (appendBytes(character, bytes)) {
      for (uint32_t byte : bytes)
        add(byte);
      continue;
    }
    if (!unknown)
      continue;
    if (unknownWaits && !fuseUnknown)
      add(*unknown);
    unknownWaits = true;
  }
  if (unknownWaits)
    add(*unknown);
  link(symbols);
}

void Bpe::initialCharacters(std::string_view piece, Symbols &symbols) const {
  for (size_t at = 0; at < piece.size(); at += utf8Width(piece, at))
    symbols.push_back({kNoToken, static_cast<uint32_t>(at), kNoRank, 0, -1, -1});
  link(symbols);
}

/// Looks up the pair of symbol \p left and the one after it.
void Bpe::updatePair(std::string_view piece, Symbols &symbols, size_t left) const {
  Symbol &a = symbols[left];
  a.rank = kNoRank;
  if (a.next < 0)
    return;
  const Symbol &b = symbols[static_cast<size_t>(a.next)];
  if (kind == ModelKind::RankedBpe) {
    if (std::optional<Merge> merge = tables.findMerge(a.token, b.token)) {
      a.rank = merge->rank;
      a.result = merge->result;
    }
    return;
  }
  size_t end = b.next < 0 ? piece.size() : symbols[static_cast<size_t>(b.next)].begin;
  if (std::optional<uint32_t> token = tables.find(piece.substr(a.begin, end - a.begin))) {
    a.rank = tables.rankOf(*token);
    a.result = *token;
  }
}

/// Merges symbol \p left with the one after it.
static void join(std::vector<Symbol> &symbols, size_t left) {
  Symbol &a = symbols[left];
  Symbol &b = symbols[static_cast<size_t>(a.next)];
  a.token = a.result;
  a.next = b.next;
  b.rank = Bpe::kNoRank; // it is gone: no pair begins there
  if (a.next >= 0)
    symbols[static_cast<size_t>(a.next)].previous = static_cast<int32_t>(left);
}

void Bpe::mergeShort(std::string_view piece, Symbols &symbols) const {
  for (size_t i = 0; i < symbols.size(); ++i)
    updatePair(piece, symbols, i);
  while (true) {
    size_t best = 0;
    uint32_t rank = kNoRank;
    for (size_t i = 0; i < symbols.size(); ++i) {
      if (symbols[i].rank < rank) {
        rank = symbols[i].rank;
        best = i;
      }
    }
    if (rank == kNoRank)
      return;
    join(symbols, best);
    updatePair(piece, symbols, best);
    if (symbols[best].previous >= 0)
      updatePair(piece, symbols, static_cast<size_t>(symbols[best].previous));
  }
}

void Bpe::mergeLong(std::string_view piece, BpeScratch &scratch) const {
  Symbols &symbols = scratch.symbols;
  MergeQueue &queue = scratch.queue;
  queue.reset(tables.rankCount());
  auto update = [&](size_t left) {
    updatePair(piece, symbols, left);
    if (symbols[left].rank != kNoRank)
      queue.push(symbols[left].rank, static_cast<uint32_t>(left));
  };
  for (size_t i = 0; i < symbols.size(); ++i)
    update(i);
  while (std::optional<MergeQueue::Entry> entry = queue.pop()) {
    size_t left = entry->position;
    if (symbols[left].rank != entry->rank)
      continue; // one of the two was merged meanwhile
    join(symbols, left);
    if (symbols[left].previous >= 0)
      update(static_cast<size_t>(symbols[left].previous));
    update(left);
  }
}

void Bpe::emitScored(std::string_view piece, const Symbols &symbols,
                     std::vector<uint32_t> &out) const {
  bool afterUnknown = false;
  for (int32_t i = 0; i >= 0; i = symbols[static_cast<size_t>(i)].next) {
    const Symbol &symbol = symbols[static_cast<size_t>(i)];
    size_t end = symbol.next < 0 ? piece.size() : symbols[static_cast<size_t>(symbol.next)].begin;
    std::string_view text = piece.substr(symbol.begin, end - symbol.begin);
    std::optional<uint32_t> token =
        symbol.token != kNoToken ? std::optional(symbol.token) : findCharacter(text);
    bool isUnknown = false;
    if (token) {
      out.push_back(*token);
    } else if (!appendBytes(text, out) && unknown) {
      isUnknown = true;
      if (!afterUnknown || !fuseUnknown)
        out.push_back(*unknown);
    }
    afterUnknown = isUnknown;
  }
}

} // namespace llmrt
