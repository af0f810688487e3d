// Whatever the engine does with memory, batches, chunks, threads and guesses, every token and every
// bit of its log-probability is that of the request alone. On a real plan; EXACT_PLANS names more
// (plan files, separated by ':'), EXACT_SECONDS how long the random run of each plan goes,
// EXACT_ROUNDS how many engines of a named plan are tried at least, EXACT_DRAFT a smaller plan that
// guesses for them (else the plan itself does).
#include "runtime/engine/CpuEngine.h"

#include "runtime/decode/grammar/Grammar.h"
#include "runtime/engine/Model.h"
#include "runtime/engine/SetSpeculation.h"
#include "runtime/support/Mix64.h"
#include "test/unit/engine/ScriptedExecutor.h"
#include "test/unit/engine/TinyPlan.h"

#include <cstdlib>
#include <sstream>

using namespace llmrt;
using namespace llmrt::test;

namespace {

class Random {
public:
  explicit Random(uint64_t seed) : state_(seed * 1000003) {}
  int64_t operator()(int64_t low, int64_t high) {
    return low + int64_t(mix64(++state_) % uint64_t(high - low + 1));
  }

private:
  uint64_t state_;
};

struct Subject {
  std::shared_ptr<const Model> model;
  std::string path;
  std::string draft; ///< the plan that guesses
  int64_t largestPrompt, newTokens;
};

struct Asked {
  std::vector<int32_t> prompt;
  int64_t newTokens;
  SamplingParams sampling;
};

struct Output {
  std::vector<int32_t> ids;
  std::vector<float> logprobs;
  bool operator==(const Output &) const = default;
};

RequestOptions optionsOf(const Asked &asked, RequestListener &listener) {
  RequestOptions options;
  options.prompt = asked.prompt;
  options.maxNewTokens = asked.newTokens;
  options.sampling = asked.sampling;
  options.ignoreEnd = true;
  options.listener = &listener;
  return options;
}

/// Requests with common beginnings and repeats, so that caches and guesses have something to find.
std::vector<Asked> requestsFor(const Subject &subject, int count, uint64_t seed) {
  Random random(seed);
  int64_t vocabulary = subject.model->plan()->head().model()->vocab_size();
  std::vector<int32_t> common;
  for (int i = 0; i < 64; ++i)
    common.push_back(int32_t(random(0, std::min<int64_t>(vocabulary, 400) - 1)));
  std::vector<Asked> asked(static_cast<size_t>(count));
  for (Asked &a : asked) {
    int64_t length = random(1, subject.largestPrompt);
    a.prompt.assign(common.begin(), common.begin() + std::min<int64_t>(random(0, 64), length));
    while (int64_t(a.prompt.size()) < length)
      a.prompt.push_back(a.prompt.size() > 12 && random(0, 2) ? a.prompt[a.prompt.size() - 9]
                                                              : int32_t(random(0, vocabulary - 1)));
    a.newTokens = random(1, subject.newTokens);
    a.sampling.logprobs = 0;
    if (random(0, 1)) {
      a.sampling.temperature = 0.5f * float(random(1, 3));
      a.sampling.topP = 0.95f;
      a.sampling.seed = uint64_t(random(0, 1000));
      a.sampling.repetitionPenalty = random(0, 1) ? 1.1f : 1;
    }
  }
  return asked;
}

CpuEngineOptions baseOptions(const Subject &subject) {
  CpuEngineOptions options;
  options.threads = 1;
  options.kvTokens = 4096;
  options.sampledVocabulary = *subject.model->sampledVocabulary();
  options.prefixCaching = false;
  return options;
}

std::vector<Output> alone(const Subject &subject, const std::vector<Asked> &asked) {
  auto engine = std::move(*createCpuEngine(subject.model->plan(), baseOptions(subject)));
  std::vector<Output> outputs;
  for (const Asked &a : asked) {
    RecordingListener listener;
    EXPECT_TRUE(engine->add(optionsOf(a, listener)));
    while (engine->busy())
      EXPECT_TRUE(engine->step());
    EXPECT_EQ(listener.reason, FinishReason::Length) << listener.status.message();
    outputs.push_back({listener.ids, listener.logprobs});
  }
  return outputs;
}

void compare(Engine &engine, const std::vector<Asked> &asked, const std::vector<Output> &want,
             Random &random) {
  std::vector<std::unique_ptr<RecordingListener>> listeners;
  for (const Asked &a : asked) {
    listeners.push_back(std::make_unique<RecordingListener>());
    RequestOptions options = optionsOf(a, *listeners.back());
    options.priority = int32_t(random(0, 1));
    ASSERT_TRUE(engine.add(std::move(options)));
    for (int64_t steps = random(0, 4); steps > 0; --steps)
      ASSERT_TRUE(engine.step());
  }
  while (engine.busy())
    ASSERT_TRUE(engine.step());
  for (size_t i = 0; i < asked.size(); ++i) {
    ASSERT_EQ(listeners[i]->ids, want[i].ids) << "request " << i;
    ASSERT_EQ(listeners[i]->logprobs, want[i].logprobs) << "request " << i;
  }
}

std::string drafterConfig(int64_t which, const Subject &subject) {
  switch (which) {
  case 1:
    return R"({"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_min": 1, "tree": true})";
  case 2:
    return R"({"method": "suffix", "adaptive": false, "prompt_lookup_min": 1, "tree": true})";
  case 3:
    return R"({"method": "ngram", "num_speculative_tokens": 64, "adaptive": false})";
  case 4:
    return R"({"model": ")" + subject.draft +
           R"(", "num_speculative_tokens": 3, "adaptive": false})";
  default:
    return "";
  }
}

