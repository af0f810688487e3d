#include "runtime/device/cpu/StepPredictor.h"

#include "test/unit/plan/TestPlan.h"

#include <gtest/gtest.h>
#include <numeric>

using namespace llmrt;
using namespace llmrt::test;

namespace {

class StepPredictorTest : public testing::Test {
protected:
  StepPredictorTest() {
    TestPlan p = makeTestPlan();
    plan = *Plan::fromMemory(buildPlanImage(p.head, p.segments));
    // All of it bound by memory: the roofline is linear in the context.
    machine.bytesPerSecond = 1000;
    machine.intOperationsPerSecond = machine.floatOperationsPerSecond = 1e30;
  }

  /// A step of sequences that have \p olders tokens each and get \p count more, a tile each.
  double predict(StepPredictor &predictor, const std::vector<int32_t> &olders, int32_t count) {
    std::vector<int32_t> positions, starts, sequences(olders.size());
    std::vector<int32_t> counts(olders.size(), count);
    std::iota(sequences.begin(), sequences.end(), 0);
    for (int32_t older : olders) {
      starts.push_back(int32_t(positions.size()));
      for (int32_t i = 0; i < count; ++i)
        positions.push_back(older + i);
    }
    std::vector<int32_t> queryStart = starts;
    queryStart.push_back(int32_t(positions.size()));
    LlmrtStep step{};
    step.T = int64_t(positions.size());
    step.S = step.R = step.Q = int64_t(olders.size());
    step.positions = positions.data();
    step.queryStart = queryStart.data();
    step.tileSeq = sequences.data();
    step.tileStart = starts.data();
    step.tileCount = counts.data();
    return predictor.seconds(step);
  }
  double roofline(const StepShape &shape) const {
    return predictStep(plan->head(), machine, shape).seconds;
  }

  std::shared_ptr<const Plan> plan;
  MachineLimits machine;
};

TEST_F(StepPredictorTest, OneSequenceIsTheRooflineOfItsStep) {
  StepPredictor predictor(plan, machine);
  EXPECT_NEAR(predict(predictor, {0}, 1), roofline({1, 1, 0}), 1e-9);
  EXPECT_NEAR(predict(predictor, {10}, 1), roofline({1, 1, 10}), 1e-9);
  EXPECT_NEAR(predict(predictor, {8}, 4), roofline({4, 1, 8}), 1e-9);
  EXPECT_NEAR(predict(predictor, {10}, 1), roofline({1, 1, 10}), 1e-9) << "after another shape";
}

TEST_F(StepPredictorTest, EachSequenceAddsItsOlderTokens) {
  StepPredictor predictor(plan, machine);
  double older = (roofline({1, 1, 10}) - roofline({1, 1, 0})) / 10;
  ASSERT_GT(older, 0);
  EXPECT_NEAR(predict(predictor, {3, 9}, 1), roofline({2, 2, 0}) + 12 * older, 1e-9);
  EXPECT_NEAR(predict(predictor, {3, 10}, 1), roofline({2, 2, 0}) + 13 * older, 1e-9);
}

} // namespace
