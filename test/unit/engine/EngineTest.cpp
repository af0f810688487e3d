// The engine over a scripted model: paging, chunking, batching, admission, ends, failures.
#include "runtime/engine/Engine.h"

#include "test/unit/engine/TestBench.h"

#include <limits>

using namespace llmrt;
using namespace llmrt::test;

namespace {

TEST(Engine, OneRequest) {
  TestBench bench;
  RecordingListener listener;
  ASSERT_TRUE(bench.add(promptOf(5), 10, listener));
  bench.drain();
  EXPECT_EQ(listener.ids, expected(promptOf(5), 10));
  EXPECT_EQ(listener.reason, FinishReason::Length);
}

class Chunking : public ::testing::TestWithParam<std::tuple<int64_t, int64_t>> {};

TEST_P(Chunking, ChunksAndBlockSizesDoNotChangeTheOutput) {
  BenchOptions setup;
  auto [chunk, block] = GetParam();
  setup.limits.maxBatchedTokens = std::max<int64_t>(chunk, 1);
  setup.limits.maxSequences = 1;
  setup.limits.maxRows = 1;
  setup.limits.blockTokens = block;
  for (int length : {1, 15, 16, 17, 63, 64, 65, 200}) {
    TestBench bench(setup);
    RecordingListener listener;
    ASSERT_TRUE(bench.add(promptOf(length), 40, listener));
    bench.drain();
    EXPECT_EQ(listener.ids, expected(promptOf(length), 40)) << length;
    EXPECT_EQ(bench.engine->freeBlocks(), setup.limits.kvBlocks);
  }
}
INSTANTIATE_TEST_SUITE_P(Sizes, Chunking,
                         ::testing::Combine(::testing::Values(1, 7, 64, 512),
                                            ::testing::Values(16, 48, 64)));

TEST(Engine, ManyRequestsAtOnceAreAsIfAlone) {
  BenchOptions setup;
  setup.limits.kvBlocks = 40; // too few for all: some wait, blocks are reused
  TestBench bench(setup);
  std::vector<std::unique_ptr<RecordingListener>> listeners;
  for (int i = 0; i < 30; ++i) {
    listeners.push_back(std::make_unique<RecordingListener>());
    ASSERT_TRUE(bench.add(promptOf(1 + i * 5, i), 1 + (i * 13) % 50, *listeners.back()));
    if (i % 3 == 0)
      ASSERT_TRUE(bench.engine->step());
  }
  bench.drain();
  for (int i = 0; i < 30; ++i)
    EXPECT_EQ(listeners[i]->ids, expected(promptOf(1 + i * 5, i), 1 + (i * 13) % 50)) << i;
  EXPECT_EQ(bench.engine->freeBlocks(), 40);
  EXPECT_GT(bench.executor->cleared, 0) << "reused blocks are cleared";
}

TEST(Engine, DecodingGoesOnWhileALongPromptComesIn) {
  TestBench bench; // 64 tokens a step
  RecordingListener first, second;
  ASSERT_TRUE(bench.add(promptOf(4), 50, first));
  ASSERT_TRUE(bench.engine->step());
  ASSERT_TRUE(bench.add(promptOf(640), 1, second));
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(bench.engine->step());
  EXPECT_EQ(first.ids.size(), 6u);
  EXPECT_EQ(bench.executor->tokensOfSteps.back(), 64) << "the prompt fills the step";
  bench.drain();
  EXPECT_EQ(second.ids, expected(promptOf(640), 1));
}

TEST(Engine, EndTokenEndsOnlyItsRequest) {
  const std::vector<int32_t> want = expected(promptOf(5), 10);
  for (bool ignore : {false, true}) {
    TestBench bench;
    RecordingListener one, other;
    ASSERT_TRUE(bench.add(promptOf(5), 10, one, [&](RequestOptions &o) {
      o.endIds = {want[3]};
      o.ignoreEnd = ignore;
    }));
    ASSERT_TRUE(bench.add(promptOf(6), 10, other));
    bench.drain();
    // S05: the end token counts, nothing follows it; ignored, it is emitted and generation goes on.
    EXPECT_EQ(one.ids.size(), ignore ? 10u : 4u);
    EXPECT_TRUE(std::equal(one.ids.begin(), one.ids.end(), want.begin()));
    EXPECT_EQ(one.reason, ignore ? FinishReason::Length : FinishReason::Stop);
    EXPECT_EQ(other.ids.size(), 10u);
  }
}

TEST(Engine, StopIdsHoldEvenWhenEndTokensAreIgnored) {
  const std::vector<int32_t> want = expected(promptOf(5), 10);
  TestBench bench;
  RecordingListener listener;
  ASSERT_TRUE(bench.add(promptOf(5), 10, listener, [&](RequestOptions &o) {
    o.ignoreEnd = true;
    o.stopIds = {want[2]};
  }));
  bench.drain();
  EXPECT_EQ(listener.ids.size(), 3u);
  EXPECT_EQ(listener.reason, FinishReason::Stop);
}

TEST(Engine, V03_AnEndTokenAtTheLimitIsAStop) {
  const std::vector<int32_t> want = expected(promptOf(5), 3);
  TestBench bench;
  RecordingListener listener;
  ASSERT_TRUE(
      bench.add(promptOf(5), 3, listener, [&](RequestOptions &o) { o.endIds = {want[2]}; }));
  bench.drain();
  EXPECT_EQ(listener.reason, FinishReason::Stop);
  EXPECT_EQ(listener.ids.size(), 3u);
}

TEST(Engine, V05_PromptsUpToTheContext) {
  BenchOptions setup;
  setup.context = 64;
  TestBench bench(setup);
  RecordingListener fits;
  ASSERT_TRUE(bench.add(promptOf(63), 100, fits));
  bench.drain();
  EXPECT_EQ(fits.ids.size(), 1u);
  EXPECT_EQ(fits.reason, FinishReason::Length);
  for (int n : {64, 65, 10000}) {
    RecordingListener refused;
    Result<RequestId> id = bench.add(promptOf(n), 5, refused);
    ASSERT_FALSE(id);
    EXPECT_NE(id.status().message().find(std::to_string(n)), std::string::npos);
    EXPECT_NE(id.status().message().find("64"), std::string::npos);
  }
  RecordingListener cut;
  ASSERT_TRUE(bench.add(promptOf(60), 100, cut));
  bench.drain();
  EXPECT_EQ(cut.ids.size(), 4u);
  EXPECT_EQ(cut.reason, FinishReason::Length);
  EXPECT_EQ(cut.ids, expected(promptOf(60), 4));
}

TEST(Engine, V15_EmptyPromptIsRefusedAndTokenZeroIsNot) {
  TestBench bench;
  RecordingListener listener;
  Result<RequestId> empty = bench.add({}, 5, listener);
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.status().code(), StatusCode::InvalidArgument);
  ASSERT_TRUE(bench.add({0}, 5, listener));
  bench.drain();
  EXPECT_EQ(listener.ids, expected({0}, 5));
}

