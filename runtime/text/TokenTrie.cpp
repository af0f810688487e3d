#include "runtime/text/TokenTrie.h"

#include <algorithm>

namespace llmrt {

namespace {

class Builder {
public:
  explicit Builder(const std::vector<std::string_view> &texts) : texts(texts) {
    for (uint32_t i = 0; i < texts.size(); ++i)
      if (!texts[i].empty())
        order.push_back(i);
    // Bytes compare as unsigned; of equal texts the last one comes last.
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return std::pair(texts[a], a) < std::pair(texts[b], b);
    });
    nodes.push_back({0, TokenTrie::kFree, 0});
    // Depth first with a stack of our own: a token may be long.
    std::vector<Range> open{{0, order.size(), 0, TokenTrie::kRoot}};
    while (!open.empty()) {
      Range range = open.back();
      open.pop_back();
      expand(range, open);
    }
  }
  std::vector<TokenTrie::Node> nodes;

private:
  /// The tokens order[begin, end) share their first `depth` bytes, which lead to `node`.
  struct Range {
    size_t begin, end, depth;
    uint32_t node;
  };

  uint8_t byteAt(size_t position, size_t depth) const {
    return static_cast<uint8_t>(texts[order[position]][depth]);
  }

  void expand(Range range, std::vector<Range> &open) {
    while (range.begin < range.end && texts[order[range.begin]].size() == range.depth)
      nodes[range.node].token = order[range.begin++] + 1;
    if (range.begin == range.end)
      return;
    std::vector<Range> children;
    for (size_t at = range.begin; at < range.end;) {
      size_t end = at + 1;
      while (end < range.end && byteAt(end, range.depth) == byteAt(at, range.depth))
        ++end;
      children.push_back({at, end, range.depth + 1, byteAt(at, range.depth)});
      at = end;
    }
    uint32_t base = findBase(children);
    nodes[range.node].base = base;
    for (Range &child : children) {
      child.node += base;
      nodes[child.node] = {0, range.node, 0};
    }
    open.insert(open.end(), children.begin(), children.end());
  }

  bool isFree(size_t index) const {
    return index >= nodes.size() || nodes[index].check == TokenTrie::kFree;
  }

  /// The first base at which all children (their bytes are in `node`) fall on free nodes.
  uint32_t findBase(const std::vector<Range> &children) {
    while (!isFree(firstFree))
      ++firstFree;
    uint32_t first = children.front().node;
    size_t tried = 0;
    for (size_t slot = std::max<size_t>(firstFree, first + 1);; ++slot) {
      ++tried;
      if (!isFree(slot))
        continue;
      auto base = static_cast<uint32_t>(slot - first);
      bool fits = true;
      for (const Range &child : children)
        fits &= isFree(size_t(base) + child.node);
      if (fits) {
        size_t needed = size_t(base) + children.back().node + 1;
        if (needed > nodes.size())
          nodes.resize(needed, {0, TokenTrie::kFree, 0});
        // A region that was searched long in vain is full enough: don't search it again.
        if (tried > 512)
          firstFree = slot;
        return base;
      }
    }
  }

  const std::vector<std::string_view> &texts;
  std::vector<uint32_t> order;
  size_t firstFree = 1;
};

} // namespace

std::string TokenTrie::build(const std::vector<std::string_view> &texts) {
  Builder builder(texts);
  return std::string(reinterpret_cast<const char *>(builder.nodes.data()),
                     builder.nodes.size() * sizeof(Node));
}

} // namespace llmrt
