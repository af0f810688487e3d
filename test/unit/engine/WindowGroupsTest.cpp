// Layers that see all tokens beside layers with windows: each group has blocks of its own, and what
// is behind a window goes while the rest stays. ScriptedExecutor checks every key that a group
// sees.
#include "test/unit/engine/SpeculationBench.h"

#include "runtime/support/Mix64.h"

using namespace llmrt;
using namespace llmrt::test;

namespace {

class Random {
public:
  explicit Random(uint64_t seed) : state_(seed * 1000) {}
  int64_t operator()(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(mix64(++state_) % static_cast<uint64_t>(high - low + 1));
  }

private:
  uint64_t state_;
};

BenchOptions windowed(std::vector<int64_t> windows, int64_t blocks = 256) {
  BenchOptions setup;
  setup.windows = std::move(windows);
  setup.limits.kvBlocks = blocks;
  return setup;
}

void expectAllFree(const Engine &engine) {
  EXPECT_EQ(engine.freeBlocks(), engine.limits().kvBlocks);
  for (const auto &used : engine.metrics().windowBlocksUsed)
    EXPECT_EQ(used, 0);
}

TEST(WindowGroups, WhatIsBehindAWindowIsFreedWhileTheRestStays) {
  for (bool caching : {false, true}) {
    BenchOptions setup = windowed({40}, 128);
    setup.limits.prefixCaching = caching;
    TestBench bench(setup);
    std::vector<RecordingListener> listeners(4);
    for (int i = 0; i < 4; ++i)
      ASSERT_TRUE(bench.add(promptOf(100, i), 300, listeners[size_t(i)]));
    const EngineMetrics &metrics = bench.engine->metrics();
    int64_t mostMain = 0, mostWindow = 0;
    while (bench.engine->busy()) {
      ASSERT_TRUE(bench.engine->step());
      mostMain = std::max<int64_t>(mostMain, metrics.kvBlocksUsed);
      if (metrics.generationTokens > 4)
        mostWindow = std::max<int64_t>(mostWindow, metrics.windowBlocksUsed[0]);
    }
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(listeners[size_t(i)].ids, expected(promptOf(100, i), 300));
    EXPECT_GE(mostMain, 4 * 24) << "400 tokens each";
    EXPECT_LE(mostWindow, 4 * 4) << "40 tokens touch four blocks at most";
    EXPECT_GT(mostWindow, 0);
    expectAllFree(*bench.engine);
  }
}

TEST(WindowGroups, PoolsOfWindowsSufficeForWhateverRuns) {
  BenchOptions setup = windowed({8, 1});
  setup.limits.prefixCaching = false; // no room to spare
  setup.limits.maxBatchedTokens = setup.limits.maxRows = 512;
  TestBench bench(setup);
  EXPECT_LT(bench.engine->limits().windowBlocks[0], 256);
  EXPECT_LT(bench.engine->limits().windowBlocks[1], bench.engine->limits().windowBlocks[0] + 1);
  std::vector<RecordingListener> listeners(8);
  for (int i = 0; i < 8; ++i)
    ASSERT_TRUE(bench.add(promptOf(400, i), 40, listeners[size_t(i)]));
  bench.drain();
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(listeners[size_t(i)].ids, expected(promptOf(400, i), 40));
  EXPECT_EQ(bench.engine->metrics().preemptions, 0);
}

TEST(WindowGroups, AHitNeedsOnlyWhatTheNextTokenSees) {
  TestBench bench(windowed({40}));
  RecordingListener first, second, third;
  ASSERT_TRUE(bench.add(promptOf(200), 60, first));
  bench.drain();
  // All of the prompt's main blocks are there, and the window's last ones.
  ASSERT_TRUE(bench.add(promptOf(200), 60, second));
  bench.drain();
  EXPECT_EQ(second.stats.cachedTokens, 192);
  EXPECT_EQ(second.ids, first.ids);
  expectAllFree(*bench.engine);
}

/// Requests of other texts, one after the other, until the window's pool has turned over.
void turnOver(TestBench &bench, int64_t tokens) {
  for (int salt = 20; tokens > 0; ++salt, tokens -= 120) {
    RecordingListener other;
    ASSERT_TRUE(bench.add(promptOf(100, salt), 20, other));
    bench.drain();
  }
}

TEST(WindowGroups, AHitEndsWhereTheWindowsBlocksAreGone) {
  BenchOptions setup = windowed({40}, 1024);
  setup.limits.maxSequences = 1;
  TestBench bench(setup);
  int64_t window = bench.engine->limits().windowBlocks[0];
  ASSERT_LT(window, 100) << "else nothing is evicted";
  std::vector<int32_t> prompt = promptOf(200);
  RecordingListener first, warm, partly, cold;
  ASSERT_TRUE(bench.add(prompt, 20, first));
  bench.drain();
  ASSERT_TRUE(bench.add(prompt, 20, warm));
  bench.drain();
  EXPECT_EQ(warm.stats.cachedTokens, 192);
  turnOver(bench, 2 * window * 16);
  // The main blocks are all there still, but the window of no place in the text is.
  ASSERT_TRUE(bench.add(prompt, 20, cold));
  bench.drain();
  EXPECT_EQ(cold.stats.cachedTokens, 0);
  // Its own blocks were kept beside the old main ones.
  RecordingListener again;
  ASSERT_TRUE(bench.add(prompt, 20, again));
  bench.drain();
  EXPECT_EQ(again.stats.cachedTokens, 192);
  for (RecordingListener *listener : {&first, &warm, &cold, &again})
    EXPECT_EQ(listener->ids, expected(prompt, 20));
  // A longer text that begins like it: what the first run's window was at the fork is wanted.
  std::vector<int32_t> other(prompt.begin(), prompt.begin() + 100);
  for (int32_t token : promptOf(60, 9))
    other.push_back(token);
  ASSERT_TRUE(bench.add(other, 20, partly));
  bench.drain();
  EXPECT_EQ(partly.stats.cachedTokens, 96);
  EXPECT_EQ(partly.ids, expected(other, 20));
  expectAllFree(*bench.engine);
}

TEST(WindowGroups, AnEvictedMainBlockTakesTheWindowsAlong) {
  TestBench bench(windowed({40}, 16));
  RecordingListener first, others[3], again;
  ASSERT_TRUE(bench.add(promptOf(100), 20, first));
  bench.drain();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(bench.add(promptOf(150, 5 + i), 20, others[i]));
    bench.drain();
  }
  ASSERT_TRUE(bench.add(promptOf(100), 20, again));
  bench.drain();
  EXPECT_EQ(again.stats.cachedTokens, 0);
  EXPECT_EQ(again.ids, first.ids);
  expectAllFree(*bench.engine);
}

