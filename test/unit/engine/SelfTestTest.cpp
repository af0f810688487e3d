// A plan's self-test on the machine that runs it.
#include "runtime/engine/SelfTest.h"

#include "test/unit/engine/ScriptedExecutor.h"
#include "test/unit/engine/TinyPlan.h"

using namespace llmrt;
using test::tinyPlan;
using test::TinyPlanOptions;
using test::tinyVocabulary;

namespace {

/// A plan that records what it computes.
TinyPlanOptions recorded() {
  TinyPlanOptions options;
  options.testPrompt = {3, 1, 4, 1, 5};
  options.testTokens.resize(3);
  Status status = runSelfTest(tinyPlan(options), options.testPrompt, options.testTokens,
                              options.testFingerprint);
  EXPECT_TRUE(status.isOk()) << status.message();
  return options;
}

} // namespace

TEST(SelfTest, RecordsTheGreedyTokens) {
  TinyPlanOptions options = recorded();
  std::vector<int32_t> context = options.testPrompt;
  for (int32_t token : options.testTokens) {
    EXPECT_EQ(token, hashScript(context, tinyVocabulary));
    context.push_back(token);
  }
  EXPECT_NE(options.testFingerprint, 0u);
}

TEST(SelfTest, HoldsOnThePlanThatRecordedIt) {
  Status status = checkSelfTest(tinyPlan(recorded()));
  EXPECT_TRUE(status.isOk()) << status.message();
}

TEST(SelfTest, EndTokensAreTokens) {
  TinyPlanOptions options = recorded();
  options.stopIds = {options.testTokens[0]};
  EXPECT_TRUE(checkSelfTest(tinyPlan(options)).isOk());
}

TEST(SelfTest, SaysWhichTokensDiffer) {
  TinyPlanOptions options = recorded();
  options.testTokens[2] = (options.testTokens[2] + 1) % tinyVocabulary;
  Status status = checkSelfTest(tinyPlan(options));
  EXPECT_NE(status.message().find("this machine generates"), std::string::npos) << status.message();
}

TEST(SelfTest, OneBitOfALogitIsADifference) {
  TinyPlanOptions options = recorded();
  options.testFingerprint ^= 1;
  Status status = checkSelfTest(tinyPlan(options));
  EXPECT_NE(status.message().find("have fingerprint"), std::string::npos) << status.message();
}

TEST(SelfTest, APlanWithoutOneIsUnsupported) {
  EXPECT_EQ(checkSelfTest(tinyPlan()).code(), StatusCode::Unsupported);
}
