// Speculation in the engine: whatever is guessed, the output is plain decoding's.
#include "test/unit/engine/SpeculationBench.h"

using namespace llmrt;
using namespace llmrt::test;

namespace {

TEST(Speculation, S12_EveryRowIsPlainDecodingWhateverIsAccepted) {
  for (auto &[name, make] : drafters())
    for (bool adaptive : {false, true})
      for (int64_t blocks : {256, 12}) {
        SCOPED_TRACE(std::string(name) + (adaptive ? " adaptive " : " ") + std::to_string(blocks));
        BenchOptions setup;
        setup.limits.kvBlocks = blocks;
        Speculative bench(make(), 4, adaptive, setup);
        std::vector<RecordingListener> listeners(6);
        for (int i = 0; i < 6; ++i)
          bench.add(promptOf(10 + 9 * i, i), 60 + i, listeners[size_t(i)]);
        bench.drain();
        for (int i = 0; i < 6; ++i)
          EXPECT_EQ(listeners[size_t(i)].ids, expected(promptOf(10 + 9 * i, i), 60 + i)) << i;
        EXPECT_EQ(bench.engine->freeBlocks(), blocks);
        const EngineMetrics &m = bench.engine->metrics();
        EXPECT_EQ(m.generationTokens, 6 * 60 + 15);
        EXPECT_LE(m.acceptedTokens, m.draftTokens);
        if (std::string(name) == "perfect" && !adaptive) {
          EXPECT_EQ(m.acceptedTokens, m.draftTokens);
          EXPECT_GT(m.acceptedTokens, 250);
        }
        if (std::string(name) == "wrong" && blocks == 256) {
          EXPECT_EQ(m.acceptedTokens, 0);
          EXPECT_EQ(adaptive, m.draftTokens < 300) << "adaptive windows shut";
        }
        if (std::string(name) == "tree" && !adaptive) {
          EXPECT_GT(bench.executor->moved, 20) << "guesses aside of the first choices came true";
          EXPECT_GT(m.acceptedTokens, 100);
        }
        if (std::string(name) == "own model" && !adaptive && blocks == 256) {
          EXPECT_EQ(m.acceptedTokens, m.draftTokens); // S13: the same model is always right
          EXPECT_GT(m.acceptedTokens, 200);
        }
      }
}

// Windows end where the long context begins: every row is computed with keys of its own length.
TEST(Speculation, GrowsIntoTheLongContext) {
  auto all = drafters();
  all.push_back({"longrope draft", [] { return ownModel(256, 0, 33); }});
  for (auto &[name, make] : all)
    for (int64_t blocks : {256, 12}) {
      SCOPED_TRACE(std::string(name) + " " + std::to_string(blocks));
      BenchOptions setup;
      setup.shortContext = 33;
      setup.limits.kvBlocks = blocks;
      setup.limits.maxBatchedTokens = 16;
      setup.limits.maxRows = 16;
      Speculative bench(make(), 4, false, setup);
      std::vector<RecordingListener> listeners(6);
      for (int i = 0; i < 6; ++i)
        bench.add(promptOf(10 + 9 * i, i), 60 + i, listeners[size_t(i)]);
      bench.drain();
      for (int i = 0; i < 6; ++i)
        EXPECT_EQ(listeners[size_t(i)].ids, expected(promptOf(10 + 9 * i, i), 60 + i)) << i;
      EXPECT_EQ(bench.engine->freeBlocks(), blocks);
    }
}

TEST(Speculation, S15_TheSeedsTextIsTheSameWithEveryDrafterAndWindow) {
  auto sampled = [](RequestOptions &o) {
    o.sampling.temperature = 3.5f;
    o.sampling.minP = 1e-7f;
    o.sampling.seed = 7;
    o.sampling.logprobs = 2;
    o.sampling.presencePenalty = 0.3f;
  };
  RecordingListener want;
  Speculative plain(nullptr);
  plain.add(promptOf(30), 80, want, sampled);
  plain.drain();
  EXPECT_NE(want.ids, expected(promptOf(30), 80));
  for (auto &[name, make] : drafters())
    for (int64_t window : {1, 2, 4, 9}) {
      Speculative bench(make(), window);
      RecordingListener got, other;
      bench.add(promptOf(9), 100, other, sampled);
      bench.add(promptOf(30), 80, got, sampled);
      bench.drain();
      EXPECT_EQ(got.ids, want.ids) << name << " " << window;
      EXPECT_EQ(got.logprobs, want.logprobs) << name << " " << window;
      if (std::string(name) == "own model") { // it draws with the same noise
        EXPECT_GT(bench.engine->metrics().acceptedTokens,
                  bench.engine->metrics().draftTokens * 9 / 10);
      }
    }
}

TEST(Speculation, S05_AnEndTokenInsideAWindow) {
  const Ids want = expected(promptOf(5), 12);
  for (bool ignore : {false, true})
    for (auto &[name, make] : drafters()) {
      Speculative bench(make(), 6);
      RecordingListener listener;
      bench.add(promptOf(5), 12, listener, [&](RequestOptions &o) {
        o.endIds = {want[4]};
        o.ignoreEnd = ignore;
      });
      bench.drain();
      EXPECT_EQ(listener.ids, Ids(want.begin(), want.begin() + (ignore ? 12 : 5))) << name;
      EXPECT_EQ(listener.reason, ignore ? FinishReason::Length : FinishReason::Stop);
      EXPECT_EQ(bench.engine->freeBlocks(), 256);
    }
}

/// Spells each token as a letter and stops at a word.
class LetterSink final : public TextSink {
public:
  explicit LetterSink(std::string stop) : stop_(std::move(stop)) {}
  Result<Piece> push(int32_t id) override {
    text_ += char('a' + id % 26);
    Piece piece;
    piece.stopped = text_.ends_with(stop_);
    piece.stopString = stop_;
    shown_ = std::string(1, text_.back());
    piece.text = piece.stopped ? std::string_view() : std::string_view(shown_);
    return piece;
  }
  Result<std::string_view> finish() override { return std::string_view(); }

private:
  std::string text_, stop_, shown_;
};

TEST(Speculation, S06_AStopStringInTheMiddleOfAWindow) {
  const Ids want = expected(promptOf(5), 12);
  std::string stop = {char('a' + want[5] % 26), char('a' + want[6] % 26)};
  for (auto &[name, make] : drafters())
    for (int64_t window : {1, 2, 4}) {
      Speculative bench(make(), window);
      RecordingListener listener;
      bench.add(promptOf(5), 12, listener, [&](RequestOptions &o) {
        o.text = std::make_unique<LetterSink>(stop);
        o.sampling.logprobs = 0;
      });
      bench.drain();
      EXPECT_EQ(listener.ids.size(), 7u) << name << " " << window;
      EXPECT_EQ(listener.logprobs.size(), 7u);
      EXPECT_EQ(listener.text.size(), 6u);
      EXPECT_EQ(listener.stopString, stop);
    }
}

TEST(Speculation, S10_WindowsEndWithTheContext) {
  for (auto &[name, make] : drafters()) {
    BenchOptions setup;
    setup.context = 64;
    for (int n : {1, 50, 59, 60, 62, 63}) {
      Speculative bench(make(), 5, false, setup);
      RecordingListener listener;
      bench.add(promptOf(n), -1, listener);
      bench.drain();
      EXPECT_EQ(listener.ids, expected(promptOf(n), 64 - n)) << name << " " << n;
      EXPECT_EQ(listener.reason, FinishReason::Length);
    }
  }
}

TEST(Speculation, S14_PenaltiesCountAcceptedTokensOnly) {
  // Always prefers 7; penalties make it move on.
  BenchOptions setup;
  setup.script = [](const Ids &) { return 7; };
  auto penalised = [](RequestOptions &o) {
    o.sampling.presencePenalty = 2;
    o.sampling.frequencyPenalty = 1;
  };
  RecordingListener want;
  Speculative plain(nullptr, 4, false, setup);
  plain.add({7, 7, 7}, 40, want, penalised);
  plain.drain();
  for (auto &[name, make] : drafters()) {
    Speculative bench(make(), 4, false, setup);
    RecordingListener got;
    bench.add({7, 7, 7}, 40, got, penalised);
    bench.drain();
    EXPECT_EQ(got.ids, want.ids) << name;
  }
}

TEST(Speculation, TheClassicalRuleIsDeterministicAndGreedyStaysGreedy) {
  BenchOptions setup;
  auto run = [&](std::unique_ptr<Drafter> drafter, float temperature, int64_t *accepted) {
    setup.limits.speculation = {4, false, true};
    auto owned = std::make_unique<ScriptedExecutor>(shapeOf(), setup.script);
    auto engine = std::move(*Engine::create(std::move(owned), setup.limits, std::move(drafter)));
    RecordingListener listener;
    RequestOptions options;
    options.prompt = promptOf(20);
    options.maxNewTokens = 100;
    options.sampling.temperature = temperature;
    options.sampling.seed = 9;
    options.listener = &listener;
    EXPECT_TRUE(engine->add(std::move(options)));
    while (engine->busy())
      EXPECT_TRUE(engine->step());
    *accepted = engine->metrics().acceptedTokens;
    return listener.ids;
  };
  int64_t accepted = 0;
  EXPECT_EQ(run(ownModel(), 0, &accepted), expected(promptOf(20), 100));
  EXPECT_GT(accepted, 70);
  Ids first = run(ownModel(), 3, &accepted);
  EXPECT_GT(accepted, 70) << "p / q is 1 for the same model";
  EXPECT_EQ(run(ownModel(), 3, &accepted), first);
  EXPECT_EQ(first.size(), 100u);
  EXPECT_EQ(run(std::make_unique<SuffixDrafter>(1), 3, &accepted).size(), 100u);
}

TEST(Speculation, SlowStepsInBetweenAreNoNews) {
  Speculator speculator(std::make_unique<SuffixDrafter>(1), {.tokens = 4}, 1, 16, INT64_MAX);
  for (int i = 0; i < 50; ++i) {
    speculator.observeStep(1, i % 3 == 2 ? 5e-3 : 1e-3);
    speculator.observeStep(4, i % 5 < 2 ? 9e-3 : 2e-3);
  }
  EXPECT_NEAR(speculator.stepSeconds(1), 1e-3, 1e-6);
  EXPECT_NEAR(speculator.stepSeconds(4), 2e-3, 1e-6);
  for (int i = 0; i < 3; ++i) // as when the context has grown
    speculator.observeStep(1, 1.5e-3);
  EXPECT_NEAR(speculator.stepSeconds(1), 1.5e-3, 1e-6);
}

TEST(Speculation, TimesOfAMachineThatStoodStillAreForgotten) {
  Speculator speculator(std::make_unique<SuffixDrafter>(1), {.tokens = 4}, 1, 16, INT64_MAX);
  for (int64_t tokens = 1; tokens <= 5; ++tokens)
    for (int i = 0; i < 5; ++i)
      speculator.observeStep(tokens, tokens == 1 ? 1e-3 : 0.1);
  EXPECT_NEAR(speculator.stepSeconds(4), 0.1, 1e-6);
  // No window is worth that, so no step of its size comes.
  for (int i = 0; i < 1024; ++i)
    speculator.observeStep(1, 1e-3);
  EXPECT_LT(speculator.stepSeconds(4), 2e-3) << "a window is tried again";
  EXPECT_NEAR(speculator.stepSeconds(1), 1e-3, 1e-6);
  speculator.observeStep(4, 3e-3);
  EXPECT_NEAR(speculator.stepSeconds(4), 3e-3, 1e-6);
}

/// As many wrong guesses as the script's prompt asks for: its first token.
class WrongGuesses final : public Drafter {
public:
  const char *name() const override { return "wrong"; }
  std::unique_ptr<DraftState> begin(int64_t, const SamplingParams &) const override {
    return nullptr;
  }
  Status propose(std::span<DraftRequest> requests) override {
    for (DraftRequest &request : requests) {
      Ids context(request.tokens.begin(), request.tokens.end());
      while (int64_t(request.draft->size()) < std::min<int64_t>(request.limit, request.tokens[0])) {
        // The last id there is, where that is wrong.
        int32_t right = hashScript(context, vocabulary);
        request.draft->push_back(right == vocabulary - 1 ? 0 : vocabulary - 1);
        context.push_back(request.draft->back());
      }
    }
    return Status::ok();
  }
};

TEST(Speculation, S16_RowsWithNoneAndWithRejectedGuesses) {
  // The scripted executor checks that every id has a row in the table.
  Speculative bench(std::make_unique<WrongGuesses>(), 4);
  std::vector<RecordingListener> listeners(3);
  std::vector<Ids> prompts = {{2, 5, 9}, {0, 5, 9}, {4, 5, 9}};
  for (size_t i = 0; i < 3; ++i)
    bench.add(prompts[i], 40, listeners[i]);
  bench.drain();
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(listeners[i].ids, expected(prompts[i], 40)) << i;
  const EngineMetrics &m = bench.engine->metrics();
  EXPECT_EQ(m.acceptedTokens, 0);
  // 2 and 4 a step, 0 for the other; fewer before the end: of 38 steps with a guess to make.
  EXPECT_EQ(m.draftTokens, (37 * 2 + 1) + (35 * 4 + 3 + 2 + 1));
  EXPECT_EQ(bench.engine->freeBlocks(), 256);
}

TEST(Speculation, A20_RejectedGuessesBehindAWindowThatWrapped) {
  // Layers that see 8 positions, blocks of 16: what slid out is freed while windows of guesses
  // reach ahead and are taken back.
  ModelShape shape = shapeOf();
  shape.window = 8;
  const ScriptedExecutor::Script windowed = windowedScript(8);
  const Ids want = expected(promptOf(12), 120, windowed);
  for (auto &[name, make] : drafters())
    for (bool caching : {false, true}) {
      BenchOptions setup;
      setup.limits.prefixCaching = caching;
      setup.limits.speculation = {9, false, false, true};
      auto owned = std::make_unique<ScriptedExecutor>(shape, windowed);
      auto engine = std::move(*Engine::create(std::move(owned), setup.limits, make()));
      for (int pass = 0; pass < 2; ++pass) { // the second finds the first one's blocks
        RecordingListener listener;
        RequestOptions options;
        options.prompt = promptOf(12);
        options.maxNewTokens = 120;
        options.listener = &listener;
        ASSERT_TRUE(engine->add(std::move(options)));
        while (engine->busy())
          ASSERT_TRUE(engine->step());
        EXPECT_EQ(listener.ids, want) << name << " " << caching << " " << pass;
      }
      EXPECT_EQ(engine->freeBlocks(), 256);
    }
}

TEST(Speculation, WindowsShareTheStepsBudget) {
  BenchOptions setup;
  setup.limits.maxBatchedTokens = 16;
  setup.limits.maxRows = 12;
  Speculative bench(std::make_unique<OracleDrafter>(0, 8), 8, false, setup);
  std::vector<RecordingListener> listeners(5);
  for (int i = 0; i < 5; ++i)
    bench.add(promptOf(6, i), 50, listeners[size_t(i)]);
  bench.drain();
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(listeners[size_t(i)].ids, expected(promptOf(6, i), 50));
  for (int64_t tokens : bench.executor->tokensOfSteps)
    EXPECT_LE(tokens, 16);
}

/// Three choices for the next token, the last of which is right, and what follows each.
class ThirdChoice final : public Drafter {
public:
  const char *name() const override { return "third choice"; }
  std::unique_ptr<DraftState> begin(int64_t, const SamplingParams &) const override {
    return nullptr;
  }
  Status propose(std::span<DraftRequest> requests) override {
    for (DraftRequest &request : requests) {
      const Ids tokens(request.tokens.begin(), request.tokens.end());
      for (int32_t wrong = 2; wrong >= 0 && request.limit >= 9; --wrong) {
        Ids path = tokens;
        for (int i = 0; i < 3; ++i) {
          path.push_back((hashScript(path, vocabulary) + (i == 0 ? wrong : 0)) % vocabulary);
          request.tree->add(i == 0 ? DraftTree::root : int32_t(request.draft->size()) - 1,
                            i == 0 && wrong < 2);
          request.draft->push_back(path.back());
        }
      }
    }
    return Status::ok();
  }
};

TEST(Speculation, TheBranchThatComesTrueIsTaken) {
  for (const std::vector<int64_t> &windows : {std::vector<int64_t>{}, {20, 5}}) {
    BenchOptions setup;
    setup.windows = windows;
    Speculative bench(std::make_unique<ThirdChoice>(), 9, false, setup);
    RecordingListener listener;
    bench.add(promptOf(20), 101, listener);
    bench.drain();
    EXPECT_EQ(listener.ids, expected(promptOf(20), 101));
    // The prompt's token, then four a step: all three of a branch, and the one that follows; the
    // last eight one by one, as there is no room for nine guesses.
    EXPECT_EQ(listener.stats.acceptedTokens, 23 * 3);
    EXPECT_EQ(bench.executor->steps, 1 + 23 + 8);
    EXPECT_EQ(bench.executor->moved, listener.stats.acceptedTokens * int64_t(windows.size() + 1));
  }
}

TEST(Speculation, NoTreesWhereTheDeviceOrTheRequestTakesNone) {
  class WantsNone final : public Drafter {
  public:
    const char *name() const override { return "none"; }
    std::unique_ptr<DraftState> begin(int64_t, const SamplingParams &) const override {
      return nullptr;
    }
    Status propose(std::span<DraftRequest> requests) override {
      for (DraftRequest &request : requests)
        EXPECT_EQ(request.tree, nullptr);
      return Status::ok();
    }
  };
  BenchOptions setup;
  setup.limits.speculation = {4, false, false, true};
  for (bool classical : {false, true}) {
    setup.limits.speculation.classical = classical;
    auto executor = std::make_unique<ScriptedExecutor>(shapeOf(), setup.script);
    executor->trees = classical;
    auto engine = std::move(
        *Engine::create(std::move(executor), setup.limits, std::make_unique<WantsNone>()));
    RecordingListener listener;
    RequestOptions options;
    options.prompt = promptOf(4);
    options.maxNewTokens = 8;
    options.listener = &listener;
    ASSERT_TRUE(engine->add(std::move(options)));
    while (engine->busy())
      ASSERT_TRUE(engine->step());
    EXPECT_EQ(listener.ids, expected(promptOf(4), 8));
  }
}

TEST(Speculation, AdaptiveWindowsOpenWhereGuessesComeTrue) {
  Speculative bench(std::make_unique<OracleDrafter>(0, 8), 8, true);
  RecordingListener listener;
  bench.add(promptOf(6), 400, listener);
  bench.drain();
  EXPECT_EQ(listener.ids, expected(promptOf(6), 400));
  // A scripted step takes time for every row, so no promise on how far; but it must guess at all.
  EXPECT_GT(listener.stats.acceptedTokens, 20);
  EXPECT_EQ(listener.stats.acceptedTokens, bench.engine->metrics().acceptedTokens);
}

} // namespace
