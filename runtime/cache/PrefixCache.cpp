#include "runtime/cache/PrefixCache.h"

#include "runtime/plan/KvGroups.h"
#include "runtime/support/Mix64.h"

#include <algorithm>
#include <array>
#include <bit>
#include <random>

namespace llmrt {
namespace {

/// Salts that are remembered. With more, all start anew: what was kept for them is not found any
/// more and leaves as the least recently used.
constexpr size_t maxRoots = 4096;

} // namespace

PrefixCache::PrefixCache(int32_t blocks, int64_t blockTokens, bool enabled,
                         std::vector<WindowPool> windows)
    : pool_(blocks), blockTokens_(blockTokens), enabled_(enabled),
      nodes_(static_cast<size_t>(blocks)), unused_(blocks), windows_(std::move(windows)) {
  assert(windows_.size() < maxKvGroups);
  if (!enabled)
    return;
  std::random_device device;
  seed_ = (uint64_t(device()) << 32) | device();
  tokens_ = std::make_unique_for_overwrite<int32_t[]>(static_cast<size_t>(blocks * blockTokens));
  buckets_.assign(std::bit_ceil(static_cast<size_t>(blocks)), -1);
}

PrefixCache::Serial PrefixCache::root(const std::string &salt, bool inLongContext) {
  if (!enabled_)
    return 0;
  std::pair key(salt, inLongContext);
  if (auto known = roots_.find(key); known != roots_.end())
    return known->second;
  if (roots_.size() >= maxRoots)
    roots_.clear();
  return roots_[key] = nextSerial_++;
}

size_t PrefixCache::bucketOf(Serial parent, std::span<const int32_t> tokens) const {
  uint64_t hash = mix64(seed_ + parent);
  for (int32_t token : tokens)
    hash = mix64(hash + static_cast<uint32_t>(token) + 1);
  return hash & (buckets_.size() - 1);
}

int32_t PrefixCache::child(Serial parent, std::span<const int32_t> tokens) const {
  int32_t block = buckets_[bucketOf(parent, tokens)];
  for (; block >= 0; block = node(block).next)
    if (node(block).parent == parent &&
        std::equal(tokens.begin(), tokens.end(),
                   &tokens_[static_cast<size_t>(block * blockTokens_)]))
      break;
  return block;
}

template <typename Each>
void PrefixCache::walk(Serial root, std::span<const int32_t> tokens, Each each) const {
  size_t size = static_cast<size_t>(blockTokens_);
  for (Serial last = root; root && tokens.size() >= size; tokens = tokens.subspan(size)) {
    int32_t block = child(last, tokens.first(size));
    if (block < 0)
      return;
    each(block);
    last = node(block).serial;
  }
}

class PrefixCache::Usable {
public:
  explicit Usable(const PrefixCache &cache) : cache_(cache) {}

  /// The chain's next block; true if the chain up to it can be used.
  bool add(int32_t block) {
    ++blocks_;
    bool usable = true;
    for (size_t i = 0; i < cache_.windows_.size(); ++i) {
      const WindowPool &window = cache_.windows_[i];
      run_[i] = window.beside(block) >= 0 ? run_[i] + 1 : 0;
      usable &= run_[i] >= blocks_ - window.firstNeeded(blocks_ * cache_.blockTokens_);
    }
    return usable;
  }
  int64_t blocks() const { return blocks_; }

private:
  const PrefixCache &cache_;
  int64_t blocks_ = 0;
  std::array<int64_t, maxKvGroups> run_{}; ///< blocks up to the last that each window has
};

PrefixCache::Serial PrefixCache::take(Serial root, std::span<const int32_t> tokens,
                                      std::vector<int32_t> &blocks,
                                      std::span<WindowBlocks> windows) {
  assert(windows.size() == windows_.size());
  Usable usable(*this);
  size_t before = blocks.size(), found = before;
  walk(root, tokens, [&](int32_t block) {
    blocks.push_back(block);
    if (usable.add(block))
      found = blocks.size();
  });
  blocks.resize(found);
  std::span<const int32_t> taken = std::span(blocks).subspan(before);
  for (int32_t block : taken)
    retain(block);
  for (size_t i = 0; i < windows.size(); ++i) {
    WindowBlocks &own = windows[i];
    own.firstBlock = windows_[i].firstNeeded(static_cast<int64_t>(taken.size()) * blockTokens_);
    own.blocks.assign(taken.size(), WindowBlocks::slidOut);
    for (size_t j = static_cast<size_t>(own.firstBlock); j < taken.size(); ++j)
      windows_[i].retain(own.blocks[j] = windows_[i].beside(taken[j]));
  }
  return taken.empty() ? root : node(taken.back()).serial;
}

PrefixCache::Found PrefixCache::find(Serial root, std::span<const int32_t> tokens) const {
  Usable usable(*this);
  Found found;
  int64_t unused = 0;
  walk(root, tokens, [&](int32_t block) {
    unused += pool_.references(block) == 1;
    if (usable.add(block))
      found = {usable.blocks(), unused};
  });
  return found;
}

PrefixCache::Added PrefixCache::add(Serial parent, std::span<const int32_t> tokens, int32_t block) {
  assert(tokens.size() == static_cast<size_t>(blockTokens_) && !node(block).serial);
  if (!enabled_ || !parent)
    return {block, 0};
  if (int32_t equal = child(parent, tokens); equal >= 0) {
    retain(equal);
    release(block);
    return {equal, node(equal).serial};
  }
  int32_t &bucket = buckets_[bucketOf(parent, tokens)];
  Node &added = node(block);
  added.serial = nextSerial_++;
  added.parent = parent;
  added.next = bucket;
  bucket = block;
  std::copy(tokens.begin(), tokens.end(), tokensOf(block).begin());
  pool_.retain(block);
  return {block, added.serial};
}

std::optional<BlockPool::Allocation> PrefixCache::allocate() {
  if (pool_.freeCount() == 0 && unused_.oldest() >= 0)
    evictOldest();
  return pool_.allocate();
}

void PrefixCache::retain(int32_t block) {
  if (node(block).serial && pool_.references(block) == 1)
    unused_.remove(block);
  pool_.retain(block);
}

void PrefixCache::release(int32_t block) {
  pool_.release(block);
  if (node(block).serial && pool_.references(block) == 1)
    unused_.append(block);
}

void PrefixCache::evictOldest() {
  int32_t block = unused_.oldest();
  unused_.remove(block);
  int32_t *link = &buckets_[bucketOf(node(block).parent, tokensOf(block))];
  while (*link != block)
    link = &node(*link).next;
  *link = node(block).next;
  node(block) = Node();
  for (WindowPool &window : windows_)
    window.forget(block);
  pool_.release(block);
}

} // namespace llmrt