TEST(WindowGroups, ChoicesCopyTheirLastBlockInEveryGroup) {
  for (int64_t blocks : {256, 16}) {
    TestBench bench(windowed({40, 8}, blocks));
    struct Choices final : RequestListener {
      bool onToken(const TokenEvent &event) override {
        ids[size_t(event.choice)].push_back(event.token.id);
        return true;
      }
      void onFinish(const FinishEvent &event) override { EXPECT_TRUE(event.status); }
      std::vector<Ids> ids = std::vector<Ids>(3);
    } listener;
    RequestOptions options;
    options.prompt = promptOf(100);
    options.maxNewTokens = 50;
    options.choices = 3;
    options.sampling.temperature = 4;
    options.sampling.seed = 3;
    options.listener = &listener;
    ASSERT_TRUE(bench.engine->add(std::move(options)));
    bench.drain();
    if (blocks == 256)
      EXPECT_EQ(bench.executor->copied, 3 * 2);
    for (const Ids &ids : listener.ids)
      EXPECT_EQ(ids.size(), 50u);
    EXPECT_NE(listener.ids[0], listener.ids[1]);
    expectAllFree(*bench.engine);
  }
}

TEST(WindowGroups, UsedBlocksAreClearedInEveryGroup) {
  BenchOptions setup = windowed({40});
  setup.limits.prefixCaching = false;
  TestBench bench(setup);
  for (int i = 0; i < 2; ++i) {
    RecordingListener listener;
    ASSERT_TRUE(bench.add(promptOf(60, i), 4, listener)); // 63 tokens are computed
    bench.drain();
    EXPECT_EQ(bench.executor->cleared, i * 4 * 2);
  }
}

