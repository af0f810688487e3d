// Tokens that the device draws, through the engine: those of the host, for whatever is asked for,
// in mixed batches, with graphs and with speculation; and no logits are copied that nobody needs.
#include "runtime/device/cuda/CudaExecutor.h"
#include "runtime/engine/DeviceEngine.h"
#include "test/emulator/Emulator.h"
#include "test/emulator/TinyCudaPlan.h"
#include "test/unit/engine/ScriptedExecutor.h"

using namespace llmrt;
using namespace llmrt::test;

namespace {

constexpr uint64_t rowBytes = tinyVocabulary * sizeof(float);

std::shared_ptr<const Plan> planOf(bool draws, const TinyPlanOptions &options = {}) {
  return tinyCudaPlan(
      [&](fbs::PlanT &h) {
        if (!draws)
          h.cuda_sampling.clear();
      },
      options);
}

std::unique_ptr<Engine> engineOf(bool draws, EngineOptions options,
                                 const TinyPlanOptions &plan = {}) {
  auto engine = createEngine(planOf(draws, plan), options);
  EXPECT_TRUE(engine) << engine.status().message();
  return std::move(*engine);
}

struct Outcome {
  std::vector<std::vector<int32_t>> ids; ///< of each request
  std::vector<std::string> errors;
  std::vector<RequestStats> stats;
  uint64_t bytesToHost = 0;
  int64_t hostDraws = 0, tokens = 0;
  uint64_t graphSteps = 0;
};

/// Runs requests of \p asked together, each with a prompt of its own.
Outcome runAll(Engine &engine, const std::vector<SamplingParams> &asked, int64_t tokens = 12,
               const std::function<void(size_t, RequestOptions &)> &change = {}) {
  Outcome outcome;
  const uint64_t before = simt::bytesToHost();
  std::vector<RecordingListener> listeners(asked.size());
  for (size_t i = 0; i < asked.size(); ++i) {
    RequestOptions request;
    for (size_t j = 0; j < 1 + i * 3 % 20; ++j)
      request.prompt.push_back(int32_t((j * 31 + i * 7) % tinyVocabulary));
    request.sampling = asked[i];
    request.maxNewTokens = tokens + int64_t(i % 4);
    request.listener = &listeners[i];
    if (change)
      change(i, request);
    auto id = engine.add(std::move(request));
    EXPECT_TRUE(id) << id.status().message();
  }
  while (engine.busy()) {
    Status s = engine.step();
    EXPECT_TRUE(s) << s.message();
    if (!s)
      break;
  }
  for (RecordingListener &listener : listeners) {
    outcome.ids.push_back(listener.ids);
    outcome.errors.push_back(listener.status.message());
    outcome.stats.push_back(listener.stats);
    outcome.tokens += int64_t(listener.ids.size());
  }
  outcome.bytesToHost = simt::bytesToHost() - before;
  outcome.hostDraws = engine.metrics().slowFallbacks[size_t(SlowFallback::HostDraw)];
  outcome.graphSteps = static_cast<CudaExecutor &>(engine.executor()).graphSteps();
  return outcome;
}

/// Everything that the device draws, at temperatures at which the tiny model is undecided.
std::vector<SamplingParams> drawable() {
  std::vector<SamplingParams> all;
  for (float temperature : {0.0f, 1.0f, 4.0f, 9.0f})
    for (int kind = 0; kind < 6; ++kind) {
      SamplingParams p;
      p.temperature = temperature;
      p.seed = all.size() * 1001;
      if (kind == 1)
        p.topK = 20;
      if (kind == 2)
        p.topP = 0.8f;
      if (kind == 3)
        p.topK = 30, p.topP = 0.5f, p.minP = 1e-5f;
      if (kind == 4)
        p.minP = 1e-4f;
      if (kind == 5)
        p.logitBias = {{5, 9.5f}, {70, -3}, {96, 10}};
      all.push_back(p);
    }
  return all;
}

EngineOptions batchOf(int64_t sequences) {
  EngineOptions options;
  options.maxSequences = sequences;
  options.maxBatchedTokens = 40;
  options.kvTokens = 4000;
  return options;
}

TEST(CudaDraws, AreTheHostsInMixedBatches) {
  const std::vector<SamplingParams> asked = drawable();
  for (int64_t sequences : {1, 5, 16}) {
    Outcome device = runAll(*engineOf(true, batchOf(sequences)), asked);
    Outcome host = runAll(*engineOf(false, batchOf(sequences)), asked);
    EXPECT_EQ(device.ids, host.ids);
    // Four bytes a token; the host's way copies a row for each.
    EXPECT_EQ(device.bytesToHost, uint64_t(device.tokens) * 4);
    EXPECT_EQ(host.bytesToHost, uint64_t(host.tokens) * rowBytes);
    EXPECT_EQ(device.hostDraws, 0);
    EXPECT_EQ(host.hostDraws, 0); // nothing that could have been on the device
    EXPECT_GT(device.graphSteps, 0u);
    EXPECT_EQ(device.graphSteps, host.graphSteps);
  }
  // And the draws are draws: some token differs from the greedy one.
  std::set<std::vector<int32_t>> distinct;
  Outcome device =
      runAll(*engineOf(true, batchOf(4)), std::vector(asked.begin() + 18, asked.end()));
  EXPECT_GT(std::set(device.ids.begin(), device.ids.end()).size(), 5u);
}

TEST(CudaDraws, WhatTheDeviceCanNotDrawCopiesItsRowsAndCounts) {
  std::vector<SamplingParams> asked = drawable();
  asked.resize(8);
  asked[1].logprobs = 2;
  asked[3].presencePenalty = 0.5f;
  asked[4].typicalP = 0.9f, asked[4].temperature = 1;
  asked[6].logitBias = {{3, 1}, {3, 1}}; // twice
  Outcome device = runAll(*engineOf(true, batchOf(8)), asked);
  Outcome host = runAll(*engineOf(false, batchOf(8)), asked);
  EXPECT_EQ(device.ids, host.ids);
  int64_t copied = 0;
  for (size_t i : {1, 3, 4, 6})
    copied += int64_t(device.ids[i].size());
  EXPECT_EQ(device.hostDraws, copied);
  // Steps in which all rows are copied take no tokens along.
  EXPECT_GE(device.bytesToHost, uint64_t(copied) * rowBytes);
  EXPECT_LE(device.bytesToHost, uint64_t(copied) * rowBytes + uint64_t(device.tokens) * 4);
}

TEST(CudaDraws, BansBeforeMinTokens) {
  std::vector<SamplingParams> asked = drawable();
  auto change = [&](size_t i, RequestOptions &request) {
    // Ends at every other token, but for the first tokens.
    for (int32_t id = int32_t(i % 2); id < tinyVocabulary; id += 2)
      request.endIds.push_back(id);
    request.stopIds = {7, 8};
    request.sampling.minTokens = int32_t(i % 7);
  };
  Outcome device = runAll(*engineOf(true, batchOf(6)), asked, 12, change);
  Outcome host = runAll(*engineOf(false, batchOf(6)), asked, 12, change);
  EXPECT_EQ(device.ids, host.ids);
  EXPECT_EQ(device.hostDraws, 0);
  for (size_t i = 0; i < asked.size(); ++i)
    EXPECT_GT(device.ids[i].size(), i % 7);
}

TEST(CudaDraws, NothingAllowedIsThatRequestsError) {
  auto change = [](size_t i, RequestOptions &request) {
    if (i != 1)
      return;
    for (int32_t id = 0; id < tinyVocabulary; ++id)
      request.endIds.push_back(id);
    request.sampling.minTokens = 1;
  };
  Outcome device = runAll(*engineOf(true, batchOf(3)), std::vector(3, SamplingParams()), 5, change);
  Outcome host = runAll(*engineOf(false, batchOf(3)), std::vector(3, SamplingParams()), 5, change);
  EXPECT_EQ(device.errors, host.errors);
  EXPECT_NE(device.errors[1].find("no token may stand at position"), std::string::npos);
  EXPECT_EQ(device.ids, host.ids);
  EXPECT_EQ(device.ids[0].size(), 5u);
}

TEST(CudaDraws, ChoicesAndPromptLogits) {
  EngineOptions options = batchOf(6);
  options.promptLogits = true;
  auto change = [](size_t i, RequestOptions &request) { request.promptLogits = i % 2; };
  std::vector<SamplingParams> asked = drawable();
  asked.erase(asked.begin(), asked.begin() + 12);
  Outcome device = runAll(*engineOf(true, options), asked, 6, change);
  Outcome host = runAll(*engineOf(false, options), asked, 6, change);
  EXPECT_EQ(device.ids, host.ids);
  EXPECT_EQ(device.hostDraws, int64_t(asked.size() / 2)); // the first token after such a prompt
  struct Choices final : RequestListener {
    std::map<int32_t, std::vector<int32_t>> ids;
    bool onToken(const TokenEvent &event) override {
      ids[event.choice].push_back(event.token.id);
      return true;
    }
    void onFinish(const FinishEvent &) override {}
  } listeners[2];
  for (bool draws : {true, false}) {
    auto engine = engineOf(draws, options);
    RequestOptions request;
    request.prompt = {4, 5, 6};
    request.sampling = asked[1];
    request.choices = 4;
    request.maxNewTokens = 9;
    request.listener = &listeners[draws];
    ASSERT_TRUE(engine->add(std::move(request)));
    while (engine->busy())
      ASSERT_TRUE(engine->step());
  }
  EXPECT_EQ(listeners[0].ids, listeners[1].ids);
  EXPECT_EQ(listeners[0].ids.size(), 4u);
}

TEST(CudaDraws, SpeculationChangesNothing) {
  TinyPlanOptions repeating;
  repeating.next = {{1, 2}, {2, 3}, {3, 4}, {4, 1}};
  auto change = [](size_t i, RequestOptions &request) {
    request.prompt = {1, 2, 3, 4, 1, 2, 3, 4, int32_t(i % 4 + 1)};
    request.endIds = {50};
    request.sampling.minTokens = int32_t(i % 3) * 3;
  };
  std::vector<SamplingParams> asked = drawable();
  EngineOptions plain = batchOf(4), guessing = plain;
  guessing.speculation.method = SpeculativeConfig::Method::Ngram;
  guessing.speculation.tokens = 4;
  guessing.speculation.adaptive = false;
  Outcome with = runAll(*engineOf(true, guessing, repeating), asked, 20, change);
  Outcome without = runAll(*engineOf(true, plain, repeating), asked, 20, change);
  Outcome host = runAll(*engineOf(false, guessing, repeating), asked, 20, change);
  EXPECT_EQ(with.ids, without.ids);
  EXPECT_EQ(with.ids, host.ids);
  int64_t accepted = 0, drafted = 0;
  for (const RequestStats &s : with.stats)
    accepted += s.acceptedTokens, drafted += s.draftTokens;
  EXPECT_GT(accepted, 20);
  EXPECT_GT(drafted, accepted);
  EXPECT_EQ(with.hostDraws, 0);
  EXPECT_LT(with.bytesToHost, uint64_t(with.tokens + drafted + int64_t(asked.size())) * 4 + 1);
}

} // namespace
