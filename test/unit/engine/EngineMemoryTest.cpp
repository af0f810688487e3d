// Prefix reuse, preemption, choices, windows, queue: whatever the memory does, outputs stay.
#include "test/unit/engine/TestBench.h"

using namespace llmrt;
using namespace llmrt::test;

namespace {

/// Answers of one request.
class ChoicesListener final : public RequestListener {
public:
  explicit ChoicesListener(size_t n) : ids(n), reasons(n), logprobs(n) {}
  bool onToken(const TokenEvent &event) override {
    ids.at(size_t(event.choice)).push_back(event.token.id);
    logprobs.at(size_t(event.choice)) += double(event.token.logprob);
    return cancelAt == 0 || ids[0].size() < cancelAt;
  }
  void onFinish(const FinishEvent &event) override {
    EXPECT_EQ(reasons.at(size_t(event.choice)), FinishReason::None);
    reasons[size_t(event.choice)] = event.reason;
    EXPECT_EQ(event.last, ++ended == ids.size());
    EXPECT_EQ(event.sumLogprob, logprobs[size_t(event.choice)]);
  }
  std::vector<std::vector<int32_t>> ids;
  std::vector<FinishReason> reasons;
  std::vector<double> logprobs;
  size_t ended = 0, cancelAt = 0;
};

TEST(EnginePrefix, A12_AWholePromptThatIsCachedStillGivesLogits) {
  for (int n : {32, 1, 16, 33}) {
    TestBench bench;
    RecordingListener cold, warm;
    auto logprobs = [](RequestOptions &o) { o.sampling.logprobs = 0; };
    ASSERT_TRUE(bench.add(promptOf(n), 4, cold, logprobs));
    bench.drain();
    ASSERT_TRUE(bench.add(promptOf(n), 4, warm, logprobs));
    bench.drain();
    EXPECT_EQ(warm.ids, expected(promptOf(n), 4));
    EXPECT_EQ(warm.logprobs, cold.logprobs);
    EXPECT_EQ(cold.stats.cachedTokens, 0);
    EXPECT_EQ(warm.stats.cachedTokens, n == 33 ? 32 : n == 32 ? 16 : 0);
  }
}

TEST(EnginePrefix, A15_EditedHistories) {
  TestBench bench;
  std::vector<int32_t> first;
  for (int i = 1; i <= 40; ++i)
    first.push_back(i);
  std::vector<int32_t> second = first;
  second[20] = 90;
  for (const auto &[prompt, cached] : std::vector<std::pair<std::vector<int32_t>, int64_t>>{
           {first, 0}, {second, 16}, {first, 32}, {{first.begin(), first.begin() + 10}, 0}}) {
    RecordingListener listener;
    ASSERT_TRUE(bench.add(prompt, 10, listener));
    bench.drain();
    EXPECT_EQ(listener.ids, expected(prompt, 10));
    EXPECT_EQ(listener.stats.cachedTokens, cached);
  }
}

TEST(EnginePrefix, A16_OnlyWhatIsNotCachedIsScheduled) {
  TestBench bench; // 64 tokens a step
  RecordingListener cold, warm;
  ASSERT_TRUE(bench.add(promptOf(256), 0, cold));
  bench.drain();
  bench.executor->tokensOfSteps.clear();
  std::vector<int32_t> longer = promptOf(465);
  ASSERT_TRUE(bench.add(longer, 0, warm));
  bench.drain();
  EXPECT_EQ(warm.stats.cachedTokens, 256);
  EXPECT_EQ(bench.executor->tokensOfSteps, (std::vector<int64_t>{64, 64, 64, 17})); // 209
  EXPECT_EQ(bench.engine->metrics().prefixQueries, 256 + 465);
  EXPECT_EQ(bench.engine->metrics().prefixHits, 256);
}

TEST(EnginePrefix, LongContextsHaveKeysOfTheirOwn) {
  BenchOptions setup;
  setup.shortContext = 40;
  TestBench bench(setup);
  // 30 tokens grow to 41: the last but one is computed with all before it.
  RecordingListener grows;
  ASSERT_TRUE(bench.add(promptOf(30), 20, grows));
  bench.drain();
  EXPECT_EQ(grows.ids, expected(promptOf(30), 20));
  const std::vector<int64_t> steps = {30, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 41, 1, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_EQ(bench.executor->tokensOfSteps, steps);
  EXPECT_EQ(grows.stats.preemptions, 0);
  // Exactly the short context; one more; a short one again: each finds its own kind.
  for (const auto &[n, cached] :
       std::vector<std::pair<int, int64_t>>{{40, 16}, {41, 16}, {39, 32}}) {
    RecordingListener listener;
    ASSERT_TRUE(bench.add(promptOf(n), 1, listener));
    bench.drain();
    EXPECT_EQ(listener.ids, expected(promptOf(n), 1)) << n;
    EXPECT_EQ(listener.stats.cachedTokens, cached) << n;
  }
}

TEST(EngineChoices, GrowIntoTheLongContextTogether) {
  BenchOptions setup;
  setup.shortContext = 40;
  TestBench bench(setup);
  ChoicesListener listener(3);
  RequestOptions options;
  options.prompt = promptOf(40);
  options.maxNewTokens = 5;
  options.choices = 3;
  options.listener = &listener;
  ASSERT_TRUE(bench.engine->add(std::move(options)));
  bench.drain();
  for (const std::vector<int32_t> &ids : listener.ids)
    EXPECT_EQ(ids, expected(promptOf(40), 5));
  EXPECT_EQ(bench.engine->freeBlocks(), 256);
}

TEST(EnginePrefix, AConversationFindsItsAnswerToo) {
  TestBench bench;
  RecordingListener first, second;
  ASSERT_TRUE(bench.add(promptOf(20), 30, first));
  bench.drain();
  std::vector<int32_t> next = promptOf(20);
  next.insert(next.end(), first.ids.begin(), first.ids.end());
  next.push_back(3);
  ASSERT_TRUE(bench.add(next, 5, second));
  bench.drain();
  EXPECT_EQ(second.stats.cachedTokens, 48);
  EXPECT_EQ(second.ids, expected(next, 5));
}

TEST(EnginePrefix, CanBeSwitchedOff) {
  BenchOptions setup;
  setup.limits.prefixCaching = false;
  TestBench bench(setup);
  for (int i = 0; i < 2; ++i) {
    RecordingListener listener;
    ASSERT_TRUE(bench.add(promptOf(40), 4, listener));
    bench.drain();
    EXPECT_EQ(listener.stats.cachedTokens, 0);
  }
  EXPECT_EQ(bench.engine->metrics().prefixQueries, 0);
}

TEST(EnginePrefix, A11_AfterEvictionTheOldPromptIsComputedAgain) {
  BenchOptions setup;
  setup.limits.kvBlocks = 8;
  TestBench bench(setup);
  for (int salt : {1, 2, 3, 1, 3, 1}) {
    RecordingListener listener;
    ASSERT_TRUE(bench.add(promptOf(70, salt), 20, listener));
    bench.drain();
    EXPECT_EQ(listener.ids, expected(promptOf(70, salt), 20)) << salt;
  }
}

class Preempted : public ::testing::TestWithParam<PreemptionMode> {};

TEST_P(Preempted, A13_StreamsAreAsWithALargePool) {
  auto run = [&](int64_t blocks, int64_t &preemptions) {
    BenchOptions setup;
    setup.limits.kvBlocks = blocks;
    setup.limits.preemption = GetParam();
    setup.limits.swapBlocks = 16;
    TestBench bench(setup);
    std::vector<RecordingListener> listeners(3);
    for (int i = 0; i < 3; ++i)
      EXPECT_TRUE(bench.add(promptOf(20, i), 30, listeners[size_t(i)], [](RequestOptions &o) {
        o.sampling.seed = 5;
        o.sampling.temperature = 3;
        o.sampling.presencePenalty = 0.5f;
        o.sampling.logprobs = 1;
      }));
    bench.drain();
    preemptions = bench.engine->metrics().preemptions;
    if (GetParam() == PreemptionMode::Swap) {
      EXPECT_EQ(bench.engine->metrics().swaps, preemptions);
      EXPECT_EQ(bench.executor->loaded > 0, preemptions > 0);
    } else {
      EXPECT_EQ(bench.executor->saved, 0);
    }
    EXPECT_EQ(bench.engine->freeBlocks(), blocks);
    EXPECT_EQ(bench.engine->metrics().promptTokens, 60);
    EXPECT_EQ(bench.engine->metrics().generationTokens, 90);
    return listeners;
  };
  int64_t none = 0, some = 0;
  auto want = run(64, none), got = run(6, some);
  EXPECT_EQ(none, 0);
  EXPECT_GT(some, 0);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(got[i].ids, want[i].ids) << i;
    EXPECT_EQ(got[i].logprobs, want[i].logprobs) << i;
    EXPECT_EQ(got[i].ids.size(), 30u);
  }
}
INSTANTIATE_TEST_SUITE_P(Modes, Preempted,
                         ::testing::Values(PreemptionMode::Recompute, PreemptionMode::Swap));

TEST(EnginePreemption, TheUrgentOneStaysAndThePromptsLogitsComeOnce) {
  BenchOptions setup;
  setup.limits.kvBlocks = 6;
  setup.limits.maxRows = 8;
  TestBench bench(setup);
  RecordingListener early, urgent;
  ASSERT_TRUE(bench.add(promptOf(30), 50, early, [](auto &o) { o.promptLogits = true; }));
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(bench.engine->step());
  ASSERT_TRUE(bench.add(promptOf(20), 60, urgent, [](auto &o) { o.priority = -1; }));
  bench.drain();
  EXPECT_GT(early.stats.preemptions, 0);
  EXPECT_EQ(urgent.stats.preemptions, 0);
  EXPECT_EQ(early.promptRows, 30);
  EXPECT_EQ(early.ids, expected(promptOf(30), 50));
  EXPECT_EQ(urgent.ids, expected(promptOf(20), 60));
}

TEST(EngineQueue, PrioritiesGoFirstAndEqualOnesInOrder) {
  BenchOptions setup;
  setup.limits.maxSequences = setup.limits.maxRows = 1;
  TestBench bench(setup);
  std::vector<RecordingListener> listeners(4);
  int priorities[] = {0, 0, -3, 0};
  for (int i = 0; i < 4; ++i)
    ASSERT_TRUE(bench.add(promptOf(3), 5, listeners[size_t(i)],
                          [&](auto &o) { o.priority = priorities[i]; }));
  bench.drain();
  auto start = [&](size_t i) { return listeners[i].stats.started; };
  EXPECT_LT(start(2), start(0));
  EXPECT_LT(start(0), start(1));
  EXPECT_LT(start(1), start(3));
}

TEST(EngineQueue, IsBounded) {
  BenchOptions setup;
  setup.limits.maxSequences = setup.limits.maxRows = 2;
  setup.limits.maxQueued = 3;
  TestBench bench(setup);
  std::vector<RecordingListener> listeners(7);
  for (size_t i = 0; i < 6; ++i) {
    auto id = bench.add(promptOf(3), 5, listeners[i]);
    EXPECT_EQ(bool(id), i < 5) << i; // two that can start, three that wait
    if (!id) {
      EXPECT_EQ(id.status().code(), StatusCode::QueueFull);
      EXPECT_NE(id.status().message().find("3 requests"), std::string::npos);
    }
  }
  EXPECT_EQ(bench.engine->metrics().queueRefusals, 1);
  bench.drain();
  ASSERT_TRUE(bench.add(promptOf(3), 5, listeners[6]));
  bench.drain();
  EXPECT_EQ(listeners[6].ids.size(), 5u);
  EXPECT_EQ(bench.engine->metrics().finished[size_t(FinishReason::Length)], 6);
}

TEST(EngineQueue, DeadlinesEndRunningAndWaitingRequests) {
  BenchOptions setup;
  setup.limits.maxSequences = setup.limits.maxRows = 1;
  TestBench bench(setup);
  RecordingListener running, waiting, patient;
  auto soon = RequestStats::Clock::now() + std::chrono::milliseconds(20);
  ASSERT_TRUE(bench.add(promptOf(3), 4000, running, [&](auto &o) { o.deadline = soon; }));
  ASSERT_TRUE(bench.add(promptOf(3), 4000, waiting, [&](auto &o) { o.deadline = soon; }));
  ASSERT_TRUE(bench.add(promptOf(3), 5, patient));
  ASSERT_TRUE(bench.engine->step());
  while (RequestStats::Clock::now() < soon)
    ;
  bench.drain();
  for (RecordingListener *listener : {&running, &waiting}) {
    EXPECT_EQ(listener->reason, FinishReason::Error);
    EXPECT_EQ(listener->status.code(), StatusCode::DeadlineExceeded);
  }
  EXPECT_FALSE(running.ids.empty());
  EXPECT_TRUE(waiting.ids.empty());
  EXPECT_EQ(patient.ids.size(), 5u);
}

TEST(EngineChoices, P06_ChoicesDifferAndDoNotDependOnTheirNumber) {
  auto run = [](int32_t n, int64_t maxSequences, int64_t blocks) {
    BenchOptions setup;
    setup.limits.maxSequences = maxSequences;
    setup.limits.kvBlocks = blocks;
    TestBench bench(setup);
    ChoicesListener listener(static_cast<size_t>(n));
    RequestOptions options;
    options.prompt = promptOf(20);
    options.maxNewTokens = 32;
    options.sampling.seed = 5;
    options.sampling.temperature = 4;
    options.sampling.logprobs = 0;
    options.sampling.repetitionPenalty = 1.1f;
    options.choices = n;
    options.listener = &listener;
    EXPECT_TRUE(bench.engine->add(std::move(options)));
    bench.drain();
    EXPECT_EQ(listener.ended, size_t(n));
    EXPECT_EQ(bench.engine->freeBlocks(), blocks);
    if (maxSequences >= n && blocks > 100) {
      EXPECT_EQ(bench.executor->copied, n - 1) << "each but one copies the half full block";
      EXPECT_EQ(bench.executor->tokensOfSteps[0], 20) << "the prompt is computed once";
      EXPECT_EQ(bench.executor->tokensOfSteps[1], n);
    }
    return listener.ids;
  };
  auto four = run(4, 8, 256);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(four[i].size(), 32u);
    for (size_t j = 0; j < i; ++j)
      EXPECT_NE(four[i], four[j]);
  }
  EXPECT_EQ(run(4, 8, 256), four);
  EXPECT_EQ(run(4, 2, 256), four) << "more choices than can run at a time";
  EXPECT_EQ(run(4, 8, 6), four) << "less memory than they need together";
  auto two = run(2, 8, 256);
  EXPECT_EQ(two[0], four[0]);
  EXPECT_EQ(two[1], four[1]);
}