/// One random engine, all requests, twice: the second time the cache is warm.
void oneRound(const Subject &subject, const std::vector<Asked> &asked,
              const std::vector<Output> &want, uint64_t seed, EngineMetrics *totals) {
  Random random(seed);
  CpuEngineOptions options = baseOptions(subject);
  options.threads = unsigned(random(1, 2));
  options.maxSequences = random(2, 6);
  int64_t chunks[] = {options.maxSequences, 17, 64, 128};
  options.maxBatchedTokens = std::max(options.maxSequences, chunks[random(0, 3)]);
  options.blockTokens = 16 * random(1, 3);
  // Whole blocks for the longest, and half as much for all others: running ones make way.
  int64_t longest = subject.largestPrompt + subject.newTokens + 48;
  options.kvTokens = longest + random(0, longest / 2);
  options.prefixCaching = random(0, 3) > 0;
  options.swapTokens = random(0, 1) ? 4096 : 0;
  options.preemption =
      options.swapTokens && random(0, 1) ? PreemptionMode::Swap : PreemptionMode::Recompute;
  std::string config = drafterConfig(int64_t(seed % 5), subject);
  if (!config.empty())
    ASSERT_TRUE(setSpeculation(*subject.model, config, options));
  std::ostringstream what;
  what << "seed " << seed << ": threads " << options.threads << ", sequences "
       << options.maxSequences << ", chunk " << options.maxBatchedTokens << ", block "
       << options.blockTokens << ", pool " << options.kvTokens << ", cache "
       << options.prefixCaching << ", swap " << options.swapTokens << ", " << config;
  SCOPED_TRACE(what.str());
  auto made = createCpuEngine(subject.model->plan(), options);
  ASSERT_TRUE(made) << made.status().message();
  Engine &engine = **made;
  for (int pass = 0; pass < 2; ++pass)
    if (!testing::Test::HasFatalFailure())
      compare(engine, asked, want, random);
  if (testing::Test::HasFatalFailure())
    return; // the engine may still have requests
  EXPECT_EQ(engine.freeBlocks(), engine.limits().kvBlocks);
  const EngineMetrics &m = engine.metrics();
  totals->preemptions.add(m.preemptions);
  totals->swaps.add(m.swaps);
  totals->prefixHits.add(m.prefixHits);
  totals->acceptedTokens.add(m.acceptedTokens);
  totals->draftTokens.add(m.draftTokens);
}

