// Beam search, alone and in the engine, against a search that is written down as its definition is:
// whole texts, recomputed from nothing at every length.
#include "test/unit/engine/TestBench.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace llmrt;
using namespace llmrt::test;

namespace {

/// Logits that depend on every token of the context.
std::vector<float> logitsOf(const std::vector<int32_t> &context, int32_t size) {
  uint32_t h = 2166136261u;
  for (int32_t id : context)
    h = (h ^ static_cast<uint32_t>(id + 1)) * 16777619u;
  std::mt19937 generator(h);
  std::vector<float> logits(static_cast<size_t>(size));
  for (float &l : logits)
    l = static_cast<float>(generator() % 100000) * 6e-5f;
  return logits;
}

std::vector<double> logprobsOf(const std::vector<int32_t> &context, int32_t size) {
  std::vector<float> logits = logitsOf(context, size);
  double total = 0;
  for (float l : logits)
    total += std::exp(double(l));
  std::vector<double> out;
  for (float l : logits)
    out.push_back(double(l) - std::log(total));
  return out;
}

struct Reference {
  struct Text {
    std::vector<int32_t> ids;
    double sum;
    bool ended;
    double score = 0;
    size_t order = 0; ///< decides between equals
  };
  BeamSearchParams params;
  std::vector<int32_t> prompt, ends;
  int64_t maxNew;
  int64_t minTokens = 0;

