// Real machine code in a real plan: the executor, the engine on it, two plans at once.
#include "runtime/engine/CpuEngine.h"

#include "runtime/device/cpu/CpuLevel.h"
#include "test/unit/engine/ScriptedExecutor.h"
#include "test/unit/engine/TinyPlan.h"

#include <cstdlib>

using namespace llmrt;
using test::tinyPlan;
using test::TinyPlanOptions;
using test::tinyVocabulary;

namespace {

std::vector<int32_t> promptOf(int n, int salt = 1) {
  std::vector<int32_t> prompt;
  for (int i = 0; i < n; ++i)
    prompt.push_back((i * 31 + salt * 7) % tinyVocabulary);
  return prompt;
}

std::vector<int32_t> expected(std::vector<int32_t> context, int n, int salt = 0) {
  std::vector<int32_t> out;
  for (int i = 0; i < n; ++i) {
    out.push_back((hashScript(context, tinyVocabulary) + salt) % tinyVocabulary);
    context.push_back(out.back());
  }
  return out;
}

std::unique_ptr<Engine> engineOf(std::shared_ptr<const Plan> plan, CpuEngineOptions options = {}) {
  auto engine = createCpuEngine(std::move(plan), options);
  EXPECT_TRUE(engine) << engine.status().message();
  return std::move(*engine);
}

std::vector<int32_t> generate(Engine &engine, std::vector<int32_t> prompt, int64_t n,
                              RecordingListener *logits = nullptr) {
  RecordingListener own;
  RecordingListener &listener = logits ? *logits : own;
  RequestOptions request;
  request.prompt = std::move(prompt);
  request.maxNewTokens = n;
  request.listener = &listener;
  request.promptLogits = logits != nullptr;
  auto id = engine.add(std::move(request));
  EXPECT_TRUE(id) << id.status().message();
  while (engine.busy())
    EXPECT_TRUE(engine.step());
  return listener.ids;
}

TEST(CpuEngine, TreesOfGuessesNeedCodeThatKnowsThem) {
  // 60 followed 2 last, and before that 50, which the model says: the second choice. All other
  // tokens follow from the whole context.
  TinyPlanOptions dictated;
  dictated.next = {{1, 2}, {2, 50}};
  const std::vector<int32_t> prompt = {1, 2, 50, 7, 1, 2, 60, 8, 1};
  std::vector<int32_t> want = {2, 50}, context = prompt;
  context.insert(context.end(), want.begin(), want.end());
  for (int32_t id : expected(context, 6)) {
    ASSERT_GT(id, 2) << "it would dictate, too";
    want.push_back(id);
  }
  for (bool knowsTrees : {false, true})
    for (bool wanted : {false, true})
      for (int64_t blockTokens : {16, 32}) {
        dictated.kernelAbi = knowsTrees ? LLMRT_KERNEL_ABI_TREES : LLMRT_KERNEL_ABI_TREES - 1;
        CpuEngineOptions options;
        options.threads = 1;
        options.blockTokens = blockTokens;
        options.speculation = *SpeculativeConfig::parse(
            R"({"method": "ngram", "prompt_lookup_min": 1, "adaptive": false})");
        options.speculation.tree = wanted;
        auto engine = engineOf(tinyPlan(dictated), options);
        EXPECT_EQ(engine->speculator()->limits().trees, knowsTrees && wanted);
        EXPECT_EQ(generate(*engine, prompt, 8), want);
        EXPECT_EQ(engine->metrics().acceptedTokens > 0, knowsTrees && wanted);
      }
}

TEST(CpuEngine, CodeForLessThanTheMachineIsCounted) {
  auto engine = engineOf(tinyPlan()); // its only code is for the least level
  EXPECT_EQ(engine->metrics().slowFallbacks[size_t(SlowFallback::CodeLevel)],
            isLesserCode(*parseCpuLevel(test::leastLevel), machineCpuLevel()) ? 1 : 0);
  ::setenv("LLMRT_CPU_LEVEL", test::leastLevel, 1);
  auto forced = engineOf(tinyPlan());
  ::unsetenv("LLMRT_CPU_LEVEL");
  EXPECT_EQ(forced->metrics().slowFallbacks[size_t(SlowFallback::CodeLevel)], 0);
}

TEST(CpuEngine, ThreadsChunksAndBlocksDoNotChangeAnything) {
  auto plan = tinyPlan();
  RecordingListener base;
  {
    CpuEngineOptions options;
    options.threads = 1;
    options.promptLogits = true;
    auto engine = engineOf(plan, options);
    EXPECT_EQ(generate(*engine, promptOf(100), 60, &base), expected(promptOf(100), 60));
  }
  ASSERT_EQ(base.promptRows, 100);
  for (unsigned threads : {1u, 2u, 5u})
    for (int64_t chunk : {1, 7, 64, 128})
      for (int64_t block : {16, 64}) {
        CpuEngineOptions options;
        options.threads = threads;
        options.maxBatchedTokens = chunk;
        options.blockTokens = block;
        options.promptLogits = true;
        auto engine = engineOf(plan, options);
        RecordingListener listener;
        EXPECT_EQ(generate(*engine, promptOf(100), 60, &listener), base.ids);
        EXPECT_EQ(listener.promptLogits, base.promptLogits) << threads << " " << chunk;
      }
}

TEST(CpuEngine, ManySequences) {
  CpuEngineOptions options;
  options.threads = 3;
  options.maxSequences = 16;
  options.kvTokens = 1000;
  auto engine = engineOf(tinyPlan(), options);
  std::vector<RecordingListener> listeners(40);
  for (int i = 0; i < 40; ++i) {
    RequestOptions request;
    request.prompt = promptOf(1 + i * 3, i);
    request.maxNewTokens = 1 + (i * 7) % 40;
    request.listener = &listeners[size_t(i)];
    ASSERT_TRUE(engine->add(std::move(request)));
  }
  while (engine->busy())
    ASSERT_TRUE(engine->step());
  for (int i = 0; i < 40; ++i)
    EXPECT_EQ(listeners[size_t(i)].ids, expected(promptOf(1 + i * 3, i), 1 + (i * 7) % 40)) << i;
}

TEST(CpuEngine, TwoPlansAtOnceKeepTheirOwnCode) {
  TinyPlanOptions salted;
  salted.salt = 5;
  auto plain = engineOf(tinyPlan()), other = engineOf(tinyPlan(salted));
  EXPECT_EQ(generate(*plain, promptOf(9), 20), expected(promptOf(9), 20, 0));
  EXPECT_EQ(generate(*other, promptOf(9), 20), expected(promptOf(9), 20, 5));
  plain.reset();
  auto again = engineOf(tinyPlan()); // takes the number of the descriptor that was just closed
  EXPECT_EQ(generate(*again, promptOf(9), 20), expected(promptOf(9), 20, 0));
  EXPECT_EQ(generate(*other, promptOf(9), 20), expected(promptOf(9), 20, 5));
}

TEST(CpuEngine, APlanForAnotherLevelIsRefused) {
  TinyPlanOptions options;
  options.level = "x86-64-v9";
  auto engine = createCpuEngine(tinyPlan(options), {});
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.status().code(), StatusCode::Unsupported);
  EXPECT_NE(engine.status().message().find("x86-64-v9"), std::string::npos);
}

