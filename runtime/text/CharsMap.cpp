#include "runtime/text/CharsMap.h"

#include "runtime/text/Utf8.h"

#include <cstring>
#include <utf8proc.h>

namespace llmrt {

Result<CharsMap> CharsMap::open(std::string_view bytes) {
  uint32_t trieBytes = 0;
  if (bytes.size() < sizeof(trieBytes))
    return invalidFile("precompiled_charsmap has " + std::to_string(bytes.size()) +
                       " bytes; its size field alone takes 4");
  std::memcpy(&trieBytes, bytes.data(), sizeof(trieBytes));
  bytes.remove_prefix(sizeof(trieBytes));
  if (trieBytes > bytes.size() || trieBytes % 4 || !trieBytes)
    return invalidFile("precompiled_charsmap says that its trie has " + std::to_string(trieBytes) +
                       " bytes, of " + std::to_string(bytes.size()) +
                       "; a multiple of 4 from 4 on is needed");
  CharsMap map;
  map.units.resize(trieBytes / 4);
  std::memcpy(map.units.data(), bytes.data(), trieBytes);
  map.replacements = bytes.substr(trieBytes);
  if (firstInvalidUtf8(map.replacements))
    return invalidFile("precompiled_charsmap has replacements that are not UTF-8");
  return map;
}

std::optional<CharsMap::Match> CharsMap::find(std::string_view text, bool shortest) const {
  auto offsetOf = [](uint32_t unit) { return (unit >> 10) << ((unit & 1u << 9) >> 6); };
  if (units.empty())
    return std::nullopt;
  std::optional<Match> match;
  uint32_t at = offsetOf(units[0]);
  for (size_t i = 0; i < text.size() && text[i]; ++i) {
    auto byte = static_cast<uint8_t>(text[i]);
    at ^= byte;
    if (at >= units.size() || (units[at] & 0x800000FF) != byte)
      break;
    const uint32_t unit = units[at];
    at ^= offsetOf(unit);
    if (!(unit >> 8 & 1) || at >= units.size())
      continue;
    uint32_t place = units[at] & 0x7FFFFFFF;
    if (place > replacements.size() ||
        (place < replacements.size() && (replacements[place] & 0xC0) == 0x80))
      continue; // a table that isn't sound
    size_t end = replacements.find('\0', place);
    match = Match{
        i + 1,
        std::string_view(replacements).substr(place, end == std::string::npos ? end : end - place)};
    if (shortest)
      break;
  }
  return match;
}

std::string CharsMap::applyToGraphemes(std::string_view text) const {
  // Longer clusters go by character.
  constexpr size_t kLongestCluster = 5;
  std::string out;
  out.reserve(text.size());
  utf8proc_int32_t state = 0;
  for (size_t begin = 0; begin < text.size();) {
    Utf8Step step = decodeUtf8(text, begin);
    size_t end = begin + step.size;
    state = 0;
    for (auto last = static_cast<utf8proc_int32_t>(step.codePoint); end < text.size();) {
      Utf8Step next = decodeUtf8(text, end);
      auto c = static_cast<utf8proc_int32_t>(next.codePoint);
      if (utf8proc_grapheme_break_stateful(last, c, &state))
        break;
      last = c;
      end += next.size;
    }
    std::string_view cluster = text.substr(begin, end - begin);
    begin = end;
    std::optional<Match> whole =
        cluster.size() <= kLongestCluster ? shortest(cluster) : std::nullopt;
    if (whole) {
      out += whole->replacement;
      continue;
    }
    for (size_t at = 0; at < cluster.size();) {
      std::string_view character = cluster.substr(at, utf8Width(cluster, at));
      at += character.size();
      std::optional<Match> match = shortest(character);
      out += match ? match->replacement : character;
    }
  }
  return out;
}

} // namespace llmrt
