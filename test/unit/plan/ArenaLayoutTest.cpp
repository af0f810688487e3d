#include "runtime/plan/ArenaLayout.h"

#include "runtime/plan/Plan.h"
#include "test/unit/plan/TestPlan.h"

#include <gtest/gtest.h>

#include <limits>

using namespace llmrt;
using namespace llmrt::test;

TEST(ArenaLayout, SlotsFollowEachOtherOn64Bytes) {
  TestPlan p = makeTestPlan();
  *p.head.arena_slots[1]->size = fbs::Affine(10, 64, 1, 2, 3);
  auto plan = Plan::fromMemory(buildPlanImage(p.head, p.segments));
  ASSERT_TRUE(plan.isOk()) << plan.status().message();
  ArenaLayout layout = ArenaLayout::compute((*plan)->head(), 3, 2, 1, 2);
  // 32 * 3 = 96 -> 128; 10 + 64 * 3 + 2 + 2 + 6 = 212 -> 256.
  EXPECT_EQ(layout.offsets(), (std::vector<uint64_t>{0, 128}));
  EXPECT_EQ(layout.total(), 128u + 256);
  layout.update((*plan)->head(), {1, 1, 0, 1});
  EXPECT_EQ(layout.offsets(), (std::vector<uint64_t>{0, 64}));
  EXPECT_EQ(layout.total(), 64u + 128);
}

TEST(ArenaLayout, AStepWithinTheLimitsNeedsNoMoreThanTheLimits) {
  auto plan = Plan::fromMemory(testPlanImage());
  ASSERT_TRUE(plan.isOk());
  const fbs::Plan &head = (*plan)->head();
  uint64_t most = ArenaLayout::compute(head, stepLimits(*head.limits())).total();
  for (int64_t T = 1; T <= 64; ++T)
    for (int64_t S = 1; S <= std::min<int64_t>(T, 8); ++S)
      EXPECT_LE(ArenaLayout::compute(head, T, S, S, maxQueryTiles(T, S, 8)).total(), most);
}

TEST(ArenaLayout, QueryTilesOfEverySplit) {
  // The bound is reached by some split of T tokens over S sequences and passed by none.
  for (int64_t tile : {1, 2, 3, 8})
    for (int64_t T = 1; T <= 12; ++T)
      for (int64_t S = 1; S <= std::min<int64_t>(T, 3); ++S) {
        int64_t most = 0;
        for (int64_t a = 1; a <= T; ++a)
          for (int64_t b = S > 1; b <= (S > 1 ? T - a : 0); ++b) {
            int64_t c = T - a - b;
            if (S == 3 ? c < 1 : c != 0)
              continue;
            auto tiles = [&](int64_t n) { return (n + tile - 1) / tile; };
            most = std::max(most, tiles(a) + tiles(b) + tiles(c));
          }
        EXPECT_EQ(maxQueryTiles(T, S, tile), most) << "T " << T << " S " << S << " tile " << tile;
      }
}

TEST(ArenaLayout, CheckedEvaluation) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(evaluateChecked(fbs::Affine(1, 2, 3, 4, 5), {10, 20, 30, 40}),
            1u + 20 + 60 + 120 + 200);
  EXPECT_EQ(evaluateChecked(fbs::Affine(kMax, 0, 0, 0, 0), {1, 1, 1, 1}), uint64_t(kMax));
  EXPECT_FALSE(evaluateChecked(fbs::Affine(kMax, 1, 0, 0, 0), {1, 1, 1, 1}));
  EXPECT_FALSE(evaluateChecked(fbs::Affine(0, kMax, 0, 0, 0), {3, 1, 1, 1}));
  EXPECT_FALSE(evaluateChecked(fbs::Affine(5, -1, 0, 0, 0), {1, 1, 1, 1}));
}
