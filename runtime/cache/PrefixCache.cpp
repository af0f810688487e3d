#include "runtime/cache/PrefixCache.h"

#include "runtime/support/Mix64.h"

#include <algorithm>
#include <bit>
#include <random>

namespace llmrt {
namespace {

/// Salts that are remembered. With more, all start anew: what was kept for them is not found any
/// more and leaves as the least recently used.
constexpr size_t maxRoots = 4096;

} // namespace

PrefixCache::PrefixCache(int32_t blocks, int64_t blockTokens, bool enabled)
    : pool_(blocks), blockTokens_(blockTokens), enabled_(enabled),
      nodes_(static_cast<size_t>(blocks)) {
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

PrefixCache::Serial PrefixCache::take(Serial root, std::span<const int32_t> tokens,
                                      std::vector<int32_t> &blocks) {
  size_t size = static_cast<size_t>(blockTokens_);
  Serial last = root;
  for (; root && tokens.size() >= size; tokens = tokens.subspan(size)) {
    int32_t block = child(last, tokens.first(size));
    if (block < 0)
      break;
    retain(block);
    blocks.push_back(block);
    last = node(block).serial;
  }
  return last;
}

PrefixCache::Found PrefixCache::find(Serial root, std::span<const int32_t> tokens) const {
  size_t size = static_cast<size_t>(blockTokens_);
  Found found;
  for (Serial last = root; root && tokens.size() >= size; tokens = tokens.subspan(size)) {
    int32_t block = child(last, tokens.first(size));
    if (block < 0)
      break;
    ++found.blocks;
    found.unused += pool_.references(block) == 1;
    last = node(block).serial;
  }
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
  if (pool_.freeCount() == 0 && oldest_ >= 0)
    evictOldest();
  return pool_.allocate();
}

void PrefixCache::retain(int32_t block) {
  if (node(block).serial && pool_.references(block) == 1)
    unlink(block);
  pool_.retain(block);
}

void PrefixCache::release(int32_t block) {
  pool_.release(block);
  if (node(block).serial && pool_.references(block) == 1)
    append(block);
}

void PrefixCache::append(int32_t block) {
  Node &n = node(block);
  n.older = newest_;
  n.newer = -1;
  (newest_ >= 0 ? node(newest_).newer : oldest_) = block;
  newest_ = block;
  ++unused_;
}

void PrefixCache::unlink(int32_t block) {
  Node &n = node(block);
  (n.older >= 0 ? node(n.older).newer : oldest_) = n.newer;
  (n.newer >= 0 ? node(n.newer).older : newest_) = n.older;
  --unused_;
}

void PrefixCache::evictOldest() {
  int32_t block = oldest_;
  unlink(block);
  int32_t *link = &buckets_[bucketOf(node(block).parent, tokensOf(block))];
  while (*link != block)
    link = &node(*link).next;
  *link = node(block).next;
  node(block) = Node();
  pool_.release(block);
}

} // namespace llmrt
