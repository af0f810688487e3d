#include "runtime/server/EngineLoop.h"
#include "test/unit/engine/ScriptedExecutor.h"

#include <condition_variable>
#include <gtest/gtest.h>

using namespace llmrt;
using namespace llmrt::server;

namespace {

ModelShape shape() {
  ModelShape s;
  s.vocabulary = 50;
  s.maxContext = 64;
  s.maxTokens = 64;
  s.maxSequences = 8;
  s.maxRows = 8;
  s.queryTile = 16;
  s.kvBytesPerToken = 4;
  return s;
}

std::unique_ptr<Engine> engine(ScriptedExecutor::Script script, int64_t failAt = -1) {
  auto executor = std::make_unique<ScriptedExecutor>(shape(), std::move(script));
  executor->failAt = failAt;
  EngineLimits limits;
  limits.maxBatchedTokens = 64;
  limits.maxSequences = 2;
  limits.maxRows = 2;
  limits.kvBlocks = 8;
  limits.sampledVocabulary = 50;
  auto made = Engine::create(std::move(executor), limits);
  EXPECT_TRUE(made) << made.status().message();
  return std::move(*made);
}

/// Waits for the end of one request.
class Waiter final : public RequestListener {
public:
  bool onToken(const TokenEvent &) override { return true; }
  void onFinish(const FinishEvent &event) override {
    std::lock_guard lock(mutex_);
    reason_ = event.reason;
    done_.notify_all();
  }
  FinishReason wait() {
    std::unique_lock lock(mutex_);
    done_.wait_for(lock, std::chrono::seconds(20), [&] { return reason_ != FinishReason::None; });
    return reason_;
  }

private:
  std::mutex mutex_;
  std::condition_variable done_;
  FinishReason reason_ = FinishReason::None;
};

std::vector<RequestOptions> request(Waiter &waiter, int64_t tokens, size_t prompt = 3) {
  std::vector<RequestOptions> list(1);
  list[0].prompt.assign(prompt, 1);
  list[0].maxNewTokens = tokens;
  list[0].listener = &waiter;
  return list;
}

int32_t seven(const std::vector<int32_t> &) { return 7; }

TEST(EngineLoop, AnswersAndRefuses) {
  EngineLoop loop(engine(seven), 4, std::chrono::seconds(60));
  Waiter waiter;
  loop.submit(request(waiter, 5), [](Result<std::vector<RequestId>> ids) { EXPECT_TRUE(ids); });
  EXPECT_EQ(waiter.wait(), FinishReason::Length);
  EXPECT_FALSE(loop.stuck());

  std::mutex mutex;
  std::condition_variable refused;
  Status status;
  loop.submit(request(waiter, 5, 100), [&](Result<std::vector<RequestId>> ids) {
    std::lock_guard lock(mutex);
    status = ids.status();
    refused.notify_all();
  });
  std::unique_lock lock(mutex);
  refused.wait_for(lock, std::chrono::seconds(20), [&] { return !status.isOk(); });
  EXPECT_EQ(status.code(), StatusCode::InvalidArgument);
  EXPECT_NE(status.message().find("100"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("64"), std::string::npos) << status.message();
}

TEST(EngineLoop, TicketsBoundTheQueue) {
  EngineLoop loop(engine(seven), 1, std::chrono::seconds(60));
  EngineLoop::Ticket two = loop.reserve(2), one = loop.reserve(1);
  EXPECT_TRUE(two);
  EXPECT_TRUE(one);
  EXPECT_FALSE(loop.reserve(1));
  EXPECT_EQ(loop.inFlight(), 3u);
  one.release();
  EXPECT_TRUE(loop.reserve(1));
  EXPECT_FALSE(loop.reserve(5));
  EXPECT_GE(loop.retryAfter(), 1);
}

TEST(EngineLoop, StepThatHangsIsStuck) {
  std::mutex mutex;
  std::condition_variable wake;
  bool go = false;
  EngineLoop loop(engine([&](const std::vector<int32_t> &) {
                    std::unique_lock lock(mutex);
                    wake.wait(lock, [&] { return go; });
                    return 7;
                  }),
                  4, std::chrono::seconds(1));
  Waiter waiter;
  loop.submit(request(waiter, 2), [](Result<std::vector<RequestId>>) {});
  auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!loop.stuck() && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(loop.stuck());
  {
    std::lock_guard lock(mutex);
    go = true;
  }
  wake.notify_all();
  EXPECT_EQ(waiter.wait(), FinishReason::Length);
  EXPECT_FALSE(loop.stuck());
}

TEST(EngineLoop, FailedStepIsToldUntilOneSucceeds) {
  EngineLoop loop(engine(seven, 1), 4, std::chrono::seconds(60));
  Waiter first, second;
  loop.submit(request(first, 2), [](Result<std::vector<RequestId>>) {});
  EXPECT_EQ(first.wait(), FinishReason::Error);
  auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (loop.failure().empty() && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(loop.failure().empty());
  loop.submit(request(second, 2), [](Result<std::vector<RequestId>>) {});
  EXPECT_EQ(second.wait(), FinishReason::Length);
}

TEST(EngineLoop, StopEndsWhatIsLeft) {
  Waiter waiter;
  std::atomic<bool> refused{false};
  {
    EngineLoop loop(engine(seven), 4, std::chrono::seconds(60));
    loop.submit(request(waiter, 60), [&](Result<std::vector<RequestId>> ids) { refused = !ids; });
    loop.stop();
    // Whether it was in the mailbox or in the engine: its end was told.
    EXPECT_TRUE(refused || waiter.wait() != FinishReason::None);
  }
}

} // namespace
