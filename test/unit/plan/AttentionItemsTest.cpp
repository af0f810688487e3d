#include "runtime/device/cpu/AttentionItems.h"

#include "runtime/plan/Plan.h"
#include "test/unit/plan/TestPlan.h"

#include <gtest/gtest.h>
#include <numeric>

using namespace llmrt;
using namespace llmrt::test;

namespace {

struct AttentionItemsTest : testing::Test {
  /// A plan whose attention has splits of \p split keys; 0: none.
  void makePlan(int64_t split) {
    TestPlan p = makeTestPlan();
    for (auto &kernel : p.head.kernels)
      if (kernel->kind == "attention") {
        auto constant = std::make_unique<fbs::ConstantT>();
        constant->name = "key_split";
        constant->value = split;
        kernel->constants.push_back(std::move(constant));
      }
    plan = *Plan::fromMemory(buildPlanImage(p.head, p.segments));
  }

  /// A step with a tile of \p counts[i] tokens after \p olders[i] others for each i.
  int64_t cut(AttentionItems &items, const std::vector<int32_t> &olders,
              const std::vector<int32_t> &newTokens) {
    counts = newTokens, positions.clear(), starts.clear();
    for (size_t i = 0; i < olders.size(); ++i) {
      starts.push_back(int32_t(positions.size()));
      for (int32_t t = 0; t < counts[i]; ++t)
        positions.push_back(olders[i] + t);
    }
    memory.assign(items.bytes() + 64, 0);
    items.setMemory(memory.data());
    step = {};
    step.Q = int64_t(olders.size());
    step.positions = positions.data();
    step.tileStart = starts.data();
    step.tileCount = counts.data();
    return items.cut(step);
  }

  std::shared_ptr<const Plan> plan;
  std::vector<int32_t> counts, positions, starts;
  std::vector<uint8_t> memory;
  LlmrtStep step;
};

TEST_F(AttentionItemsTest, WithoutSplitsThereIsNothingToCut) {
  makePlan(0);
  AttentionItems items(plan->head(), 16, 4);
  EXPECT_EQ(items.bytes(), 0u);
  EXPECT_EQ(cut(items, {1000, 0}, {1, 8}), 2);
}

TEST_F(AttentionItemsTest, OneThreadSharesWithNobody) {
  makePlan(64);
  AttentionItems items(plan->head(), 16, 1);
  EXPECT_EQ(items.bytes(), 0u);
  ASSERT_EQ(cut(items, {1000, 0}, {1, 8}), 2);
  EXPECT_EQ(step.items[0].split, -1);
  EXPECT_EQ(step.items[1].tile, 1);
}

TEST_F(AttentionItemsTest, LongContextsAreCutAtTheSplits) {
  makePlan(64);
  AttentionItems items(plan->head(), 16, 2);
  // Positions 63 (one split), 64 (two), 126 to 128 (three), and a tile of many tokens.
  ASSERT_EQ(cut(items, {63, 64, 126, 640}, {1, 1, 3, 64}), 1 + 2 + 3 + 1);
  EXPECT_EQ(step.items[0].split, -1);
  for (int32_t s = 0; s < 2; ++s) {
    EXPECT_EQ(step.items[1 + s].tile, 1);
    EXPECT_EQ(step.items[1 + s].split, s);
    EXPECT_EQ(step.items[1 + s].splits, 2);
    EXPECT_EQ(step.items[1 + s].row, s);
    EXPECT_EQ(step.items[1 + s].arrival, 0);
  }
  for (int32_t s = 0; s < 3; ++s) {
    EXPECT_EQ(step.items[3 + s].tile, 2);
    EXPECT_EQ(step.items[3 + s].split, s);
    EXPECT_EQ(step.items[3 + s].row, 2 + 3 * s) << "three tokens a split";
    EXPECT_EQ(step.items[3 + s].arrival, 1);
  }
  EXPECT_EQ(step.items[6].tile, 3);
  EXPECT_EQ(step.items[6].split, -1);
}

/// What was set aside bounds how much is cut; the rest is whole, and nothing is lost.
TEST_F(AttentionItemsTest, MemoryIsEnoughForWhatIsCut) {
  makePlan(64);
  constexpr int32_t sequences = 16;
  AttentionItems items(plan->head(), sequences, 2);
  const int64_t n =
      cut(items, std::vector<int32_t>(sequences, 64 * 30), std::vector<int32_t>(sequences, 1));
  EXPECT_LE(n, items.most());
  const auto rowBytes = uint64_t(2) * LLMRT_PARTIAL_FLOATS(4) * 4; // of the plan's two heads
  std::vector<int> seen(sequences);
  int64_t whole = 0;
  for (int64_t i = 0; i < n; ++i) {
    const LlmrtAttentionItem &item = step.items[i];
    whole += item.split < 0;
    seen[size_t(item.tile)] += item.split < 0 ? 31 : 1;
    if (item.split >= 0) {
      EXPECT_LE((uint64_t(item.row) + 1) * rowBytes,
                uint64_t(reinterpret_cast<uint8_t *>(step.arrivals) - memory.data()));
      EXPECT_LE(reinterpret_cast<uint8_t *>(step.arrivals + item.arrival + 1),
                memory.data() + items.bytes());
    }
  }
  EXPECT_EQ(seen, std::vector<int>(sequences, 31)) << "every split of every tile once";
  EXPECT_GT(whole, 0);
  EXPECT_LT(whole, sequences);
}

} // namespace