TEST(CpuEngine, TheLevelCanBeForced) {
  ASSERT_EQ(setenv("LLMRT_CPU_LEVEL", test::leastLevel, 1), 0);
  EXPECT_TRUE(createCpuEngine(tinyPlan(), {}));
  ASSERT_EQ(setenv("LLMRT_CPU_LEVEL", test::betterLevel, 1), 0);
  EXPECT_FALSE(createCpuEngine(tinyPlan(), {})); // the plan has none
  ASSERT_EQ(unsetenv("LLMRT_CPU_LEVEL"), 0);
}

TEST(CpuEngine, OptionsBeyondThePlanAreRefusedWithNumbers) {
  auto message = [](auto set) {
    CpuEngineOptions options;
    set(options);
    auto engine = createCpuEngine(tinyPlan(), options);
    return engine ? std::string() : engine.status().message();
  };
  EXPECT_NE(message([](auto &o) { o.maxBatchedTokens = 129; }).find("up to 128"),
            std::string::npos);
  EXPECT_NE(message([](auto &o) { o.maxSequences = 17; }).find("up to 16"), std::string::npos);
  EXPECT_NE(message([](auto &o) { o.blockTokens = 24; }).find("multiple of 16"), std::string::npos);
  EXPECT_EQ(message([](auto &o) { o.blockTokens = 32; }), "");
}

} // namespace