TEST(WindowGroups, PreemptedSequencesComeBackInEveryGroup) {
  for (bool caching : {false, true})
    for (PreemptionMode mode : {PreemptionMode::Recompute, PreemptionMode::Swap}) {
      BenchOptions setup = windowed({40, 20}, 24);
      setup.limits.prefixCaching = caching;
      setup.limits.swapBlocks = 64;
      setup.limits.preemption = mode;
      TestBench bench(setup);
      std::vector<RecordingListener> listeners(4);
      for (int i = 0; i < 4; ++i)
        ASSERT_TRUE(bench.add(promptOf(60, i), 150, listeners[size_t(i)]));
      bench.drain();
      for (int i = 0; i < 4; ++i)
        EXPECT_EQ(listeners[size_t(i)].ids, expected(promptOf(60, i), 150)) << i;
      EXPECT_GT(bench.engine->metrics().preemptions, 0);
      EXPECT_EQ(bench.engine->metrics().swaps > 0, mode == PreemptionMode::Swap);
      expectAllFree(*bench.engine);
    }
}

TEST(WindowGroups, OccupancyIsOfAllGroupsByBytes) {
  TestBench bench(windowed({40})); // four bytes a token in both groups
  RecordingListener listener;
  ASSERT_TRUE(bench.add(promptOf(64), 150, listener));
  for (int i = 0; i < 1 + 100; ++i)
    ASSERT_TRUE(bench.engine->step());
  // 164 tokens are computed: eleven main blocks, and of the window's those from position 125 on.
  const EngineMetrics &metrics = bench.engine->metrics();
  ASSERT_EQ(metrics.kvBlocksUsed, 11);
  ASSERT_EQ(metrics.windowBlocksUsed[0], 4);
  EXPECT_EQ(metrics.kvBytesHeld, 4 * 16 * (11 + 4));
  EXPECT_EQ(metrics.kvBytesLive, 4 * (164 + 164 - 7 * 16));
  EXPECT_DOUBLE_EQ(metrics.kvOccupancy(), 216.0 / 240);
}

/// A draft model of the target's own text, whose layers see as far as \p groups say.
std::unique_ptr<DraftModel> windowedDraft(std::vector<int64_t> windows, DraftModelLimits limits,
                                          int64_t shortContext = INT64_MAX) {
  ModelShape shape = shapeOf(4096, shortContext);
  shape.window = windows[0];
  for (int64_t window : windows)
    shape.kvGroups.push_back({window, 4});
  if (windows.size() == 1)
    limits.windowBlocks.clear();
  auto script = windows[0] ? windowedScript(size_t(windows[0])) : BenchOptions().script;
  auto executor = std::make_unique<ScriptedExecutor>(shape, script);
  return std::move(*DraftModel::create(std::move(executor), limits));
}

TEST(WindowGroups, ADraftModelFreesWhatItsWindowsLeft) {
  struct Case {
    std::vector<int64_t> windows;
    int64_t mostHeld; ///< blocks, for a text of 470 tokens: 30 where nothing is freed
  };
  for (const Case &c : {Case{{40}, 5}, Case{{0, 40}, 30 + 5}, Case{{100, 8}, 9 + 3}})
    for (int64_t shortContext : {INT64_MAX, int64_t(300)}) {
      SCOPED_TRACE(c.windows[0]);
      // A text that becomes a long one is read again, here in one step.
      DraftModelLimits limits{.maxBatchedTokens = shortContext == 300 ? 512 : 64,
                              .maxSequences = 2,
                              .blockTokens = 16,
                              .kvBlocks = 64,
                              .windowBlocks = {40},
                              .sampledVocabulary = vocabulary};
      auto owned = windowedDraft(c.windows, limits, shortContext);
      const DraftModel &draft = *owned;
      const int64_t all = draft.freeBlocks();
      BenchOptions setup;
      setup.shortContext = shortContext;
      if (c.windows[0])
        setup.script = windowedScript(size_t(c.windows[0]));
      Speculative bench(std::move(owned), 4, false, setup);
      RecordingListener listener;
      bench.add(promptOf(200), 270, listener);
      int64_t least = all;
      while (bench.engine->busy()) {
        ASSERT_TRUE(bench.engine->step());
        if (bench.engine->metrics().generationTokens > 10)
          least = std::min(least, draft.freeBlocks());
        if (shortContext == 300 && bench.engine->metrics().generationTokens < 140)
          least = all; // it reads the whole text anew then
      }
      EXPECT_EQ(listener.ids, expected(promptOf(200), 270, setup.script));
      EXPECT_GT(listener.stats.acceptedTokens, 190) << "it has what it needs";
      EXPECT_LE(all - least, c.mostHeld);
      EXPECT_EQ(draft.freeBlocks(), all);
    }
}

class WindowTraffic : public ::testing::TestWithParam<uint64_t> {};

