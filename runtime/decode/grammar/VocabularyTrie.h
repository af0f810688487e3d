//===- VocabularyTrie.h - a vocabulary's tokens by their bytes -------------------===//
#ifndef LLMRT_DECODE_GRAMMAR_VOCABULARYTRIE_H
#define LLMRT_DECODE_GRAMMAR_VOCABULARYTRIE_H

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace llmrt {

/// What tokens add to a text, for grammars, which work on bytes. Immutable; one a tokenizer.
class VocabularyTrie {
public:
  /// \p bytesOf gives what an id below \p vocabulary adds to a text: nothing for ids that are no
  /// tokens and for control tokens, which no grammar can want.
  static std::shared_ptr<const VocabularyTrie>
  build(int32_t vocabulary, const std::function<std::string(int32_t)> &bytesOf);

  /// A node per distinct beginning, in depth-first order.
  struct Node {
    uint32_t end;   ///< index behind its subtree
    uint32_t first; ///< into ids(): the tokens that end here ...
    uint16_t count; ///< ... and how many
    uint16_t depth; ///< bytes from the root: 1 or more
    uint8_t byte;
  };
  std::span<const Node> nodes() const { return nodes_; }
  std::span<const int32_t> ids() const { return ids_; }
  int32_t vocabulary() const { return vocabulary_; }
  size_t deepest() const { return deepest_; }
  std::string_view bytes(int32_t id) const {
    size_t i = static_cast<size_t>(id);
    return std::string_view(text_).substr(starts_[i], starts_[i + 1] - starts_[i]);
  }

private:
  int32_t vocabulary_ = 0;
  size_t deepest_ = 0;
  std::vector<Node> nodes_;
  std::vector<int32_t> ids_;
  std::string text_;             ///< of all tokens
  std::vector<uint32_t> starts_; ///< [vocabulary + 1]
};

} // namespace llmrt

#endif // LLMRT_DECODE_GRAMMAR_VOCABULARYTRIE_H
