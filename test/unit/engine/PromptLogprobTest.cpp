// Log-probabilities of a prompt's tokens, as echo with logprobs shows them.
#include "test/unit/engine/TestBench.h"

#include <cmath>

using namespace llmrt;
using namespace llmrt::test;

namespace {

TEST(PromptLogprob, OfEveryTokenOnce) {
  // Of whatever chunks, once for all choices, those that start later and those preempted included.
  for (int64_t choices : {1, 3}) {
    BenchOptions setup;
    setup.limits.maxRows = 9;
    setup.limits.maxSequences = 2;
    setup.limits.kvBlocks = 12;
    TestBench bench(setup);
    bench.executor->adjust = [](const std::vector<int32_t> &context, float *row) {
      for (int32_t id = 0; id < vocabulary; ++id)
        row[id] = 0;
      row[size_t(hashScript(context, vocabulary))] = 3;
    };
    struct Listener final : RequestListener {
      bool onToken(const TokenEvent &) override {
        EXPECT_EQ(tokens.size(), 49u) << "before any token of an answer";
        return true;
      }
      void onFinish(const FinishEvent &) override {}
      void onPromptToken(int64_t position, const SampledToken &token) override {
        EXPECT_EQ(position, int64_t(tokens.size()) + 1);
        tokens.push_back(token);
      }
      std::vector<SampledToken> tokens;
    } listener;
    RequestOptions options;
    options.prompt = promptOf(50);
    options.maxNewTokens = 40;
    options.choices = int32_t(choices);
    options.promptLogprobs = 2;
    options.listener = &listener;
    RecordingListener other;
    ASSERT_TRUE(bench.engine->add(std::move(options)));
    ASSERT_TRUE(bench.add(promptOf(4), 90, other));
    bench.drain();
    ASSERT_EQ(listener.tokens.size(), 49u);
    std::vector<int32_t> prompt = promptOf(50);
    double total = std::log(96 + std::exp(3.0));
    for (size_t i = 0; i < 49; ++i) {
      std::vector<int32_t> context(prompt.begin(), prompt.begin() + ptrdiff_t(i) + 1);
      int32_t likeliest = hashScript(context, vocabulary);
      const SampledToken &token = listener.tokens[i];
      EXPECT_EQ(token.id, prompt[i + 1]);
      EXPECT_NEAR(token.logprob, (token.id == likeliest ? 3 : 0) - total, 1e-5);
      ASSERT_EQ(token.topCount, 2);
      EXPECT_EQ(token.top[0].id, likeliest);
      EXPECT_NEAR(token.top[0].logprob, 3 - total, 1e-5);
    }
  }
}

} // namespace