TEST(Engine, V20_BoundsOfTheTokenLimit) {
  BenchOptions setup;
  setup.context = 64;
  TestBench bench(setup);
  RecordingListener none, refused, huge, noLimit;
  ASSERT_TRUE(bench.add(promptOf(64), 0, none)); // scored only: needs no room for an answer
  EXPECT_FALSE(bench.add(promptOf(5), -2, refused));
  ASSERT_TRUE(bench.add(promptOf(5), std::numeric_limits<int64_t>::max(), huge));
  ASSERT_TRUE(bench.add(promptOf(5), -1, noLimit));
  bench.drain();
  EXPECT_TRUE(none.ids.empty());
  EXPECT_EQ(none.reason, FinishReason::Length);
  EXPECT_EQ(huge.ids.size(), 59u);
  EXPECT_EQ(noLimit.ids, huge.ids);
}

TEST(Engine, P08_IdsOutsideTheVocabularyAreRefusedAndHarmNobody) {
  TestBench bench;
  RecordingListener good, bad;
  ASSERT_TRUE(bench.add(promptOf(5), 10, good));
  for (int32_t id : {-1, vocabulary, std::numeric_limits<int32_t>::max()}) {
    Result<RequestId> refused = bench.add({1, 2, id}, 5, bad);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.status().message().find("token 2 of the prompt is " + std::to_string(id)),
              std::string::npos);
    EXPECT_FALSE(bench.add({1}, 5, bad, [&](RequestOptions &o) { o.stopIds = {id}; }));
    EXPECT_FALSE(
        bench.add({1}, 5, bad, [&](RequestOptions &o) { o.sampling.logitBias = {{id, 1}}; }));
  }
  bench.drain();
  EXPECT_EQ(good.ids.size(), 10u);
}

