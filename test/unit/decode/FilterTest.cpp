// DRY, masks, typical, XTC, mirostat; and that what all filters leave is drawn in proportion.
#include "runtime/decode/Sampler.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <map>

using namespace llmrt;

namespace {

SamplingParams at(float temperature) {
  SamplingParams params;
  params.temperature = temperature;
  params.seed = 42;
  return params;
}

std::map<int32_t, int> draws(const std::vector<float> &logits, const SamplingParams &params,
                             const SamplingContext &context = {}, int count = 20000) {
  Sampler sampler(int32_t(logits.size()));
  std::map<int32_t, int> seen;
  for (int i = 0; i < count; ++i)
    ++seen[sampler.sample(logits, params, uint64_t(i), context)->id];
  return seen;
}

std::vector<int32_t> ids(const std::map<int32_t, int> &seen) {
  std::vector<int32_t> out;
  for (auto [id, n] : seen)
    out.push_back(id);
  return out;
}
using Ids = std::vector<int32_t>;

int32_t greedy(const std::vector<float> &logits, const SamplingParams &params,
               const SamplingContext &context) {
  Sampler sampler(int32_t(logits.size()));
  auto token = sampler.sample(logits, params, 0, context);
  EXPECT_TRUE(token) << token.status().message();
  return token ? token->id : -1;
}

TEST(Filters, DryPenalisesByTheLengthOfTheRepeat) {
  SamplingParams params;
  params.dryMultiplier = 1;
  params.dryBase = 2;
  params.dryAllowedLength = 2;
  const std::vector<int32_t> tokens = {1, 2, 3, 4, 9, 1, 2, 3}; // 4 would make a repeat of 3 go on
  SamplingContext context;
  context.tokens = tokens;
  // The penalty is 1 * 2^(3 - 2) = 2.
  std::vector<float> logits(10, 0.0f);
  logits[4] = 1.9f;
  EXPECT_EQ(greedy(logits, params, context), 0);
  logits[4] = 2.1f;
  EXPECT_EQ(greedy(logits, params, context), 4);
  params.dryAllowedLength = 4; // a repeat of 3 is free
  logits[4] = 0.1f;
  EXPECT_EQ(greedy(logits, params, context), 4);
  params.dryAllowedLength = 2;
  params.dryBreakers = {2}; // the repeat begins behind it
  EXPECT_EQ(greedy(logits, params, context), 4);
  params.dryBreakers = {};
  params.dryLastN = 4; // sees 9 1 2 3 only
  EXPECT_EQ(greedy(logits, params, context), 4);
  params.dryLastN = -1;
  EXPECT_EQ(greedy(logits, params, context), 0);
  params.dryBase = 100; // of a long repeat: large, and finite
  std::vector<int32_t> same(1000, 5);
  context.tokens = same;
  logits.assign(10, 0.0f);
  logits[5] = 50;
  EXPECT_EQ(greedy(logits, params, context), 0);
}

TEST(Filters, MasksForbidAndAllow) {
  std::vector<float> logits = {5, 4, 3, 2, 1};
  SamplingContext context;
  const Ids banned = {0};
  context.banned = banned;
  EXPECT_EQ(greedy(logits, {}, context), 1);
  const uint64_t mask = 0b01100;
  context.allowed = {&mask, 1};
  EXPECT_EQ(greedy(logits, {}, context), 2);
  const Ids end = {1};
  context.alsoAllowed = end;
  EXPECT_EQ(greedy(logits, {}, context), 1);
  for (float topP : {1.0f, 0.9f})
    for (int32_t topK : {0, 4})
      for (float typical : {1.0f, 0.99f}) {
        SamplingParams params = at(3);
        params.topP = topP;
        params.topK = topK;
        params.typicalP = typical;
        for (int32_t id : ids(draws(logits, params, context)))
          EXPECT_TRUE(id >= 1 && id <= 3) << id;
      }
  const Ids all = {1, 2, 3};
  context.alsoBanned = all;
  Sampler sampler(5);
  auto none = sampler.sample(logits, {}, 0, context);
  ASSERT_FALSE(none);
  EXPECT_NE(none.status().message().find("forbid all"), std::string::npos);
}

TEST(Filters, BadWordsAreNeverCompleted) {
  std::vector<float> logits = {5, 4, 3, 2, 1};
  SamplingParams params;
  params.badWords = {{0}, {7, 8, 1}};
  const Ids tokens = {7, 7, 8};
  SamplingContext context;
  context.tokens = tokens;
  EXPECT_EQ(greedy(logits, params, context), 2);
  const Ids other = {7, 8, 8};
  context.tokens = other;
  EXPECT_EQ(greedy(logits, params, context), 1);
  context.tokens = tokens;
  context.promptTokens = 2; // what the prompt says doesn't count
  EXPECT_EQ(greedy(logits, params, context), 1);
}

TEST(Filters, TypicalKeepsWhatIsAsSurprisingAsExpected) {
  // One token of 1/2, eight of 1/16: entropy 2.5 bits; surprises 1 and 4 bits are equally far.
  std::vector<float> logits(9, std::log(1.0f / 16));
  logits[0] = std::log(0.5f);
  logits[8] = std::log(1.0f / 8); // 3 bits is closest
  SamplingParams params = at(1);
  params.typicalP = 0.05f;
  EXPECT_EQ(ids(draws(logits, params)), Ids{8});
  params.typicalP = 1;
  EXPECT_EQ(draws(logits, params).size(), 9u);
}

TEST(Filters, XtcDropsAllButTheLeastLikelyOfTheLikely) {
  std::vector<float> logits = {std::log(0.4f), std::log(0.3f), std::log(0.2f), std::log(0.1f)};
  SamplingParams params = at(1);
  params.xtcThreshold = 0.15f;
  params.xtcProbability = 1;
  auto seen = draws(logits, params);
  EXPECT_EQ(ids(seen), (Ids{2, 3}));
  EXPECT_NEAR(seen[2] / 20000.0, 2.0 / 3, 0.015);
  params.xtcProbability = 0.5f; // half of the draws
  seen = draws(logits, params);
  EXPECT_NEAR(seen[0] / 20000.0, 0.2, 0.015);
  params.xtcThreshold = 0.35f; // one likely token: nothing to exclude
  params.xtcProbability = 1;
  EXPECT_EQ(draws(logits, params).size(), 4u);
}

TEST(Filters, MirostatSteersTheSurprise) {
  std::vector<float> logits;
  for (int i = 0; i < 200; ++i)
    logits.push_back(-0.05f * float(i)); // entropy about 5.8 bits
  for (float tau : {2.0f, 4.0f}) {
    SamplingParams params = at(1);
    params.mirostat = 2;
    params.mirostatTau = tau;
    params.mirostatEta = 0.1f;
    params.topK = 1; // replaced
    double surprise = std::nan("");
    SamplingContext context;
    context.surprise = &surprise;
    Sampler sampler(200);
    double total = 0, sum = 0;
    for (float l : logits)
      total += std::exp(double(l));
    for (int i = 0; i < 4000; ++i) {
      double bound = std::isnan(surprise) ? 2 * double(tau) : surprise;
      int32_t id = sampler.sample(logits, params, uint64_t(i), context)->id;
      double bits = -std::log2(std::exp(double(logits[size_t(id)])) / total);
      EXPECT_TRUE(bits <= bound + 1e-6 || id == 0);
      // The bound moved by eta times the distance of the surprise among what was kept.
      sum += double(tau) + (bound - surprise) / 0.1;
    }
    EXPECT_NEAR(sum / 4000, double(tau), 0.05);
  }
}

TEST(Filters, ChiSquareOfAllFiltersTogether) {
  // 200,000 draws against the distribution worked out here.
  const std::vector<float> raw = {2.0f, 1.7f, 1.5f, 1.0f, 0.6f, 0.2f, -0.3f, -1.0f, -2.5f, 0.9f};
  SamplingParams params = at(1.3f);
  params.repetitionPenalty = 1.2f;
  params.presencePenalty = 0.4f;
  params.frequencyPenalty = 0.15f;
  params.topK = 7;
  params.topP = 0.9f;
  const Ids prompt = {0, 6};
  TokenHistory history(10, prompt, 8);
  for (int32_t id : {1, 1, 3})
    history.commit(id);
  SamplingContext context;
  context.history = &history;
  std::vector<double> logits(raw.begin(), raw.end());
  for (int32_t id : {0, 6, 1, 3})
    logits[size_t(id)] =
        logits[size_t(id)] > 0 ? logits[size_t(id)] / 1.2 : logits[size_t(id)] * 1.2;
  logits[1] -= 0.4 + 2 * 0.15;
  logits[3] -= 0.4 + 0.15;
  Ids order = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  std::sort(order.begin(), order.end(),
            [&](int32_t a, int32_t b) { return logits[size_t(a)] > logits[size_t(b)]; });
  order.resize(7);
  double total = 0, sum = 0;
  for (int32_t id : order)
    total += std::exp(logits[size_t(id)]);
  size_t kept = 0;
  while (sum < 0.9 * total)
    sum += std::exp(logits[size_t(order[kept++])]);
  order.resize(kept);
  ASSERT_GT(kept, 4u);
  ASSERT_LT(kept, 7u);
  double scale = 0, statistic = 0;
  for (int32_t id : order)
    scale += std::exp(logits[size_t(id)] / 1.3);
  constexpr int count = 200000;
  auto seen = draws(raw, params, context, count);
  EXPECT_EQ(seen.size(), kept);
  for (int32_t id : order) {
    double expected = count * std::exp(logits[size_t(id)] / 1.3) / scale;
    statistic += (seen[id] - expected) * (seen[id] - expected) / expected;
  }
  EXPECT_LT(statistic, 22.5) << "99.9th percentile for up to 6 degrees of freedom";
}

TEST(Classical, S04_TheDistributionIsTheTargetsWhateverTheDraft) {
  const std::vector<float> target = {3, 2, 1, 0}, draft = {0, 1, 2, 3};
  struct Case {
    const char *name;
    std::function<void(SamplingParams &)> set;
  };
  const Case cases[] = {{"top_k", [](SamplingParams &p) { p.topK = 2; }},
                        {"top_p", [](SamplingParams &p) { p.topP = 0.8f; }},
                        {"min_p", [](SamplingParams &p) { p.minP = 0.1f; }},
                        {"penalty", [](SamplingParams &p) { p.repetitionPenalty = 1.5f; }},
                        {"bias", [](SamplingParams &p) { p.logitBias = {{3, 2}}; }},
                        {"plain", [](SamplingParams &) {}}};
  const Ids prompt = {0};
  TokenHistory history(4, prompt, 4);
  SamplingContext context;
  context.history = &history;
  constexpr int count = 200000;
  for (const Case &c : cases)
    for (int certain = 0; certain < 2; ++certain) {
      SamplingParams params = at(1);
      c.set(params);
      Sampler sampler(4), drafter(4);
      std::vector<TokenProbability> want, q;
      ASSERT_TRUE(sampler.distribution(target, params, 0, context, want));
      ASSERT_TRUE(drafter.distribution(draft, params, 0, context, q));
      std::map<int32_t, int> seen;
      int accepted = 0;
      for (int i = 0; i < count; ++i) {
        // A drafter that draws with the same noise, or one that always says 1.
        int32_t guess = certain ? 1 : drafter.sample(draft, params, uint64_t(i), context)->id;
        auto token = sampler.sampleClassical(target, params, uint64_t(i), context, guess,
                                             certain ? std::span<const TokenProbability>()
                                                     : std::span<const TokenProbability>(q));
        ASSERT_TRUE(token);
        ++seen[token->id];
        accepted += token->id == guess;
      }
      double statistic = 0, overlap = 0;
      for (const TokenProbability &t : want) {
        double expected = count * t.probability;
        statistic += (seen[t.id] - expected) * (seen[t.id] - expected) / expected;
        for (const TokenProbability &d : q)
          overlap += d.id == t.id ? std::min(d.probability, t.probability) : 0;
        if (certain)
          overlap = t.id == 1 ? t.probability : overlap;
      }
      int all = 0;
      for (auto [id, n] : seen)
        all += n * int(std::any_of(want.begin(), want.end(),
                                   [id = id](const TokenProbability &t) { return t.id == id; }));
      EXPECT_EQ(all, count) << c.name << ": only what the target's filters leave";
      EXPECT_LT(statistic, 16.3) << c.name << " " << certain; // 99.9th percentile, 3 degrees
      if (!certain) // the rule accepts as often as any can
        EXPECT_NEAR(accepted / double(count), overlap, 0.006) << c.name;
    }
}

TEST(Classical, GreedyIsGreedy) {
  Sampler sampler(3);
  std::vector<float> logits = {1, 5, 2};
  for (int32_t guess : {-1, 0, 1, 2})
    EXPECT_EQ(sampler.sampleClassical(logits, {}, 0, {}, guess, {})->id, 1);
}

TEST(Filters, EveryParameterIsChecked) {
  auto message = [](auto set) {
    SamplingParams params;
    set(params);
    Status status = validate(params, 100);
    EXPECT_FALSE(status);
    return status.message();
  };
  EXPECT_NE(message([](auto &p) { p.typicalP = 1.5f; }).find("typical_p"), std::string::npos);
  EXPECT_NE(message([](auto &p) { p.xtcProbability = -1; }).find("xtc_prob"), std::string::npos);
  EXPECT_NE(message([](auto &p) { p.xtcThreshold = 2; }).find("xtc_thr"), std::string::npos);
  EXPECT_NE(message([](auto &p) { p.dryMultiplier = NAN; }).find("dry_mult"), std::string::npos);
  EXPECT_NE(message([](auto &p) { p.dryBase = 0.5f; }).find("dry_base"), std::string::npos);
  EXPECT_NE(message([](auto &p) { p.dryAllowedLength = -1; }).find("dry_all"), std::string::npos);
  EXPECT_NE(message([](auto &p) { p.dryLastN = -2; }).find("dry_penalty"), std::string::npos);
  EXPECT_NE(message([](auto &p) { p.dryBreakers = {100}; }).find("dry_seq"), std::string::npos);
  EXPECT_NE(message([](auto &p) { p.mirostat = 1; }).find("mirostat is 1"), std::string::npos);
  EXPECT_NE(message([](auto &p) { p.mirostat = 2, p.mirostatTau = 0; }).find("tau"),
            std::string::npos);
  EXPECT_NE(message([](auto &p) { p.mirostat = 2, p.mirostatEta = 2; }).find("eta"),
            std::string::npos);
  EXPECT_NE(message([](auto &p) { p.minTokens = -1; }).find("min_tokens"), std::string::npos);
  EXPECT_NE(message([](auto &p) { p.badWords = {{}}; }).find("bad_words"), std::string::npos);
  EXPECT_NE(message([](auto &p) { p.badWords = {{1, -1}}; }).find("bad_words"), std::string::npos);
}

} // namespace
