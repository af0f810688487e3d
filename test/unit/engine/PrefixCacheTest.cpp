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

TEST(WindowPool, WhatOnlyTheTreeHoldsMakesWay) {
  WindowPool pool(2, 8, 2, 4);
  int32_t a = pool.allocate()->block, b = pool.allocate()->block;
  EXPECT_EQ(pool.keep(5, a), a);
  EXPECT_EQ(pool.keep(6, b), b);
  EXPECT_FALSE(pool.allocate()) << "sequences hold both";
  EXPECT_EQ(pool.users(a), 1u);
  pool.release(b);
  pool.release(a);
  EXPECT_EQ(pool.available(), 2);
  std::optional<BlockPool::Allocation> reused = pool.allocate();
  ASSERT_TRUE(reused);
  EXPECT_EQ(reused->block, b) << "the least recently used";
  EXPECT_TRUE(reused->used);
  EXPECT_EQ(pool.beside(6), -1);
  EXPECT_EQ(pool.beside(5), a);
  pool.retain(a);
  EXPECT_FALSE(pool.allocate());
  pool.forget(5); // its main block left the tree
  EXPECT_EQ(pool.beside(5), -1);
  EXPECT_FALSE(pool.allocate()) << "a sequence still has it";
  pool.release(a);
  EXPECT_EQ(pool.allocate()->block, a);
}

TEST(WindowPool, EqualBlocksBecomeOne) {
  WindowPool pool(3, 8, 2, 4);
  int32_t first = pool.allocate()->block, second = pool.allocate()->block;
  EXPECT_EQ(pool.keep(5, first), first);
  EXPECT_EQ(pool.keep(5, second), first);
  EXPECT_EQ(pool.keep(5, first), first) << "it is kept once";
  EXPECT_EQ(pool.users(first), 2u);
  EXPECT_EQ(pool.available(), 2) << "the second one is free again";
}

TEST(WindowPool, TheTokenAtAPositionSeesItsWindow) {
  WindowPool pool(3, 8, 16, 40);
  EXPECT_EQ(pool.firstNeeded(0), 0);
  EXPECT_EQ(pool.firstNeeded(54), 0); // it sees 15 to 54
  EXPECT_EQ(pool.firstNeeded(55), 1); // 16 to 55
  EXPECT_EQ(WindowPool(3, 8, 16, 1).firstNeeded(32), 2) << "itself alone";
}

TEST(PrefixCache, AChainIsFoundAsFarAsItsWindowsAre) {
  PrefixCache cache(8, 2, true, {WindowPool(8, 8, 2, 3)});
  Tokens text = {1, 2, 3, 4, 5, 6};
  PrefixCache::Serial node = cache.root("");
  for (size_t i = 0; i < 3; ++i) {
    int32_t block = cache.allocate()->block, beside = cache.windows()[0].allocate()->block;
    node = cache.add(node, std::span(text).subspan(2 * i, 2), block).node;
    if (i != 1) // that one was given back before it was kept
      (void)cache.windows()[0].keep(block, beside);
    cache.windows()[0].release(beside);
    cache.release(block);
  }
  // A token after 2 sees block 0, one after 4 block 1, which is gone, one after 6 block 2 alone.
  EXPECT_EQ(cache.find(cache.root(""), {text.data(), 2}).blocks, 1);
  EXPECT_EQ(cache.find(cache.root(""), {text.data(), 4}).blocks, 1);
  EXPECT_EQ(cache.find(cache.root(""), text).blocks, 3);
  EXPECT_EQ(cache.find(cache.root(""), text).unused, 3);
  std::vector<int32_t> blocks;
  WindowBlocks window;
  EXPECT_EQ(cache.take(cache.root(""), text, blocks, {&window, 1}), node);
  EXPECT_EQ(blocks.size(), 3u);
  EXPECT_EQ(window.firstBlock, 2);
  EXPECT_EQ(window.blocks[0], WindowBlocks::slidOut);
  EXPECT_EQ(window.blocks[1], WindowBlocks::slidOut);
  EXPECT_EQ(window.blocks[2], cache.windows()[0].beside(blocks[2]));
  EXPECT_EQ(cache.windows()[0].users(window.blocks[2]), 1u);
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