TEST(Engine, P12_PaddedVocabularyRowsAreNeverDrawn) {
  BenchOptions setup;
  setup.limits.sampledVocabulary = 90;
  setup.script = [](const std::vector<int32_t> &) { return 95; };
  TestBench bench(setup);
  bench.executor->adjust = [](const std::vector<int32_t> &, float *row) {
    std::fill(row + 90, row + vocabulary, std::numeric_limits<float>::infinity());
  };
  RecordingListener greedy, sampled;
  ASSERT_TRUE(bench.add(promptOf(5), 20, greedy));
  ASSERT_TRUE(bench.add(promptOf(5), 500, sampled, [](RequestOptions &o) {
    o.sampling.temperature = 2;
    o.sampling.logprobs = 1;
  }));
  bench.drain();
  EXPECT_EQ(greedy.ids, std::vector<int32_t>(20, 0)); // all real logits equal: the lowest id
  ASSERT_EQ(sampled.ids.size(), 500u);
  for (int32_t id : sampled.ids)
    EXPECT_LT(id, 90);
}

TEST(Engine, RequestsThatCanNeverFitThePoolAreRefusedWithNumbers) {
  BenchOptions setup;
  setup.limits.kvBlocks = 4; // 64 tokens
  TestBench bench(setup);
  RecordingListener listener, exact, noLimit;
  Result<RequestId> refused = bench.add(promptOf(30), 100, listener);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.status().code(), StatusCode::ResourceExhausted);
  EXPECT_NE(refused.status().message().find("129 tokens"), std::string::npos);
  EXPECT_NE(refused.status().message().find("64"), std::string::npos);
  EXPECT_FALSE(bench.add(promptOf(65), 0, listener));
  // The last token needs no KV: 30 + 35 tokens fill the pool exactly.
  ASSERT_TRUE(bench.add(promptOf(30), 35, exact));
  ASSERT_TRUE(bench.add(promptOf(30), -1, noLimit));
  bench.drain();
  EXPECT_EQ(exact.ids.size(), 35u);
  EXPECT_EQ(noLimit.ids.size(), 35u);
}

TEST(Engine, A17_RequestsLargerThanThePoolHarmNobody) {
  BenchOptions setup;
  setup.limits.kvBlocks = 4; // 64 tokens
  TestBench bench(setup);
  RecordingListener refused, unlimited, first, second, small;
  EXPECT_FALSE(bench.add(promptOf(80), 5, refused));
  Result<RequestId> tooLong = bench.add(promptOf(40), 100, refused);
  ASSERT_FALSE(tooLong);
  for (const char *number : {"139 tokens", "40 of the prompt", "holds 64"})
    EXPECT_NE(tooLong.status().message().find(number), std::string::npos) << number;
  // Each fits alone, not both: one waits or makes way.
  ASSERT_TRUE(bench.add(promptOf(40, 1), 20, first));
  ASSERT_TRUE(bench.add(promptOf(40, 2), 20, second));
  ASSERT_TRUE(bench.add(promptOf(5), 3, small));
  ASSERT_TRUE(bench.add(promptOf(40, 3), -1, unlimited));
  bench.drain();
  EXPECT_EQ(first.ids, expected(promptOf(40, 1), 20));
  EXPECT_EQ(second.ids, expected(promptOf(40, 2), 20));
  EXPECT_EQ(small.ids, expected(promptOf(5), 3));
  EXPECT_EQ(unlimited.ids, expected(promptOf(40, 3), 25));
  EXPECT_EQ(unlimited.reason, FinishReason::Length);
  EXPECT_EQ(bench.engine->freeBlocks(), 4);
}

