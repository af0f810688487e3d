// Random traffic: requests of all sizes come, run, are cancelled, in engines of all limits.
// Whatever happens, each output is what the request alone would have given, and no block is lost.
#include "runtime/engine/Engine.h"

#include "runtime/decode/Noise.h"
#include "test/unit/engine/ScriptedExecutor.h"

#include <map>

using namespace llmrt;

namespace {

constexpr int32_t vocabulary = 89;

class Random {
public:
  explicit Random(uint64_t seed) : state_(seed * 1000) {}
  /// From \p low to \p high, both included.
  int64_t operator()(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(mix64(++state_) % static_cast<uint64_t>(high - low + 1));
  }

private:
  uint64_t state_;
};

struct Asked {
  std::vector<int32_t> prompt;
  int64_t newTokens;
  int32_t end; ///< an end token, or -1
  bool cancelled = false;
  RecordingListener listener;
};

std::vector<int32_t> alone(const Asked &asked) {
  std::vector<int32_t> context = asked.prompt, out;
  while (static_cast<int64_t>(out.size()) < asked.newTokens) {
    out.push_back(hashScript(context, vocabulary));
    context.push_back(out.back());
    if (out.back() == asked.end)
      break;
  }
  return out;
}

void check(const Asked &asked) {
  std::vector<int32_t> want = alone(asked);
  const RecordingListener &got = asked.listener;
  if (got.reason == FinishReason::Cancelled) {
    ASSERT_TRUE(asked.cancelled);
    ASSERT_LE(got.ids.size(), want.size());
    want.resize(got.ids.size());
  } else {
    bool ended = !want.empty() && want.back() == asked.end;
    ASSERT_EQ(got.reason, ended ? FinishReason::Stop : FinishReason::Length);
  }
  ASSERT_EQ(got.ids, want);
}

class RandomTraffic : public ::testing::TestWithParam<uint64_t> {};

TEST_P(RandomTraffic, EveryOutputIsAsIfAlone) {
  Random random(GetParam());
  ModelShape shape;
  shape.vocabulary = vocabulary;
  shape.maxContext = 300;
  shape.maxTokens = shape.maxRows = 256;
  shape.maxSequences = 32;
  shape.queryTile = random(1, 64);
  shape.kvBytesPerToken = 4;
  EngineLimits limits;
  limits.maxSequences = random(1, 12);
  limits.maxBatchedTokens = random(limits.maxSequences, 100);
  limits.maxRows = random(limits.maxSequences, limits.maxBatchedTokens);
  limits.blockTokens = 16 * random(1, 4);
  limits.kvBlocks = random(300 / limits.blockTokens + 1, 60);
  limits.sampledVocabulary = vocabulary;
  auto engine = std::move(*Engine::create(
      std::make_unique<ScriptedExecutor>(
          shape, [](const std::vector<int32_t> &c) { return hashScript(c, vocabulary); }),
      limits));

  std::map<RequestId, std::unique_ptr<Asked>> requests;
  for (int i = 0; i < 400 || engine->busy(); ++i) {
    ASSERT_LT(i, 100000) << "no progress";
    if (i < 400 && random(0, 9) < 2) {
      auto asked = std::make_unique<Asked>();
      asked->prompt.resize(static_cast<size_t>(random(1, 200)));
      for (int32_t &id : asked->prompt)
        id = static_cast<int32_t>(random(0, vocabulary - 1));
      asked->newTokens = random(0, 299 - static_cast<int64_t>(asked->prompt.size()));
      asked->end = random(0, 2) ? -1 : static_cast<int32_t>(random(0, vocabulary - 1));
      RequestOptions options;
      options.prompt = asked->prompt;
      options.maxNewTokens = asked->newTokens;
      if (asked->end >= 0)
        options.endIds = {asked->end};
      options.promptLogits = random(0, 4) == 0;
      options.listener = &asked->listener;
      Result<RequestId> id = engine->add(std::move(options));
      ASSERT_TRUE(id) << id.status().message();
      requests[*id] = std::move(asked);
    }
    if (random(0, 30) == 0 && !requests.empty()) {
      auto victim = requests.begin();
      std::advance(victim, random(0, static_cast<int64_t>(requests.size()) - 1));
      if (victim->second->listener.reason == FinishReason::None)
        victim->second->cancelled = true;
      engine->cancel(victim->first);
    }
    ASSERT_TRUE(engine->step());
  }
  for (auto &[id, asked] : requests) {
    SCOPED_TRACE("request " + std::to_string(id));
    check(*asked);
  }
  EXPECT_EQ(engine->freeBlocks(), limits.kvBlocks);
  EXPECT_GT(requests.size(), 40u);
}
INSTANTIATE_TEST_SUITE_P(Seeds, RandomTraffic, ::testing::Range<uint64_t>(1, 25));

} // namespace