TEST(EngineChoices, ACancelledRequestEndsWithAllItsChoices) {
  for (size_t cancelAt : {1u, 3u}) {
    BenchOptions setup;
    setup.limits.maxSequences = 3;
    TestBench bench(setup);
    ChoicesListener listener(5);
    listener.cancelAt = cancelAt;
    RequestOptions options;
    options.prompt = promptOf(20);
    options.maxNewTokens = 32;
    options.choices = 5;
    options.listener = &listener;
    ASSERT_TRUE(bench.engine->add(std::move(options)));
    bench.drain();
    for (FinishReason reason : listener.reasons)
      EXPECT_EQ(reason, FinishReason::Cancelled);
    EXPECT_EQ(bench.engine->freeBlocks(), setup.limits.kvBlocks);
  }
  TestBench bench;
  RecordingListener refused;
  for (int32_t n : {0, -1, 129})
    EXPECT_FALSE(bench.add({1}, 5, refused, [n](auto &o) { o.choices = n; }));
}

TEST(EngineWindow, BlocksThatSlidOutAreFreed) {
  ModelShape shape = shapeOf();
  shape.window = 40;
  BenchOptions setup;
  const ScriptedExecutor::Script windowed = windowedScript(40);
  for (bool caching : {false, true})
    for (bool swap : {false, true}) {
      setup.limits.prefixCaching = caching;
      setup.limits.swapBlocks = swap ? 64 : 0;
      setup.limits.kvBlocks = 32;
      auto owned = std::make_unique<ScriptedExecutor>(shape, windowed);
      auto engine = std::move(*Engine::create(std::move(owned), setup.limits));
      std::vector<RecordingListener> listeners(4);
      for (int i = 0; i < 4; ++i) {
        RequestOptions options;
        options.prompt = promptOf(100, i);
        options.maxNewTokens = 300;
        options.listener = &listeners[size_t(i)];
        ASSERT_TRUE(engine->add(std::move(options)));
      }
      int64_t most = 0;
      for (int i = 0; engine->busy() && i < 10000; ++i) {
        ASSERT_TRUE(engine->step());
        most = std::max(most, engine->metrics().kvBlocksUsed.get());
      }
      for (int i = 0; i < 4; ++i)
        EXPECT_EQ(listeners[size_t(i)].ids, expected(promptOf(100, i), 300, windowed)) << i;
      EXPECT_EQ(engine->freeBlocks(), 32);
      // Four times 400 tokens would be 100 blocks; a window touches at most 4.
      EXPECT_LE(most, 32);
    }
}

TEST(EngineMetrics, TellHowFullTheMemoryIs) {
  BenchOptions setup;
  setup.limits.kvBlocks = 20;
  TestBench bench(setup);
  std::vector<RecordingListener> listeners(4);
  for (auto &listener : listeners)
    ASSERT_TRUE(bench.add(promptOf(40, int(&listener - &listeners[0])), 200, listener));
  for (int i = 0; i < 30; ++i)
    ASSERT_TRUE(bench.engine->step());
  const EngineMetrics &metrics = bench.engine->metrics();
  EXPECT_EQ(metrics.running + metrics.waiting, 4);
  EXPECT_EQ(metrics.kvBlocksUsed, 20 - bench.engine->freeBlocks());
  EXPECT_GT(metrics.kvUsage(), 0.5);
  EXPECT_GT(metrics.kvOccupancy(), 0.8);
  EXPECT_GT(metrics.steps, 0);
  EXPECT_GT(metrics.lastStep, 0);
  bench.drain();
  EXPECT_EQ(metrics.running, 0);
  EXPECT_EQ(metrics.kvBlocksUsed, 0);
  EXPECT_EQ(metrics.generationTokens, 800);
}

} // namespace
