#include "runtime/text/AddedTokens.h"

#include "runtime/text/Unicode.h"
#include "runtime/text/Utf8.h"

#include <algorithm>

namespace llmrt {

AddedTokens::AddedTokens(const std::vector<AddedEntry> &added, bool normalized) {
  for (const AddedEntry &entry : added) {
    if (entry.token.normalized != normalized || entry.pattern.empty() ||
        (!entries.empty() && entries.back()->pattern == entry.pattern))
      continue;
    entries.push_back(&entry);
    firstBytes[static_cast<uint8_t>(entry.pattern[0])] = true;
  }
}

std::optional<AddedTokens::Found> AddedTokens::longestAt(std::string_view text, size_t at) const {
  // Entries [low, high) start with text[at, at + depth).
  auto low = entries.begin(), high = entries.end();
  std::optional<Found> best;
  for (size_t depth = 0; low != high; ++depth) {
    if ((*low)->pattern.size() == depth) {
      best = Found{*low, depth};
      ++low;
    }
    if (at + depth == text.size())
      break;
    auto byte = static_cast<uint8_t>(text[at + depth]);
    auto key = [&](const AddedEntry *entry) { return static_cast<uint8_t>(entry->pattern[depth]); };
    low = std::lower_bound(low, high, byte,
                           [&](const AddedEntry *entry, uint8_t b) { return key(entry) < b; });
    high = std::upper_bound(low, high, byte,
                            [&](uint8_t b, const AddedEntry *entry) { return b < key(entry); });
  }
  return best;
}

namespace {

bool wordBefore(std::string_view text, size_t at) {
  if (at == 0)
    return false;
  size_t begin = at - 1;
  while (begin > 0 && (static_cast<uint8_t>(text[begin]) & 0xC0) == 0x80)
    --begin;
  return isUnicodeWord(decodeUtf8(text, begin).codePoint);
}

bool wordAfter(std::string_view text, size_t at) {
  return at < text.size() && isUnicodeWord(decodeUtf8(text, at).codePoint);
}

/// Where the white space that ends at \p at begins, not before \p floor.
size_t spaceBegin(std::string_view text, size_t floor, size_t at) {
  while (at > floor) {
    size_t begin = at - 1;
    while (begin > floor && (static_cast<uint8_t>(text[begin]) & 0xC0) == 0x80)
      --begin;
    if (!isUnicodeSpace(decodeUtf8(text, begin).codePoint))
      break;
    at = begin;
  }
  return at;
}

size_t spaceEnd(std::string_view text, size_t at) {
  while (at < text.size()) {
    Utf8Step step = decodeUtf8(text, at);
    if (!isUnicodeSpace(step.codePoint))
      break;
    at += step.size;
  }
  return at;
}

} // namespace

std::vector<Segment> AddedTokens::cut(std::string_view text, bool specialAsText) const {
  std::vector<Segment> segments;
  size_t done = 0; // all before is in a segment
  size_t at = 0;
  while (!entries.empty() && at < text.size()) {
    if (!firstBytes[static_cast<uint8_t>(text[at])]) {
      ++at;
      continue;
    }
    std::optional<Found> found = longestAt(text, at);
    if (!found) {
      ++at;
      continue;
    }
    const AddedToken &token = found->entry->token;
    size_t begin = at, end = at + found->length;
    at = end;
    if (specialAsText && token.special)
      continue;
    if (token.singleWord && (wordBefore(text, begin) || wordAfter(text, end)))
      continue;
    if (token.lstrip)
      begin = std::max(done, spaceBegin(text, std::min(done, begin), begin));
    if (token.rstrip)
      end = spaceEnd(text, end);
    if (begin >= end) // all of it is the white space that the token before took along
      continue;
    if (done < begin)
      segments.push_back({{done, begin}, std::nullopt});
    segments.push_back({{begin, end}, found->entry->index});
    done = std::max(done, end);
  }
  if (done < text.size())
    segments.push_back({{done, text.size()}, std::nullopt});
  return segments;
}

} // namespace llmrt