  double score(double sum, int64_t length) const {
    return sum / std::pow(double(length), double(params.lengthPenalty));
  }
  std::vector<Text> run() const {
    size_t width = size_t(params.width);
    std::vector<Text> live = {{{}, 0, false}}, done;
    for (int64_t length = 1; length <= maxNew; ++length) {
      std::vector<Text> all;
      for (const Text &text : live) {
        std::vector<int32_t> context = prompt;
        context.insert(context.end(), text.ids.begin(), text.ids.end());
        std::vector<double> logprobs = logprobsOf(context, vocabulary);
        for (int32_t id = 0; id < vocabulary; ++id) {
          bool end = std::count(ends.begin(), ends.end(), id) > 0;
          if (end && length <= minTokens)
            continue;
          all.push_back({text.ids, text.sum + logprobs[size_t(id)], end});
          all.back().ids.push_back(id);
          all.back().order = all.size();
        }
      }
      std::sort(all.begin(), all.end(), [](const Text &a, const Text &b) {
        return a.sum != b.sum ? a.sum > b.sum : a.order < b.order;
      });
      live.clear();
      for (size_t rank = 0; rank < all.size(); ++rank) {
        if (!all[rank].ended && length < maxNew) {
          if (live.size() < width)
            live.push_back(all[rank]);
          continue;
        }
        if (rank >= width)
          continue;
        all[rank].score = score(all[rank].sum, length);
        all[rank].order = size_t(length) * 10000 + rank;
        done.push_back(all[rank]);
      }
      std::sort(done.begin(), done.end(), [](const Text &a, const Text &b) {
        return a.score != b.score ? a.score > b.score : a.order < b.order;
      });
      if (done.size() > width)
        done.resize(width);
      if (live.empty())
        break;
      if (done.size() < width)
        continue;
      int64_t reach = params.stop == BeamStop::Never && params.lengthPenalty > 0 ? maxNew : length;
      if (params.stop == BeamStop::Early || score(live[0].sum, reach) <= done.back().score)
        break;
    }
    return done;
  }
};

/// Remembers each answer of a request.
class BeamListener final : public RequestListener {
public:
  bool onToken(const TokenEvent &event) override {
    at(event.choice).ids.push_back(event.token.id);
    at(event.choice).sum += double(event.token.logprob);
    tops.push_back(event.token.topCount);
    return true;
  }
  void onFinish(const FinishEvent &event) override {
    reasons.push_back(event.reason);
    at(event.choice).ended = event.reason == FinishReason::Stop;
    status = event.status;
    last += event.last;
    if (event.reason == FinishReason::Stop || event.reason == FinishReason::Length) {
      EXPECT_EQ(event.outputTokens, int64_t(at(event.choice).ids.size()));
      EXPECT_NEAR(event.sumLogprob, at(event.choice).sum, 1e-4);
    }
  }
  Reference::Text &at(int32_t choice) {
    if (texts.size() <= size_t(choice))
      texts.resize(size_t(choice) + 1);
    return texts[size_t(choice)];
  }
  std::vector<Reference::Text> texts;
  std::vector<FinishReason> reasons;
  std::vector<int32_t> tops;
  Status status;
  int last = 0;
};

RequestOptions optionsOf(const Reference &search, BeamListener &listener, int32_t answers) {
  RequestOptions options;
  options.prompt = search.prompt;
  options.maxNewTokens = search.maxNew;
  options.endIds = search.ends;
  options.beams = search.params;
  options.choices = answers;
  options.sampling.minTokens = int32_t(search.minTokens);
  options.listener = &listener;
  return options;
}

void expectEqual(const BeamListener &listener, const Reference &search, size_t answers) {
  std::vector<Reference::Text> wanted = search.run();
  ASSERT_EQ(listener.texts.size(), answers);
  EXPECT_EQ(listener.last, 1);
  for (size_t i = 0; i < answers; ++i) {
    EXPECT_EQ(listener.texts[i].ids, wanted[i].ids) << "answer " << i;
    EXPECT_EQ(listener.texts[i].ended, wanted[i].ended) << "answer " << i;
    EXPECT_NEAR(listener.texts[i].sum, wanted[i].sum, 1e-3) << "answer " << i;
  }
}

BenchOptions softModel(int64_t blocks = 256, int64_t sequences = 8) {
  BenchOptions setup;
  setup.limits.kvBlocks = blocks;
  setup.limits.maxSequences = sequences;
  return setup;
}

/// The model's logits are those of logitsOf.
void soften(TestBench &bench) {
  bench.executor->adjust = [](const std::vector<int32_t> &context, float *row) {
    std::vector<float> logits = logitsOf(context, vocabulary);
    std::copy(logits.begin(), logits.end(), row);
  };
}

TEST(BeamTest, FindsTheTextsOfItsDefinition) {
  // Ends that are rare, frequent, several; each rule for stopping; long and short favoured.
  for (BeamStop stop : {BeamStop::Hopeless, BeamStop::Early, BeamStop::Never})
    for (float penalty : {1.0f, 0.0f, 2.0f, -1.0f})
      for (int width : {1, 2, 4, 7}) {
        Reference search{{width, penalty, stop}, promptOf(20 + width), {}, 12};
        for (int i = 0; i < 6 * (width % 3); ++i)
          search.ends.push_back((i * 17 + width) % vocabulary);
        search.minTokens = width == 4 ? 3 : 0;
        if (search.ends.size() > 11)
          search.ends.resize(11);
        TestBench bench(softModel());
        soften(bench);
        BeamListener listener;
        ASSERT_TRUE(bench.engine->add(optionsOf(search, listener, width)));
        bench.drain();
        SCOPED_TRACE("width " + std::to_string(width) + " penalty " + std::to_string(penalty));
        expectEqual(listener, search, size_t(width));
        EXPECT_EQ(bench.engine->freeBlocks(), 256);
      }
}

TEST(BeamTest, BeamsShareBlocks) {
  TestBench bench(softModel());
  soften(bench);
  Reference search{{4, 1, BeamStop::Hopeless}, promptOf(161), {}, 30};
  BeamListener listener;
  ASSERT_TRUE(bench.engine->add(optionsOf(search, listener, 1)));
  int64_t most = 0;
  while (bench.engine->busy()) {
    ASSERT_TRUE(bench.engine->step());
    most = std::max<int64_t>(most, bench.engine->metrics().kvBlocksUsed);
  }
  expectEqual(listener, search, 1);
  // 10 blocks of the prompt once; what a beam has for itself is at most 3.
  EXPECT_LE(most, 10 + 4 * 3);
  EXPECT_GT(bench.executor->copied, 0) << "a shared block that is written is copied";
  int64_t computed = 0;
  for (int64_t tokens : bench.executor->tokensOfSteps)
    computed += tokens;
  EXPECT_LE(computed, 161 + 4 * 30) << "nothing is computed twice";
}

/// Several searches and plain requests at once, in pools that hold few of them and chunks that hold
/// parts of prompts: preempted by recompute and by swap, the texts are the same.
struct Crowd {
  int64_t preempted = 0, swapped = 0;

