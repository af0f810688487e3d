#include "runtime/plan/Roofline.h"

#include "runtime/plan/Plan.h"
#include "test/unit/plan/TestPlan.h"

#include <gtest/gtest.h>

using namespace llmrt;
using namespace llmrt::test;

static std::shared_ptr<const Plan> open(TestPlan p) {
  auto plan = Plan::fromMemory(buildPlanImage(p.head, p.segments));
  EXPECT_TRUE(plan.isOk()) << plan.status().message();
  return *plan;
}

static MachineLimits machine(double bytes, double ints, double floats) {
  MachineLimits m;
  m.bytesPerSecond = bytes;
  m.intOperationsPerSecond = ints;
  m.floatOperationsPerSecond = floats;
  return m;
}

TEST(Roofline, DecodeIsBoundByMemory) {
  auto plan = open(makeTestPlan());
  // Two qkv of 320 bytes, one head of 1024; two layers of KV of 32 bytes for 10 + 1 tokens.
  Prediction p = predictStep(plan->head(), machine(1000, 1e30, 1e30), {1, 1, 10});
  EXPECT_DOUBLE_EQ(p.bytes, 2 * 320 + 1024 + 2 * 32 * 11);
  EXPECT_DOUBLE_EQ(p.seconds, p.bytes / 1000);
  EXPECT_DOUBLE_EQ(p.tokensPerSecond, 1 / p.seconds);
}

TEST(Roofline, PrefillIsBoundByArithmetic) {
  auto plan = open(makeTestPlan());
  Prediction p = predictStep(plan->head(), machine(1e30, 1000, 1e30), {16, 1, 0});
  EXPECT_DOUBLE_EQ(p.intOperations, 2 * 256 * 16);
  EXPECT_DOUBLE_EQ(p.seconds, 2 * 256 * 16 / 1000.0);
  // Attention: 8 elements a key, 2 query heads on each, 2 operations, (16 + 1) / 2 keys a query;
  // the head's matrix runs for the one row that needs logits.
  EXPECT_DOUBLE_EQ(p.floatOperations, 2 * (8 * 2 * 2 * 8.5 * 16) + 320);
}

TEST(Roofline, RowsCountOnlyWhereTheKernelSaysSo) {
  TestPlan t = makeTestPlan();
  // The head over all tokens: no plan that does so has logits, but the costs are the same sums.
  t.head.kernels[5]->kind = "other";
  for (auto &c : t.head.kernels[5]->constants)
    if (c->name == "rows")
      c->value = 0;
  Prediction p = predictStep(open(std::move(t))->head(), machine(1e30, 1e30, 1000), {16, 1, 0});
  EXPECT_DOUBLE_EQ(p.floatOperations, 2 * (8 * 2 * 2 * 8.5 * 16) + 320 * 16);
}

TEST(Roofline, ACommandTakesTheSlowerOfTheTwo) {
  auto plan = open(makeTestPlan());
  // At 1 byte and 1 f32 operation a second: qkv 320 bytes (int8 is free), attention 32 * 1 bytes
  // against 32 operations, head 1024 bytes against 320.
  Prediction p = predictStep(plan->head(), machine(1, 1e30, 1), {1, 1, 0});
  EXPECT_DOUBLE_EQ(p.seconds, 2 * 320 + 2 * 32 + 1024);
}

TEST(Roofline, APlanWithoutCostsPredictsNothing) {
  TestPlan t = makeTestPlan();
  for (auto &c : t.head.commands)
    c->cost.reset();
  EXPECT_EQ(predictStep(open(std::move(t))->head(), machine(1, 1, 1), {}).tokensPerSecond, 0);
}

TEST(Roofline, DefaultsGrowWithLevelAndThreads) {
  MachineLimits v3 = defaultLimits("x86-64-v3", 2), v4 = defaultLimits("x86-64-v4", 2);
  EXPECT_GT(v4.intOperationsPerSecond, v3.intOperationsPerSecond);
  EXPECT_EQ(v3.floatOperationsPerSecond,
            2 * defaultLimits("x86-64-v3", 1).floatOperationsPerSecond);
  EXPECT_EQ(defaultLimits("none", 1).floatOperationsPerSecond,
            defaultLimits("x86-64-v3", 1).floatOperationsPerSecond);
  EXPECT_EQ(defaultLimits("x86-64-v3", 64).bytesPerSecond, 40e9);
}
