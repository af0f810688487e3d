// llmrt.hpp alone: nothing of the library's internals is included.
#include <llmrt/llmrt.hpp>

#include <cstdlib>
#include <gtest/gtest.h>
#include <stdexcept>

namespace {

/// A tiny plan that ApiPlan.cpp made; see there for what it says.
extern "C" const char *llmrtTestPlanPath();

TEST(Wrapper, GeneratesAndDetokenizes) {
  llmrt::Plan plan(llmrtTestPlanPath());
  llmrt::Engine engine(plan);
  std::string text;
  std::vector<int32_t> ids;
  llmrt_result result = engine.generate(
      plan.tokenize("a"), llmrt::Options(plan).maxNewTokens(50).stopStrings({"STOP"}),
      [&](std::string_view piece) { text += piece; },
      [&](const llmrt_token &token) { ids.push_back(token.id); });
  EXPECT_EQ(text, " ONE TWO ");
  EXPECT_EQ(result.reason, LLMRT_FINISH_STOP);
  EXPECT_EQ(plan.detokenize(ids), " ONE TWO STOP");
  EXPECT_EQ(plan.applyChatTemplate({{"user", "hi"}}, false), "uhi");
  EXPECT_EQ(plan.encodeChat({{"user", "ab"}}), (std::vector<int32_t>{20, 0, 1, 96}));
  EXPECT_EQ(plan.info().vocabulary, 97);
}

TEST(Wrapper, FailuresAreErrors) {
  try {
    llmrt::Plan plan("/nonexistent.plan");
    FAIL();
  } catch (const llmrt::Error &error) {
    EXPECT_EQ(error.status(), LLMRT_IO_ERROR);
    EXPECT_NE(std::string(error.what()).find("/nonexistent.plan"), std::string::npos);
  }
}

TEST(Wrapper, AnExceptionOfACallbackComesOutOfGenerate) {
  llmrt::Plan plan(llmrtTestPlanPath());
  llmrt::Engine engine(plan);
  int pieces = 0;
  EXPECT_THROW(engine.generate(plan.tokenize("a"), llmrt::Options(plan).maxNewTokens(50),
                               [&](std::string_view) {
                                 ++pieces;
                                 throw std::runtime_error("enough");
                               }),
               std::runtime_error);
  EXPECT_EQ(pieces, 1);
  // The engine is as good as new.
  llmrt_result result = engine.generate(plan.tokenize("a"), llmrt::Options(plan).maxNewTokens(2));
  EXPECT_EQ(result.output_tokens, 2);
}

} // namespace