/// Everything at once: texts with common beginnings, preemption by recompute and by swap, caches
/// that are full, guesses, choices of block sizes and chunks.
TEST_P(WindowTraffic, EveryOutputIsAsIfAlone) {
  Random random(GetParam());
  BenchOptions setup = windowed({});
  for (int64_t window = random(20, 90); window > 0 && setup.windows.size() < maxKvGroups - 1;
       window = random(0, window - 1))
    setup.windows.push_back(window);
  setup.context = 300;
  setup.limits.maxSequences = random(1, 8);
  setup.limits.maxBatchedTokens = setup.limits.maxRows = random(setup.limits.maxSequences + 4, 100);
  setup.limits.blockTokens = 16 * random(1, 3);
  setup.limits.kvBlocks = 300 / setup.limits.blockTokens + random(1, 20);
  setup.limits.prefixCaching = random(0, 3) > 0;
  setup.limits.swapBlocks = random(0, 1) ? random(4, 60) : 0;
  setup.limits.preemption = random(0, 1) ? PreemptionMode::Swap : PreemptionMode::Recompute;
  setup.limits.speculation = {4, random(0, 1) == 1, false, true};
  TestBench bench(setup, random(0, 1)   ? std::make_unique<OracleDrafter>(int(random(0, 8)))
                         : random(0, 1) ? std::unique_ptr<Drafter>(std::make_unique<OracleTree>())
                                        : nullptr);

  std::vector<std::pair<std::vector<int32_t>, int64_t>> asked;
  std::vector<std::unique_ptr<RecordingListener>> listeners;
  for (int i = 0; i < 40 || bench.engine->busy(); ++i) {
    ASSERT_LT(i, 100000) << "no progress";
    if (i < 40) {
      std::vector<int32_t> prompt = promptOf(int(random(1, 200)), int(random(0, 2)));
      for (int64_t j = random(0, 40); j > 0 && j < int64_t(prompt.size()); --j)
        prompt[prompt.size() - size_t(j)] = int32_t(random(0, vocabulary - 1));
      asked.emplace_back(prompt, random(1, 299 - int64_t(prompt.size())));
      listeners.push_back(std::make_unique<RecordingListener>());
      ASSERT_TRUE(bench.add(prompt, asked.back().second, *listeners.back()));
    }
    for (int64_t steps = random(1, 6); steps > 0 && bench.engine->busy(); --steps)
      ASSERT_TRUE(bench.engine->step());
  }
  for (size_t i = 0; i < asked.size(); ++i)
    EXPECT_EQ(listeners[i]->ids, expected(asked[i].first, int(asked[i].second))) << "request " << i;
  expectAllFree(*bench.engine);
}
INSTANTIATE_TEST_SUITE_P(Seeds, WindowTraffic, ::testing::Range<uint64_t>(1, 33));

TEST(WindowGroups, R05_PoolsFitTheRoomThatTheyAreGiven) {
  ModelShape shape = shapeOf(8192);
  shape.kvGroups = {{0, 1000}, {512, 5000}};
  shape.kvBytesPerToken = 6000;
  CpuEngineOptions options;
  options.maxSequences = 8;
  EngineLimits limits = *engineLimits(shape, options);
  auto bytes = [&] {
    return uint64_t(limits.blockTokens) *
           (uint64_t(limits.kvBlocks) * 1000 + uint64_t(limits.windowBlocks.at(0)) * 5000);
  };
  for (uint64_t room : {uint64_t(80) << 20, uint64_t(100) << 20}) {
    sizeKvPools(shape, options, limits, room);
    EXPECT_LE(bytes(), room);
    EXPECT_GT(bytes(), room - room / 50) << "as much as there is";
    // One pool for all layers would hold fewer tokens.
    EXPECT_GT(uint64_t(limits.kvBlocks), room / 6000 / uint64_t(limits.blockTokens));
  }
  sizeKvPools(shape, options, limits, uint64_t(1) << 40);
  EXPECT_EQ(limits.kvBlocks, 8 * 8192 / limits.blockTokens) << "what all sequences could use";
  EXPECT_LT(limits.windowBlocks[0], limits.kvBlocks / 2);
  options.kvTokens = 1600;
  sizeKvPools(shape, options, limits, 0);
  EXPECT_EQ(limits.kvBlocks, 1600 / limits.blockTokens);
  EXPECT_EQ(limits.windowBlocks[0], limits.kvBlocks) << "never more than beside the main blocks";
}

} // namespace