  void run(PreemptionMode mode, bool caching, int64_t blocks, int64_t shortContext = INT64_MAX) {
    BenchOptions setup = softModel(blocks, 16);
    setup.shortContext = shortContext;
    setup.limits.maxBatchedTokens = 20;
    setup.limits.maxRows = 16;
    setup.limits.prefixCaching = caching;
    setup.limits.preemption = mode;
    setup.limits.swapBlocks = mode == PreemptionMode::Swap ? 20 : 0;
    TestBench bench(setup);
    soften(bench);
    std::vector<Reference> searches;
    std::vector<BeamListener> beams(5);
    std::vector<RecordingListener> plain(5);
    for (size_t i = 0; i < beams.size(); ++i) {
      searches.push_back({{int32_t(2 + i % 3), 1, BeamStop::Never},
                          promptOf(25 + int(i) * 3, int(i)),
                          {5, 6},
                          40});
      RequestOptions options = optionsOf(searches.back(), beams[i], 1 + int32_t(i % 2));
      options.priority = int32_t(i % 2) * -1;
      Result<RequestId> added = bench.engine->add(std::move(options));
      ASSERT_TRUE(added) << added.status().message();
      ASSERT_TRUE(bench.add(promptOf(30, int(i)), 60, plain[i]));
      for (int s = 0; s < 2; ++s)
        ASSERT_TRUE(bench.engine->step());
    }
    bench.drain();
    for (size_t i = 0; i < beams.size(); ++i) {
      SCOPED_TRACE("search " + std::to_string(i) + " of " + std::to_string(blocks) +
                   " blocks, short context " + std::to_string(shortContext));
      expectEqual(beams[i], searches[i], 1 + i % 2);
      std::vector<int32_t> context = promptOf(30, int(i));
      for (int32_t id : plain[i].ids) {
        std::vector<float> logits = logitsOf(context, vocabulary);
        EXPECT_EQ(id, std::max_element(logits.begin(), logits.end()) - logits.begin());
        context.push_back(id);
      }
    }
    EXPECT_EQ(bench.engine->freeBlocks(), blocks);
    preempted += bench.engine->metrics().preemptions;
    swapped += bench.engine->metrics().swaps;
  }
};

TEST(BeamTest, AmongOthersAndWithoutRoom) {
  Crowd crowd;
  for (PreemptionMode mode : {PreemptionMode::Recompute, PreemptionMode::Swap})
    for (bool caching : {true, false})
      for (int64_t blocks : {22, 26, 200})
        crowd.run(mode, caching, blocks);
  EXPECT_GT(crowd.preempted, 20) << "there is too much room";
  EXPECT_GT(crowd.swapped, 5);
}

// Whatever length is the last of the short context: in some of these runs a beam crosses it that
// gave up its blocks and waits for others, or lies in host memory.
TEST(BeamTest, GrowsIntoTheLongContextWithoutRoom) {
  Crowd crowd;
  for (PreemptionMode mode : {PreemptionMode::Recompute, PreemptionMode::Swap})
    for (int64_t shortContext = 45; shortContext < 70; ++shortContext)
      crowd.run(mode, false, 26, shortContext);
  EXPECT_GT(crowd.preempted, 200) << "there is too much room";
  EXPECT_GT(crowd.swapped, 50);
}

TEST(BeamTest, EndsAtAnyTime) {
  // Cancelled, or failed, at every step of its life: each answer hears of it once, and all is free.
  for (int steps = 0; steps < 14; ++steps)
    for (bool fails : {false, true}) {
      TestBench bench(softModel(40, 4));
      soften(bench);
      bench.executor->failAt = fails ? steps + 1 : -1;
      Reference search{{3, 1, BeamStop::Never}, promptOf(40), {}, 20};
      BeamListener listener;
      Result<RequestId> id = bench.engine->add(optionsOf(search, listener, 2));
      ASSERT_TRUE(id);
      for (int i = 0; i < steps; ++i)
        (void)bench.engine->step();
      if (!fails)
        bench.engine->cancel(*id);
      for (int i = 0; i < 3 && bench.engine->busy(); ++i)
        (void)bench.engine->step();
      FinishReason wanted = fails ? FinishReason::Error : FinishReason::Cancelled;
      EXPECT_EQ(listener.reasons, std::vector<FinishReason>(2, wanted)) << steps;
      EXPECT_EQ(listener.last, 1);
      EXPECT_FALSE(bench.engine->busy());
      EXPECT_EQ(bench.engine->freeBlocks(), 40);
    }
}

TEST(BeamTest, LogprobsOfTheLikeliest) {
  TestBench bench(softModel());
  soften(bench);
  Reference search{{3, 1, BeamStop::Hopeless}, promptOf(9), {}, 5};
  BeamListener listener;
  RequestOptions options = optionsOf(search, listener, 1);
  options.sampling.logprobs = 4;
  ASSERT_TRUE(bench.engine->add(std::move(options)));
  bench.drain();
  EXPECT_EQ(listener.tops, std::vector<int32_t>(5, 4));
}

TEST(BeamTest, WhatCannotBe) {
  TestBench bench(softModel(20));
  BeamListener listener;
  auto refusal = [&](std::function<void(RequestOptions &)> change) {
    Reference search{{4, 1, BeamStop::Hopeless}, promptOf(20), {}, 10};
    RequestOptions options = optionsOf(search, listener, 2);
    change(options);
    Result<RequestId> added = bench.engine->add(std::move(options));
    EXPECT_FALSE(added);
    return added.status().message();
  };
  auto has = [](const std::string &text, const char *part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_PRED2(has, refusal([](auto &o) { o.beams.width = 9; }), "num_beams is 9");
  EXPECT_PRED2(has, refusal([](auto &o) { o.beams.width = -1; }), "from 1 to 8");
  EXPECT_PRED2(has, refusal([](auto &o) { o.choices = 5; }), "at most so many answers");
  EXPECT_PRED2(has, refusal([](auto &o) { o.beams.lengthPenalty = NAN; }), "length_penalty");
  EXPECT_PRED2(has, refusal([](auto &o) { o.sampling.presencePenalty = 1; }), "penalties");
  EXPECT_PRED2(has, refusal([](auto &o) { o.maxNewTokens = 200; }), "KV blocks");
  EXPECT_PRED2(has, refusal([](auto &o) {
                 for (int32_t i = 0; i < 40; ++i)
                   o.stopIds.push_back(i);
               }),
               "too many for 97 tokens");
}

TEST(BeamTest, NoNewTokens) {
  TestBench bench(softModel());
  BeamListener listener;
  Reference search{{4, 1, BeamStop::Hopeless}, promptOf(20), {}, 0};
  ASSERT_TRUE(bench.engine->add(optionsOf(search, listener, 2)));
  bench.drain();
  EXPECT_EQ(listener.reasons, std::vector<FinishReason>(2, FinishReason::Length));
}

} // namespace
