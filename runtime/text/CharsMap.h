//===- CharsMap.h - SentencePiece's table of character normalizations -------------===//
//
// `precompiled_charsmap`: u32 size of a trie in bytes, the trie, then the replacements, each ended
// by a zero byte. The trie is a Darts-clone double array of u32 units; a unit has a label (bits
// 0-7 and 31), an offset to its children (bits 10-30, times 256 if bit 9 is set), and whether it
// has a value (bit 8), the place of a replacement (bits 0-30 of the child by zero).
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_TEXT_CHARSMAP_H
#define LLMRT_TEXT_CHARSMAP_H

#include "runtime/support/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llmrt {

class CharsMap {
public:
  CharsMap() = default; ///< replaces nothing
  /// InvalidFile if \p bytes are no such table. Any table that is opened can be searched.
  static Result<CharsMap> open(std::string_view bytes);

  struct Match {
    size_t length; ///< of the text that is replaced
    std::string_view replacement;
  };
  /// The shortest, the longest text in the table that \p text begins with.
  std::optional<Match> shortest(std::string_view text) const { return find(text, true); }
  std::optional<Match> longest(std::string_view text) const { return find(text, false); }

  /// \p text as the `tokenizers` library normalizes it: by grapheme clusters (UAX #29) of up to
  /// five bytes, then by characters, with the shortest match taken for the whole.
  std::string applyToGraphemes(std::string_view text) const;

private:
  std::optional<Match> find(std::string_view text, bool shortest) const;
  std::vector<uint32_t> units;
  std::string replacements;
};

} // namespace llmrt

#endif // LLMRT_TEXT_CHARSMAP_H