TEST(Engine, A18_APlaceThatBecomesFreeKeepsNothing) {
  // Answers of growing lengths, each with settings of its own; one joins at each end.
  constexpr int lengths[] = {1, 2, 3, 5, 8, 13, 21, 34, 4, 9, 2, 17, 6, 1, 30, 12};
  constexpr size_t count = std::size(lengths);
  auto settings = [](size_t i) {
    return [i](RequestOptions &o) {
      o.sampling.temperature = i % 3 == 2 ? 0 : 2 + float(i % 4);
      o.sampling.seed = 100 + i;
      o.sampling.presencePenalty = i % 2 ? 0.1f * float(i) : 0;
      o.sampling.repetitionPenalty = i % 4 == 1 ? 1.3f : 1;
      o.sampling.logprobs = 0;
      if (i % 5 == 3)
        o.sampling.logitBias = {{int32_t(i), 4.0f}};
    };
  };
  std::vector<RecordingListener> alone(count), together(count);
  for (size_t i = 0; i < count; ++i) {
    TestBench bench;
    ASSERT_TRUE(bench.add(promptOf(7 + int(i), int(i)), lengths[i], alone[i], settings(i)));
    bench.drain();
  }
  BenchOptions setup;
  setup.limits.maxSequences = 8; // the other half waits for a place
  TestBench bench(setup);
  for (size_t i = 0; i < count; ++i)
    ASSERT_TRUE(bench.add(promptOf(7 + int(i), int(i)), lengths[i], together[i], settings(i)));
  bench.drain();
  for (size_t i = 0; i < count; ++i) {
    EXPECT_EQ(together[i].ids, alone[i].ids) << i;
    EXPECT_EQ(together[i].logprobs, alone[i].logprobs) << i;
    EXPECT_EQ(together[i].ids.size(), size_t(lengths[i])) << i;
  }
}

TEST(Engine, NanEndsOneRequestWithAnError) {
  TestBench bench;
  bench.executor->adjust = [](const std::vector<int32_t> &context, float *row) {
    if (context[0] == 42 && context.size() == 8)
      row[3] = std::numeric_limits<float>::quiet_NaN();
  };
  RecordingListener bad, good;
  ASSERT_TRUE(bench.add({42, 1, 2, 3, 4}, 10, bad));
  ASSERT_TRUE(bench.add(promptOf(5), 10, good));
  bench.drain();
  EXPECT_EQ(bad.reason, FinishReason::Error);
  EXPECT_NE(bad.status.message().find("NaN"), std::string::npos);
  EXPECT_EQ(bad.ids.size(), 3u);
  EXPECT_EQ(good.ids.size(), 10u);
  EXPECT_EQ(bench.engine->freeBlocks(), 256);
}

TEST(Engine, AFailedStepEndsItsRequestsAndTheEngineGoesOn) {
  TestBench bench;
  RecordingListener first, second;
  ASSERT_TRUE(bench.add(promptOf(5), 10, first));
  bench.executor->failAt = 3;
  bench.drain();
  EXPECT_EQ(first.reason, FinishReason::Error);
  EXPECT_EQ(first.status.message(), "the device is on fire");
  EXPECT_EQ(first.ids.size(), 2u);
  ASSERT_TRUE(bench.add(promptOf(5), 10, second));
  bench.drain();
  EXPECT_EQ(second.ids.size(), 10u);
}

TEST(Engine, CancelFromOutsideAndByTheListener) {
  BenchOptions setup;
  setup.limits.maxSequences = 2;
  setup.limits.maxRows = 2;
  TestBench bench(setup);
  RecordingListener running, waiting, self;
  self.cancelAfter = 4;
  RequestId first = *bench.add(promptOf(5), 1000, running);
  ASSERT_TRUE(bench.add(promptOf(6), 1000, self));
  RequestId third = *bench.add(promptOf(7), 1000, waiting);
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(bench.engine->step());
  bench.engine->cancel(first);
  bench.engine->cancel(third);
  bench.engine->cancel(12345);
  bench.drain();
  EXPECT_EQ(running.reason, FinishReason::Cancelled);
  EXPECT_EQ(running.ids.size(), 3u);
  EXPECT_EQ(waiting.reason, FinishReason::Cancelled);
  EXPECT_TRUE(waiting.ids.empty());
  EXPECT_EQ(self.reason, FinishReason::Cancelled);
  EXPECT_EQ(self.ids.size(), 4u);
  EXPECT_EQ(bench.engine->freeBlocks(), 256);
}

