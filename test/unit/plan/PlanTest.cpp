#include "runtime/plan/Plan.h"
#include "test/unit/plan/TestPlan.h"

#include <gtest/gtest.h>

using namespace llmrt;
using namespace llmrt::test;

TEST(Plan, OpensWhatTheWriterMade) {
  auto plan = Plan::fromMemory(testPlanImage());
  ASSERT_TRUE(plan.isOk()) << plan.status().message();
  EXPECT_EQ((*plan)->head().model()->name()->str(), "tiny");
}
