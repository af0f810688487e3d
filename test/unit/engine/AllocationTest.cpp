// The decode loop allocates nothing: every allocation of this program is counted.
#include "runtime/engine/Engine.h"

#include <atomic>
#include <cstdlib>
#include <gtest/gtest.h>
#include <new>
#include <vector>

static std::atomic<int64_t> allocations{0};

void *operator new(size_t n) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void *p = std::malloc(n ? n : 1))
    return p;
  std::abort();
}
void operator delete(void *p) noexcept { std::free(p); }
void operator delete(void *p, size_t) noexcept { std::free(p); }

using namespace llmrt;

namespace {

/// Gives token 1 for ever and allocates nothing.
class ConstantExecutor final : public StepExecutor {
public:
  ConstantExecutor() {
    shape_.vocabulary = 64;
    shape_.maxContext = 4096;
    shape_.maxTokens = shape_.maxSequences = shape_.maxRows = 64;
    logits_.assign(64 * 64, 0.0f);
    for (size_t row = 0; row < 64; ++row)
      logits_[row * 64 + 1] = 1;
  }
  const ModelShape &shape() const override { return shape_; }
  Status createKvPool(int64_t, int64_t) override { return Status::ok(); }
  void clearKvBlock(int32_t, uint32_t) override {}
  Status execute(LlmrtStep &) override { return Status::ok(); }
  const float *logits() const override { return logits_.data(); }

private:
  ModelShape shape_;
  std::vector<float> logits_;
};

struct CountingListener final : RequestListener {
  bool onToken(const TokenEvent &) override { return ++tokens, true; }
  void onFinish(const FinishEvent &) override {}
  int64_t tokens = 0;
};

TEST(Engine, DecodingAllocatesNothing) {
  EngineLimits limits{.maxBatchedTokens = 64,
                      .maxSequences = 8,
                      .blockTokens = 16,
                      .kvBlocks = 1000,
                      .maxRows = 8,
                      .sampledVocabulary = 64};
  auto engine = std::move(*Engine::create(std::make_unique<ConstantExecutor>(), limits));
  CountingListener listener;
  for (int i = 0; i < 8; ++i) {
    RequestOptions options;
    options.prompt.assign(30, 1);
    options.maxNewTokens = 1000;
    options.listener = &listener;
    if (i % 2) { // every filter and penalty
      options.sampling.temperature = 1;
      options.sampling.topP = 0.9f;
      options.sampling.minP = 0.01f;
      options.sampling.topK = i > 4 ? 10 : 0;
      options.sampling.repetitionPenalty = 1.1f;
      options.sampling.frequencyPenalty = 0.1f;
      options.sampling.logprobs = 5;
    }
    ASSERT_TRUE(engine->add(std::move(options)));
  }
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(engine->step());
  int64_t tokensBefore = listener.tokens, before = allocations.load();
  for (int i = 0; i < 500; ++i)
    if (!engine->step())
      std::abort();
  EXPECT_EQ(allocations.load() - before, 0);
  EXPECT_EQ(listener.tokens - tokensBefore, 4000);
}

} // namespace