/// Prompts of up to \p prompt tokens and answers of up to \p n, less where the context is short.
Subject subjectOf(const std::string &path, int64_t prompt, int64_t n) {
  auto model = Model::open(path);
  EXPECT_TRUE(model) << model.status().message();
  if (model) {
    int64_t context = (*model)->plan()->head().model()->max_context();
    prompt = std::min(prompt, context / 2);
    n = std::min(n, context - prompt);
  }
  const char *draft = std::getenv("EXACT_DRAFT");
  return {model ? *model : nullptr, path, draft ? draft : path, prompt, n};
}

double numberOf(const char *variable, double standard) {
  const char *text = std::getenv(variable);
  return text ? std::atof(text) : standard;
}

double seconds() { return numberOf("EXACT_SECONDS", 0); }

/// As many as the engine may be asked for at once; a tenth in the short run that every build makes.
int requestCount() { return seconds() > 0 ? 64 : 10; }

/// Which paths the engines took, for who reads the log.
void report(const EngineMetrics &m, uint64_t engines, size_t requests) {
  std::printf("%llu engines, twice %zu requests each: %lld preemptions (%lld by swap), %lld prompt "
              "tokens from the prefix cache, %lld guesses (%lld true)\n",
              static_cast<unsigned long long>(engines), requests,
              static_cast<long long>(m.preemptions), static_cast<long long>(m.swaps),
              static_cast<long long>(m.prefixHits), static_cast<long long>(m.draftTokens),
              static_cast<long long>(m.acceptedTokens));
}

TEST(Exactness, RandomEnginesOnATinyPlan) {
  TinyPlanFile file;
  Subject subject = subjectOf(file.path(), 60, 120);
  std::vector<Asked> asked = requestsFor(subject, requestCount(), 1);
  std::vector<Output> want = alone(subject, asked);
  EngineMetrics totals;
  auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds());
  uint64_t seed = 1;
  for (; seed <= 40 || std::chrono::steady_clock::now() < end; ++seed) {
    oneRound(subject, asked, want, seed, &totals);
    if (HasFatalFailure() || HasNonfatalFailure())
      return;
  }
  report(totals, seed - 1, asked.size());
  // The paths were taken.
  EXPECT_GT(totals.preemptions, 10);
  EXPECT_GT(totals.swaps, 2);
  EXPECT_GT(totals.prefixHits, 1000);
  EXPECT_GT(totals.acceptedTokens, 100);
  EXPECT_GT(totals.draftTokens - totals.acceptedTokens, 100);
}

TEST(Exactness, RandomEnginesOnPlansOfTheEnvironment) {
  const char *list = std::getenv("EXACT_PLANS");
  if (!list)
    GTEST_SKIP() << "EXACT_PLANS names no plans";
  std::istringstream paths(list);
  for (std::string path; std::getline(paths, path, ':');) {
    SCOPED_TRACE(path);
    Subject subject = subjectOf(path, 60, 60);
    ASSERT_TRUE(subject.model);
    std::vector<Asked> asked = requestsFor(subject, 64, 7);
    std::vector<Output> want = alone(subject, asked);
    EngineMetrics totals;
    auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds());
    uint64_t rounds = static_cast<uint64_t>(numberOf("EXACT_ROUNDS", 6)), seed = 1;
    for (; seed <= rounds || std::chrono::steady_clock::now() < end; ++seed) {
      oneRound(subject, asked, want, seed, &totals);
      if (HasFatalFailure() || HasNonfatalFailure())
        return;
    }
    report(totals, seed - 1, asked.size());
    EXPECT_GT(totals.preemptions, 0);
    EXPECT_GT(totals.swaps, 0);
    EXPECT_GT(totals.prefixHits, 0);
    EXPECT_GT(totals.acceptedTokens, 0);
    EXPECT_GT(totals.draftTokens, totals.acceptedTokens);
  }
}

} // namespace
