//===- TokenTrie.h - all tokens that a text begins with ---------------------------===//
//
// A double-array trie over the bytes of the tokens (Aoe 1989), stored in a blob and used in
// place: node s has the child s' = base[s] + byte if check[s'] == s. Any bytes make a trie
// that can be walked: every step is checked.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_TEXT_TOKENTRIE_H
#define LLMRT_TEXT_TOKENTRIE_H

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace llmrt {

class TokenTrie {
public:
  struct Node {
    uint32_t base;
    uint32_t check; ///< the parent, or kFree
    uint32_t token; ///< token index + 1, or 0
  };
  static constexpr uint32_t kFree = UINT32_MAX;
  static constexpr uint32_t kRoot = 0;

  TokenTrie() = default;
  /// \p bytes are used in place; a whole number of nodes.
  explicit TokenTrie(std::span<const uint8_t> bytes)
      : nodes(bytes.data()), count(bytes.size() / sizeof(Node)) {}

  /// The bytes of a trie of \p texts; each text's token is its position. Empty texts are left
  /// out; of equal ones the last counts.
  static std::string build(const std::vector<std::string_view> &texts);

  size_t size() const { return count; }
  Node node(size_t index) const {
    Node result;
    std::memcpy(&result, nodes + index * sizeof(Node), sizeof(Node));
    return result;
  }

  /// Moves \p at down by \p byte; false if there is no such child.
  bool step(uint32_t &at, uint8_t byte) const {
    if (at >= count)
      return false;
    uint64_t next = uint64_t(node(at).base) + byte;
    if (next >= count || node(next).check != at)
      return false;
    at = static_cast<uint32_t>(next);
    return true;
  }

  /// Calls found(length, token index) for the tokens that \p text begins with, the shortest
  /// first.
  template <typename Found> void prefixesOf(std::string_view text, Found found) const {
    uint32_t at = kRoot;
    for (size_t i = 0; i < text.size() && step(at, static_cast<uint8_t>(text[i])); ++i)
      if (uint32_t token = node(at).token)
        found(i + 1, token - 1);
  }

private:
  const uint8_t *nodes = nullptr;
  size_t count = 0;
};

} // namespace llmrt

#endif // LLMRT_TEXT_TOKENTRIE_H
