//===- PrefixCache.h - KV blocks that later requests may share --------------===//
//
// A radix tree over full KV blocks. A node is one block: the tokens in it, and the node that stands
// before it. A hash table finds the child of a node by its tokens. The hash only chooses a bucket:
// parent and tokens are compared, so no collision, found or forged, can give a request the keys and
// values of another text. Nodes are named by serial numbers that are never used twice: when a block
// is evicted and written anew, nothing that was chained behind its old content is reachable.
// Requests with different salts (tenant, adapter) start from different roots.
//
// The cache owns one reference of each of its blocks. Blocks that no sequence uses wait in a list,
// least recently used first; a sequence releases its blocks from the last to the first, so the
// list's head is always a leaf of the tree. All memory is taken when it is made.
//
// Layers with narrower windows have blocks of their own beside the tree's (WindowPool.h): a text is
// found as far as those are there that the next token sees.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_CACHE_PREFIXCACHE_H
#define LLMRT_CACHE_PREFIXCACHE_H

#include "runtime/cache/WindowPool.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace llmrt {

class PrefixCache {
public:
  /// Of a node; 0 is none. Roots are nodes without a block.
  using Serial = uint64_t;

  /// A pool of \p blocks blocks of \p blockTokens tokens. Without \p enabled nothing is kept or
  /// found, and this is only the pool.
  PrefixCache(int32_t blocks, int64_t blockTokens, bool enabled,
              std::vector<WindowPool> windows = {});

  bool enabled() const { return enabled_; }
  /// Where requests with \p salt begin; \p inLongContext has a root of its own.
  Serial root(const std::string &salt, bool inLongContext = false);

  /// Finds the longest chain of blocks from \p root whose tokens begin \p tokens, takes a reference
  /// of each and appends them to \p blocks, which has room; returns the last node (\p root if there
  /// is none). The same for \p windows, one a pool, from the first block that the next token sees.
  Serial take(Serial root, std::span<const int32_t> tokens, std::vector<int32_t> &blocks,
              std::span<WindowBlocks> windows = {});
  /// The same without taking: blocks found, and how many of them no sequence uses.
  struct Found {
    int64_t blocks = 0, unused = 0;
  };
  Found find(Serial root, std::span<const int32_t> tokens) const;

  struct Added {
    int32_t block; ///< what the caller uses from now on: its own, or an equal one that was there
    Serial node;   ///< 0: it is not kept, and neither can blocks after it be
  };
  /// Keeps \p block, a full one that holds \p tokens after \p parent. If there is such a block
  /// already, its reference is exchanged for one of that: equal tokens have equal bits.
  Added add(Serial parent, std::span<const int32_t> tokens, int32_t block);

  /// A block for a sequence: a free one, or the least recently used that nobody uses. None when all
  /// are used.
  std::optional<BlockPool::Allocation> allocate();
  void retain(int32_t block);
  void release(int32_t block);

  /// Blocks that allocate() could give.
  int64_t available() const { return pool_.freeCount() + unused_.size(); }
  int64_t capacity() const { return pool_.capacity(); }
  /// Blocks that only the cache holds.
  int64_t unused() const { return unused_.size(); }
  /// Others than the cache that hold \p block.
  uint32_t users(int32_t block) const {
    return pool_.references(block) - (node(block).serial ? 1 : 0);
  }
  /// Of the layers with narrower windows, the widest first.
  std::vector<WindowPool> &windows() { return windows_; }
  const std::vector<WindowPool> &windows() const { return windows_; }

private:
  struct Node {
    Serial serial = 0; ///< 0: the block is not kept
    Serial parent = 0;
    int32_t next = -1; ///< in the bucket
  };
  Node &node(int32_t block) { return nodes_[static_cast<size_t>(block)]; }
  const Node &node(int32_t block) const { return nodes_[static_cast<size_t>(block)]; }
  size_t bucketOf(Serial parent, std::span<const int32_t> tokens) const;
  int32_t child(Serial parent, std::span<const int32_t> tokens) const;
  std::span<int32_t> tokensOf(int32_t block) {
    return {&tokens_[static_cast<size_t>(block * blockTokens_)], static_cast<size_t>(blockTokens_)};
  }
  /// Calls \p each with the blocks of the longest chain, in order.
  template <typename Each> void walk(Serial root, std::span<const int32_t> tokens, Each each) const;
  /// How much of a chain can be used: walks with the blocks up to it.
  class Usable;
  void evictOldest();

  BlockPool pool_;
  int64_t blockTokens_;
  bool enabled_;
  uint64_t seed_;                     ///< of the buckets: nobody can know which texts share one
  std::vector<Node> nodes_;           ///< [blocks]
  std::unique_ptr<int32_t[]> tokens_; ///< [blocks, blockTokens], touched as blocks are kept
  std::vector<int32_t> buckets_;
  BlockQueue unused_; ///< blocks that no sequence uses
  std::vector<WindowPool> windows_;
  Serial nextSerial_ = 1;
  std::map<std::pair<std::string, bool>, Serial> roots_;
};

} // namespace llmrt

#endif // LLMRT_CACHE_PREFIXCACHE_H
