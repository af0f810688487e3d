#include "runtime/decode/grammar/VocabularyTrie.h"

#include <algorithm>
#include <numeric>

namespace llmrt {

std::shared_ptr<const VocabularyTrie>
VocabularyTrie::build(int32_t vocabulary, const std::function<std::string(int32_t)> &bytesOf) {
  auto trie = std::make_shared<VocabularyTrie>();
  trie->vocabulary_ = vocabulary;
  trie->starts_.push_back(0);
  for (int32_t id = 0; id < vocabulary; ++id) {
    std::string bytes = bytesOf(id);
    if (bytes.size() <= UINT16_MAX)
      trie->text_ += bytes;
    trie->starts_.push_back(static_cast<uint32_t>(trie->text_.size()));
  }
  std::vector<int32_t> &order = trie->ids_;
  for (int32_t id = 0; id < vocabulary; ++id)
    if (!trie->bytes(id).empty())
      order.push_back(id);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    int c = trie->bytes(a).compare(trie->bytes(b));
    return c < 0 || (c == 0 && a < b);
  });
  std::vector<uint32_t> path; // nodes from the root to the last token's
  std::string_view before;
  auto close = [&](size_t depth) {
    for (; path.size() > depth; path.pop_back())
      trie->nodes_[path.back()].end = static_cast<uint32_t>(trie->nodes_.size());
  };
  for (size_t i = 0; i < order.size(); ++i) {
    std::string_view bytes = trie->bytes(order[i]);
    size_t common = static_cast<size_t>(
        std::mismatch(before.begin(), before.end(), bytes.begin(), bytes.end()).first -
        before.begin());
    close(common);
    for (size_t d = common; d < bytes.size(); ++d) {
      path.push_back(static_cast<uint32_t>(trie->nodes_.size()));
      trie->nodes_.push_back({0, static_cast<uint32_t>(i), 0, static_cast<uint16_t>(d + 1),
                              static_cast<uint8_t>(bytes[d])});
    }
    Node &last = trie->nodes_[path.back()];
    if (last.count == 0)
      last.first = static_cast<uint32_t>(i);
    ++last.count;
    trie->deepest_ = std::max(trie->deepest_, bytes.size());
    before = bytes;
  }
  close(0);
  return trie;
}

} // namespace llmrt
