//===- AddedTokens.h - finds added tokens in text -------------------------------===//
#ifndef LLMRT_TEXT_ADDEDTOKENS_H
#define LLMRT_TEXT_ADDEDTOKENS_H

#include "runtime/text/Pattern.h"
#include "runtime/text/TokenizerBlob.h"

#include <array>

namespace llmrt {

/// A stretch of text: an added token, or text between them.
struct Segment {
  Span span;
  std::optional<uint32_t> token; ///< token index
};

/// Leftmost-longest search for a set of literal patterns. The patterns stay where they are,
/// sorted; a search narrows the range of candidates byte by byte.
class AddedTokens {
public:
  AddedTokens() = default;
  /// The entries of \p added that are \p normalized; \p added must outlive it.
  AddedTokens(const std::vector<AddedEntry> &added, bool normalized);

  /// Cuts \p text. With \p specialAsText special tokens are found and left as text.
  std::vector<Segment> cut(std::string_view text, bool specialAsText) const;

private:
  struct Found {
    const AddedEntry *entry;
    size_t length;
  };
  std::optional<Found> longestAt(std::string_view text, size_t at) const;

  std::vector<const AddedEntry *> entries; ///< by pattern; of equal ones the first
  std::array<bool, 256> firstBytes{};
};

} // namespace llmrt

#endif // LLMRT_TEXT_ADDEDTOKENS_H
