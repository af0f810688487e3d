// An engine on its own thread, used from many.
#include "runtime/engine/EngineThread.h"

#include "test/unit/engine/TestBench.h"

#include <thread>

using namespace llmrt;
using namespace llmrt::test;

namespace {

std::unique_ptr<Engine> scripted() {
  BenchOptions setup;
  return std::move(
      *Engine::create(std::make_unique<ScriptedExecutor>(shapeOf(), setup.script), setup.limits));
}

RequestOptions request(std::vector<int32_t> prompt, int64_t n, RequestListener &listener) {
  RequestOptions options;
  options.prompt = std::move(prompt);
  options.maxNewTokens = n;
  options.listener = &listener;
  return options;
}

TEST(EngineThread, ManyThreadsSubmitAndEachIsAnswered) {
  std::vector<RecordingListener> listeners(60);
  {
    EngineThread engine(scripted());
    std::vector<std::thread> clients;
    for (int c = 0; c < 6; ++c)
      clients.emplace_back([&, c] {
        for (int i = 0; i < 10; ++i) {
          int n = c * 10 + i;
          auto id = engine.submit(request(promptOf(1 + n, n), 1 + n % 7, listeners[size_t(n)]));
          EXPECT_TRUE(id) << id.status().message();
          EXPECT_GE(engine.metrics().generationTokens.get(), 0);
        }
      });
    for (std::thread &client : clients)
      client.join();
    engine.drain();
    RecordingListener late;
    auto refused = engine.submit(request({1}, 1, late));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.status().code(), StatusCode::Unavailable);
    EXPECT_EQ(engine.stepAge().count(), 0);
  }
  for (int n = 0; n < 60; ++n)
    EXPECT_EQ(listeners[size_t(n)].ids, expected(promptOf(1 + n, n), 1 + n % 7)) << n;
}

TEST(EngineThread, EndingItCancelsWhatRuns) {
  RecordingListener listener;
  {
    EngineThread engine(scripted());
    ASSERT_TRUE(engine.submit(request(promptOf(5), 4000, listener)));
  }
  EXPECT_NE(listener.reason, FinishReason::None);
}

TEST(EngineThread, CancelFromAnotherThread) {
  EngineThread engine(scripted());
  RecordingListener listener;
  RequestId id = *engine.submit(request(promptOf(5), 4000, listener));
  engine.cancel(id);
  engine.drain();
  EXPECT_EQ(listener.reason, FinishReason::Cancelled);
  EXPECT_LT(listener.ids.size(), 4000u);
}

} // namespace
