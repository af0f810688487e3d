#include "runtime/cache/BlockPool.h"

#include <gtest/gtest.h>
#include <set>

using namespace llmrt;

namespace {

TEST(BlockPool, GivesEachBlockOnceAndThenNone) {
  BlockPool pool(5);
  std::set<int32_t> blocks;
  for (int i = 0; i < 5; ++i) {
    auto a = pool.allocate();
    ASSERT_TRUE(a);
    EXPECT_FALSE(a->used);
    blocks.insert(a->block);
  }
  EXPECT_EQ(blocks.size(), 5u);
  EXPECT_EQ(pool.freeCount(), 0);
  EXPECT_FALSE(pool.allocate());
}

TEST(BlockPool, AReleasedBlockComesBackAsUsed) {
  BlockPool pool(3);
  int32_t first = pool.allocate()->block;
  (void)pool.allocate();
  pool.release(first);
  EXPECT_EQ(pool.freeCount(), 2);
  auto again = pool.allocate();
  EXPECT_EQ(again->block, first);
  EXPECT_TRUE(again->used);
  EXPECT_FALSE(pool.allocate()->used);
}

TEST(BlockPool, ASharedBlockIsFreeWhenTheLastOwnerLeaves) {
  BlockPool pool(1);
  int32_t block = pool.allocate()->block;
  pool.retain(block);
  pool.release(block);
  EXPECT_EQ(pool.references(block), 1u);
  EXPECT_FALSE(pool.allocate());
  pool.release(block);
  EXPECT_TRUE(pool.allocate());
}

} // namespace
