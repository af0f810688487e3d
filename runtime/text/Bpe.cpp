#include "runtime/text/Bpe.h"

#include "runtime/text/Utf8.h"

#include <algorithm>

namespace llmrt {

using Symbol = BpeScratch::Symbol;
using Candidate = BpeScratch::Candidate;

namespace {

/// std::push_heap keeps the greatest on top; the smallest (priority, position) shall be there.
bool later(const Candidate &a, const Candidate &b) {
  return a.priority != b.priority ? a.priority > b.priority : a.position > b.position;
}

/// A finite float as an integer that descends with it: the order of sign-magnitude numbers.
uint32_t descendingKey(float score) {
  auto bits = std::bit_cast<uint32_t>(score == 0 ? 0.0f : score); // -0 and 0 are equal
  uint32_t ascending = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return ~ascending;
}

/// Joins \p left with the symbol after it.
void joinWithNext(std::vector<Symbol> &symbols, uint32_t left, uint32_t token) {
  Symbol &a = symbols[left];
  Symbol &b = symbols[static_cast<size_t>(a.next)];
  a.token = token;
  a.end = b.end;
  a.next = b.next;
  b.begin = b.end; // marks it as gone
  if (a.next >= 0)
    symbols[static_cast<size_t>(a.next)].previous = static_cast<int32_t>(left);
}

void link(std::vector<Symbol> &symbols) {
  for (size_t i = 0; i < symbols.size(); ++i) {
    symbols[i].previous = static_cast<int32_t>(i) - 1;
    symbols[i].next = i + 1 < symbols.size() ? static_cast<int32_t>(i) + 1 : -1;
  }
}

} // namespace

Bpe::Bpe(const TokenizerTables &tables, const PipelineConfig &config)
    : tables(tables), mode(config.mode), fuseUnknown(config.fuseUnknown),
      ignoreMerges(config.ignoreMerges), continuingPrefix(config.continuingPrefix),
      endSuffix(config.endSuffix), unknown(config.modelUnknown) {
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

void Bpe::encode(std::string_view piece, BpeScratch &scratch, std::vector<uint32_t> &out) const {
  if (piece.empty())
    return;
  if (ignoreMerges)
    if (std::optional<uint32_t> whole = tables.find(piece)) {
      out.push_back(*whole);
      return;
    }
  scratch.symbols.clear();
  scratch.heap.clear();
  if (mode == MergeMode::Score) {
    initialCharacters(piece, scratch);
    mergeByScore(piece, scratch);
    emitScored(piece, scratch, out);
    return;
  }
  initialSymbols(piece, scratch);
  if (scratch.symbols.empty())
    return;
  mergeByRank(scratch);
  for (int32_t i = 0; i >= 0; i = scratch.symbols[static_cast<size_t>(i)].next)
    out.push_back(scratch.symbols[static_cast<size_t>(i)].token);
}

void Bpe::initialSymbols(std::string_view piece, BpeScratch &scratch) const {
  auto add = [&](uint32_t token) {
    // Positions matter only as an order here; 0 < 1 marks the symbol as present.
    scratch.symbols.push_back({token, 0, 1, -1, -1});
  };
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
  link(scratch.symbols);
}

void Bpe::mergeByRank(BpeScratch &scratch) const {
  std::vector<Symbol> &symbols = scratch.symbols;
  std::vector<Candidate> &heap = scratch.heap;
  auto candidate = [&](int32_t left) -> std::optional<Candidate> {
    const Symbol &a = symbols[static_cast<size_t>(left)];
    uint32_t right = symbols[static_cast<size_t>(a.next)].token;
    std::optional<Merge> merge = tables.findMerge(a.token, right);
    if (!merge)
      return std::nullopt;
    return Candidate{merge->rank, static_cast<uint32_t>(left), a.token, right, merge->result};
  };
  for (size_t i = 0; i + 1 < symbols.size(); ++i)
    if (std::optional<Candidate> c = candidate(static_cast<int32_t>(i)))
      heap.push_back(*c);
  std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    Candidate top = heap.back();
    heap.pop_back();
    const Symbol &a = symbols[top.position];
    if (a.begin == a.end || a.next < 0 || a.token != top.left ||
        symbols[static_cast<size_t>(a.next)].token != top.right)
      continue; // one of the two was merged meanwhile
    joinWithNext(symbols, top.position, top.result);
    for (int32_t left : {a.previous, static_cast<int32_t>(top.position)}) {
      if (left < 0 || symbols[static_cast<size_t>(left)].next < 0)
        continue;
      if (std::optional<Candidate> c = candidate(left)) {
        heap.push_back(*c);
        std::push_heap(heap.begin(), heap.end(), later);
      }
    }
  }
}

void Bpe::initialCharacters(std::string_view piece, BpeScratch &scratch) const {
  for (size_t at = 0; at < piece.size();) {
    size_t width = utf8Width(piece, at);
    scratch.symbols.push_back(
        {kNoToken, static_cast<uint32_t>(at), static_cast<uint32_t>(at + width), -1, -1});
    at += width;
  }
  link(scratch.symbols);
}

void Bpe::mergeByScore(std::string_view piece, BpeScratch &scratch) const {
  std::vector<Symbol> &symbols = scratch.symbols;
  std::vector<Candidate> &heap = scratch.heap;
  auto candidate = [&](int32_t left) -> std::optional<Candidate> {
    const Symbol &a = symbols[static_cast<size_t>(left)];
    const Symbol &b = symbols[static_cast<size_t>(a.next)];
    std::optional<uint32_t> token = tables.find(piece.substr(a.begin, b.end - a.begin));
    if (!token)
      return std::nullopt;
    return Candidate{descendingKey(tables.score(*token)), static_cast<uint32_t>(left), a.begin,
                     b.end, *token};
  };
  for (size_t i = 0; i + 1 < symbols.size(); ++i)
    if (std::optional<Candidate> c = candidate(static_cast<int32_t>(i)))
      heap.push_back(*c);
  std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    Candidate top = heap.back();
    heap.pop_back();
    const Symbol &a = symbols[top.position];
    if (a.begin == a.end || a.next < 0 || symbols[static_cast<size_t>(a.next)].end != top.right)
      continue; // one of the two was merged meanwhile
    joinWithNext(symbols, top.position, top.result);
    for (int32_t left : {a.previous, static_cast<int32_t>(top.position)}) {
      if (left < 0 || symbols[static_cast<size_t>(left)].next < 0)
        continue;
      if (std::optional<Candidate> c = candidate(left)) {
        heap.push_back(*c);
        std::push_heap(heap.begin(), heap.end(), later);
      }
    }
  }
}

void Bpe::emitScored(std::string_view piece, const BpeScratch &scratch,
                     std::vector<uint32_t> &out) const {
  bool afterUnknown = false;
  for (int32_t i = 0; i >= 0; i = scratch.symbols[static_cast<size_t>(i)].next) {
    const Symbol &symbol = scratch.symbols[static_cast<size_t>(i)];
    std::string_view text = piece.substr(symbol.begin, symbol.end - symbol.begin);
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