TEST(Engine, LogitsOfEveryPromptPosition) {
  BenchOptions setup;
  setup.limits.maxRows = 9; // less than the chunk: rows limit it
  TestBench bench(setup);
  RecordingListener listener, other;
  ASSERT_TRUE(bench.add(promptOf(4), 30, other));
  ASSERT_TRUE(bench.add(promptOf(50), 3, listener, [](auto &o) { o.promptLogits = true; }));
  bench.drain();
  ASSERT_EQ(listener.promptRows, 50);
  std::vector<int32_t> prompt = promptOf(50);
  for (size_t i = 0; i < 50; ++i) {
    std::vector<int32_t> context(prompt.begin(), prompt.begin() + ptrdiff_t(i) + 1);
    EXPECT_EQ(listener.promptLogits[i * vocabulary + size_t(hashScript(context, vocabulary))], 10);
  }
  EXPECT_EQ(listener.ids, expected(promptOf(50), 3));
}

TEST(Engine, P05_ASeedGivesTheSameTextInAnyBatch) {
  auto sampled = [](RequestOptions &o) {
    o.sampling.temperature = 4; // flat enough that neighbours' draws would show
    o.sampling.seed = 123;
  };
  TestBench alone;
  RecordingListener want;
  ASSERT_TRUE(alone.add(promptOf(9), 32, want, sampled));
  alone.drain();
  TestBench busy;
  std::vector<std::unique_ptr<RecordingListener>> others;
  for (int i = 0; i < 6; ++i) {
    others.push_back(std::make_unique<RecordingListener>());
    ASSERT_TRUE(busy.add(promptOf(20 + i), 20, *others.back(), [&](RequestOptions &o) {
      o.sampling.temperature = 4;
      o.sampling.seed = uint64_t(i);
    }));
  }
  RecordingListener one, two;
  ASSERT_TRUE(busy.engine->step());
  ASSERT_TRUE(busy.add(promptOf(9), 32, one, sampled));
  ASSERT_TRUE(busy.add(promptOf(9), 32, two, sampled));
  busy.drain();
  EXPECT_EQ(one.ids, want.ids);
  EXPECT_EQ(two.ids, want.ids);
  EXPECT_NE(want.ids, expected(promptOf(9), 32)) << "sampled, not greedy";
}

TEST(Engine, PenaltiesFollowTheOutput) {
  // S14: a model that always prefers token 7 (10 against -5) moves on once 7 has been seen enough.
  BenchOptions setup;
  setup.script = [](const std::vector<int32_t> &) { return 7; };
  TestBench bench(setup);
  RecordingListener listener;
  ASSERT_TRUE(bench.add({7, 7, 7}, 12, listener, [](RequestOptions &o) {
    o.sampling.presencePenalty = 2;
    o.sampling.frequencyPenalty = 1.5f;
  }));
  bench.drain();
  // After n sevens its logit is 10 - 2 - 1.5 n: -5 is reached at n = 8.67, so the tenth is another.
  std::vector<int32_t> want(9, 7);
  want.insert(want.end(), {0, 1, 2});
  EXPECT_EQ(listener.ids, want);
}

TEST(Engine, LimitsAreChecked) {
  auto refused = [](auto change) {
    BenchOptions setup;
    change(setup.limits);
    auto executor = std::make_unique<ScriptedExecutor>(shapeOf(), setup.script);
    return !Engine::create(std::move(executor), setup.limits);
  };
  EXPECT_TRUE(refused([](EngineLimits &l) { l.blockTokens = 20; }));
  EXPECT_TRUE(refused([](EngineLimits &l) { l.blockTokens = 0; }));
  EXPECT_TRUE(refused([](EngineLimits &l) { l.maxBatchedTokens = 0; }));
  EXPECT_TRUE(refused([](EngineLimits &l) { l.maxBatchedTokens = 100000; }));
  EXPECT_TRUE(refused([](EngineLimits &l) { l.maxSequences = 65; }));
  EXPECT_TRUE(refused([](EngineLimits &l) { l.kvBlocks = 0; }));
  EXPECT_FALSE(refused([](EngineLimits &l) {}));
}

} // namespace
