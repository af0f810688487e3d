#include "runtime/cache/PrefixCache.h"

#include <gtest/gtest.h>

using namespace llmrt;

namespace {

using Tokens = std::vector<int32_t>;

/// Keeps the full blocks of \p tokens and releases them all, as a request does that ends.
void keep(PrefixCache &cache, const std::string &salt, const Tokens &tokens, size_t blockTokens) {
  std::vector<int32_t> blocks;
  PrefixCache::Serial node = cache.take(cache.root(salt), tokens, blocks);
  for (size_t i = blocks.size(); (i + 1) * blockTokens <= tokens.size(); ++i) {
    std::optional<BlockPool::Allocation> block = cache.allocate();
    ASSERT_TRUE(block);
    auto added =
        cache.add(node, std::span(tokens).subspan(i * blockTokens, blockTokens), block->block);
    blocks.push_back(added.block);
    node = added.node;
  }
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block)
    cache.release(*block);
}

int64_t found(PrefixCache &cache, const std::string &salt, const Tokens &tokens) {
  return cache.find(cache.root(salt), tokens).blocks;
}

TEST(PrefixCache, A11_BlocksWhoseHashesCollideElsewhereAreToldApart) {
  PrefixCache cache(8, 2, true);
  keep(cache, "", {10, 100}, 2); // 31 * 10 + 100 = 31 * 11 + 69
  EXPECT_EQ(found(cache, "", {10, 100}), 1);
  EXPECT_EQ(found(cache, "", {11, 69}), 0);
}

TEST(PrefixCache, A11_EqualTokensAfterAnotherBeginningAreAnotherText) {
  PrefixCache cache(8, 2, true);
  keep(cache, "", {1, 2, 7, 8}, 2);
  EXPECT_EQ(found(cache, "", {1, 2, 7, 8, 9}), 2);
  EXPECT_EQ(found(cache, "", {3, 4, 7, 8}), 0);
  EXPECT_EQ(found(cache, "", {7, 8}), 0);
}

TEST(PrefixCache, A14_SaltsShareNothing) {
  PrefixCache cache(8, 2, true);
  keep(cache, "tenant a", {1, 2}, 2);
  EXPECT_EQ(found(cache, "tenant a", {1, 2}), 1);
  EXPECT_EQ(found(cache, "tenant b", {1, 2}), 0);
  EXPECT_EQ(found(cache, "", {1, 2}), 0);
}

// The buckets' seed is random: with two buckets, 64 other beginnings of the same tokens and 64 other
// tokens meet the kept block's bucket whatever the seed.
TEST(PrefixCache, SharingABucketIsNoMatch) {
  PrefixCache cache(2, 2, true);
  keep(cache, "", {1, 2}, 2);
  for (int32_t i = 0; i < 64; ++i) {
    EXPECT_EQ(found(cache, "tenant " + std::to_string(i), {1, 2}), 0);
    EXPECT_EQ(found(cache, "", {1, 3 + i}), 0);
  }
  EXPECT_EQ(found(cache, "", {1, 2}), 1);
}

TEST(PrefixCache, TheLeastRecentlyUsedTextLosesItsEndFirst) {
  PrefixCache cache(4, 2, true);
  keep(cache, "", {1, 2, 3, 4}, 2);
  keep(cache, "", {5, 6, 7, 8}, 2);
  keep(cache, "", {1, 2}, 2); // used again
  int32_t block = cache.allocate()->block;
  EXPECT_EQ(found(cache, "", {1, 2, 3, 4}), 1) << "its end is the oldest";
  EXPECT_EQ(found(cache, "", {5, 6, 7, 8}), 2);
  int32_t second = cache.allocate()->block;
  EXPECT_EQ(found(cache, "", {5, 6, 7, 8}), 1);
  EXPECT_EQ(found(cache, "", {1, 2}), 1);
  EXPECT_NE(block, second);
}

TEST(PrefixCache, AnEvictedBlockTakesWhatWasBehindItAlong) {
  PrefixCache cache(3, 2, true);
  // A child that is used while its parent isn't, as when a window slides: the parent goes.
  std::vector<int32_t> blocks;
  int32_t first = cache.allocate()->block, second = cache.allocate()->block;
  auto parent = cache.add(cache.root(""), Tokens{1, 2}, first);
  auto child = cache.add(parent.node, Tokens{3, 4}, second);
  cache.release(parent.block);
  ASSERT_TRUE(cache.allocate());
  int32_t reused = cache.allocate()->block;
  EXPECT_EQ(reused, first);
  // The block comes back with another text: what hung on the old one isn't found behind it.
  auto other = cache.add(cache.root(""), Tokens{8, 9}, reused);
  EXPECT_NE(other.node, 0u);
  EXPECT_EQ(found(cache, "", {8, 9, 3, 4}), 1);
  EXPECT_EQ(found(cache, "", {1, 2, 3, 4}), 0);
  cache.release(child.block);
}

TEST(PrefixCache, EqualBlocksBecomeOne) {
  PrefixCache cache(3, 2, true);
  int32_t first = cache.allocate()->block, second = cache.allocate()->block;
  auto a = cache.add(cache.root(""), Tokens{1, 2}, first);
  auto b = cache.add(cache.root(""), Tokens{1, 2}, second);
  EXPECT_EQ(a.block, first);
  EXPECT_EQ(b.block, first);
  EXPECT_EQ(b.node, a.node);
  EXPECT_EQ(cache.available(), 2) << "the second one is free again";
  EXPECT_EQ(cache.users(first), 2u);
}

TEST(PrefixCache, WithoutCachingNothingIsKept) {
  PrefixCache cache(2, 2, false);
  EXPECT_EQ(cache.root("x"), 0u);
  int32_t block = cache.allocate()->block;
  EXPECT_EQ(cache.add(0, Tokens{1, 2}, block).node, 0u);
  cache.release(block);
  EXPECT_EQ(found(cache, "x", {1, 2}), 0);
  EXPECT_EQ(cache.available(), 2);
}

TEST(PrefixCache, A11_AMillionBlocksNeverHitAnother) {
  PrefixCache cache(512, 4, true);
  for (int32_t i = 0; i < 1000000; ++i) {
    Tokens tokens = {i % 1000, i / 1000, 3, 4};
    ASSERT_EQ(found(cache, "", tokens), 0) << i; // each text is new
    if (i % 8 == 0)
      keep(cache, "", tokens, 4);
  }
}

} // namespace
