// Group 5 of the cases (P01-P12) and the sampling parts of group 4 (S13, S15).
#include "runtime/decode/Sampler.h"

#include "runtime/decode/Math.h"
#include "runtime/decode/Noise.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <map>

using namespace llmrt;

namespace {

int32_t sampleOne(const std::vector<float> &logits, const SamplingParams &params,
                  uint64_t position = 0, const TokenHistory &history = {}) {
  Sampler sampler(static_cast<int32_t>(logits.size()));
  Result<SampledToken> token = sampler.sample(logits, params, history, position);
  EXPECT_TRUE(token) << token.status().message();
  return token ? token->id : -1;
}

/// How often each id is drawn over \p draws positions, as fractions.
std::map<int32_t, double> frequencies(const std::vector<float> &logits,
                                      const SamplingParams &params, int draws = 100000) {
  Sampler sampler(static_cast<int32_t>(logits.size()));
  std::map<int32_t, double> counts;
  for (int i = 0; i < draws; ++i)
    counts[sampler.sample(logits, params, {}, uint64_t(i))->id] += 1.0 / draws;
  return counts;
}

SamplingParams at(float temperature) {
  SamplingParams params;
  params.temperature = temperature;
  params.seed = 42;
  return params;
}

/// Over the chi-square statistic's 99.9th percentile something is wrong with the draws.
double chiSquare(const std::vector<float> &logits, double temperature, int draws,
                 std::map<int32_t, double> &seen) {
  double total = 0, statistic = 0;
  for (float l : logits)
    total += std::exp(l / temperature);
  for (size_t i = 0; i < logits.size(); ++i) {
    double expected = draws * std::exp(logits[i] / temperature) / total;
    double got = seen[int32_t(i)] * draws;
    statistic += (got - expected) * (got - expected) / expected;
  }
  return statistic;
}

TEST(Sampler, DrawsFollowTheSoftmax) {
  const std::vector<float> logits = {3, 2, 1, 0, -1, 0.5f, 2.5f, -2};
  for (double t : {0.7, 1.0, 1.8}) {
    auto seen = frequencies(logits, at(float(t)));
    EXPECT_LT(chiSquare(logits, t, 100000, seen), 24.3) << t; // 7 degrees of freedom
  }
}

TEST(Sampler, DifferentSeedsAreIndependent) {
  // The pair (draw with seed 1, draw with seed 2) at one position must fill the product.
  const std::vector<float> logits = {0, 0};
  Sampler sampler(2);
  SamplingParams a = at(1), b = at(1);
  a.seed = 1;
  b.seed = 2;
  int cells[4] = {};
  for (uint64_t i = 0; i < 40000; ++i)
    ++cells[sampler.sample(logits, a, {}, i)->id * 2 + sampler.sample(logits, b, {}, i)->id];
  for (int n : cells)
    EXPECT_NEAR(n, 10000, 400);
}

TEST(Sampler, P01_TemperatureActsAfterTopP) {
  SamplingParams params = at(0.5f);
  params.topP = 0.8f; // at temperature 1: .665, .245, .090 -> {0, 1}
  auto seen = frequencies({3, 2, 1}, params);
  EXPECT_NEAR(seen[0], 0.880797, 0.004);
  EXPECT_NEAR(seen[1], 0.119203, 0.004);
  EXPECT_EQ(seen.count(2), 0u);
}

TEST(Sampler, S04_OnlyTheFilteredDistributionIsDrawnFrom) {
  SamplingParams params = at(1);
  params.topK = 2;
  auto seen = frequencies({3, 2, 1, 0}, params, 200000);
  EXPECT_NEAR(seen[0], 0.731, 0.004);
  EXPECT_NEAR(seen[1], 0.269, 0.004);
  EXPECT_EQ(seen.size(), 2u);
}

TEST(Sampler, MinPKeepsWhatIsNearTheTop) {
  SamplingParams params = at(1);
  params.minP = 0.1f; // of logits 3, 2, 1, 0 (1, .37, .135, .0498 of the top): {0, 1, 2}
  auto seen = frequencies({3, 2, 1, 0}, params);
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen.count(3), 0u);
  params.topK = 2;
  EXPECT_EQ(frequencies({3, 2, 1, 0}, params).size(), 2u);
}

TEST(Sampler, TopPAmongTopKIsOfWhatTopKKept) {
  // Of four equal tokens top-k 2 keeps 0 and 1, each 1/2; top-p 0.4 then keeps 0 alone. Of all
  // four, 0.4 would keep two.
  SamplingParams params = at(1);
  params.topK = 2;
  params.topP = 0.4f;
  EXPECT_EQ(frequencies({1, 1, 1, 1}, params, 1000).size(), 1u);
  params.topK = 0;
  EXPECT_EQ(frequencies({1, 1, 1, 1}, params, 1000).size(), 2u);
}

TEST(Sampler, TopPOfAFlatDistributionNeedsTheWholeVocabulary) {
  // The bands near the top do not hold enough: a few high logits over a long, heavy tail.
  std::vector<float> logits(5000, -13.0f);
  logits[7] = 0;
  SamplingParams params = at(1);
  params.topP = 0.999f; // the tail holds 5000 e^-13 = 1.1 % of the mass
  auto seen = frequencies(logits, params, 2000);
  EXPECT_GT(seen.size(), 5u);
  EXPECT_NEAR(seen[7], 1 / (1 + 0.0113), 0.008);
}

std::vector<float> penalised(std::vector<float> logits, const SamplingParams &params,
                             const TokenHistory &history) {
  // Read back through differences of log-probabilities of single draws is clumsy; instead bias
  // each pair to equality and see which side wins.
  std::vector<float> out(logits.size());
  Sampler sampler(static_cast<int32_t>(logits.size()));
  for (size_t i = 0; i < logits.size(); ++i) {
    float low = -50, high = 50; // bisect the bias that brings token i to the top of a rival at 0
    for (int step = 0; step < 40; ++step) {
      float mid = (low + high) / 2;
      SamplingParams p = params;
      for (size_t j = 0; j < logits.size(); ++j)
        p.logitBias.push_back({int32_t(j), j == i ? mid : -100.0f});
      std::vector<float> withRival = logits;
      withRival.push_back(0);
      Sampler wide(static_cast<int32_t>(withRival.size()));
      int32_t winner = wide.sample(withRival, p, history, 0)->id;
      (winner == int32_t(i) ? high : low) = mid;
    }
    out[i] = -high;
  }
  return out;
}

TEST(Sampler, P03_RepetitionPenaltyOnNegativeLogits) {
  SamplingParams params;
  params.repetitionPenalty = 2;
  const int32_t prompt[] = {0, 1, 1};
  auto got = penalised({2, -2, .5f, 1}, params, TokenHistory(5, prompt, 8));
  const float want[] = {1, -4, .5f, 1};
  for (int i = 0; i < 4; ++i)
    EXPECT_NEAR(got[i], want[i], 1e-4) << i;
}

TEST(Sampler, PresenceAndFrequencyActOnTheOutputOnly) {
  SamplingParams params;
  params.presencePenalty = 1;
  params.frequencyPenalty = 0.5f;
  const int32_t prompt[] = {0};
  TokenHistory history(4, prompt, 8);
  history.commit(1);
  history.commit(1);
  history.commit(1);
  history.commit(2);
  auto got = penalised({1, 1, 1}, params, history);
  EXPECT_NEAR(got[0], 1, 1e-4);
  EXPECT_NEAR(got[1], 1 - 1 - 1.5, 1e-4);
  EXPECT_NEAR(got[2], 1 - 1 - 0.5, 1e-4);
}

TEST(Sampler, P06_ChoicesOfOneSeedDiffer) {
  std::vector<float> logits(100, 0.0f);
  auto text = [&](uint32_t choice) {
    SamplingParams params = at(1);
    params.seed = 5;
    params.stream = choice;
    std::vector<int32_t> ids;
    for (uint64_t i = 0; i < 32; ++i)
      ids.push_back(sampleOne(logits, params, i));
    return ids;
  };
  for (uint32_t i = 0; i < 4; ++i)
    for (uint32_t j = 0; j < i; ++j)
      EXPECT_NE(text(i), text(j));
  EXPECT_EQ(text(1), text(1));
}

TEST(Sampler, P08_IdsAndBiasesOutOfRangeAreRefused) {
  auto refused = [](LogitBias bias) {
    SamplingParams params;
    params.logitBias = {bias};
    Status status = validate(params, 320);
    EXPECT_NE(status.message().find("logit_bias"), std::string::npos);
    return !status.isOk();
  };
  EXPECT_TRUE(refused({999999, 100}));
  EXPECT_TRUE(refused({320, 1}));
  EXPECT_TRUE(refused({-1, 5}));
  EXPECT_TRUE(refused({5, 1000}));
  EXPECT_TRUE(refused({5, std::numeric_limits<float>::quiet_NaN()}));
}

TEST(Sampler, P08_BiasExcludesAndForces) {
  SamplingParams params;
  params.logitBias = {{0, -100}};
  EXPECT_EQ(sampleOne({5, 4, 3}, params), 1);
  params.logitBias = {{2, 100}};
  EXPECT_EQ(sampleOne({5, 4, 3}, params), 2);
}

TEST(Sampler, P09_LogprobsAreFiniteAndOfTheUnfilteredDistribution) {
  Sampler sampler(5);
  SamplingParams params = at(1);
  params.topK = 1;
  params.logprobs = 5;
  const float logits[] = {1, 4, 2, 3, 0};
  SampledToken token = *sampler.sample(logits, params, {}, 0);
  double total = 0;
  for (float l : logits)
    total += std::exp(double(l));
  ASSERT_EQ(token.topCount, 5);
  const int32_t order[] = {1, 3, 2, 0, 4};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(token.top[size_t(i)].id, order[i]);
    EXPECT_NEAR(token.top[size_t(i)].logprob, logits[order[i]] - std::log(total), 1e-6);
  }
  EXPECT_EQ(token.logprob, token.top[0].logprob);
}

TEST(Sampler, P11_LimitsOfTopKAndTopP) {
  const std::vector<float> logits = {0, 3, 1, 2, -1};
  auto distinct = [&](int32_t k) {
    SamplingParams params = at(3);
    params.topK = k;
    EXPECT_TRUE(validate(params, 5)) << k;
    return frequencies(logits, params, 5000).size();
  };
  EXPECT_EQ(distinct(0), 5u);
  EXPECT_EQ(distinct(-1), 5u);
  EXPECT_EQ(distinct(1), 1u);
  EXPECT_EQ(distinct(5), 5u);
  EXPECT_EQ(distinct(6), 5u);
  EXPECT_EQ(distinct(1000000), 5u);
  SamplingParams params = at(1);
  params.topK = -2;
  EXPECT_FALSE(validate(params, 5));
  params.topK = 0;
  params.topP = 1.1f;
  EXPECT_FALSE(validate(params, 5));
  params.topP = 0;
  ASSERT_TRUE(validate(params, 5));
  EXPECT_EQ(sampleOne(logits, params), 1);
  params.topP = 1;
  EXPECT_EQ(frequencies(logits, params, 20000).size(), 5u);
}

TEST(Sampler, EveryParameterIsChecked) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  auto refused = [](auto set) {
    SamplingParams params;
    set(params);
    return !validate(params, 10).isOk();
  };
  EXPECT_TRUE(refused([](auto &p) { p.temperature = -0.1f; }));
  EXPECT_TRUE(refused([&](auto &p) { p.temperature = nan; }));
  EXPECT_TRUE(refused([](auto &p) { p.temperature = INFINITY; }));
  EXPECT_TRUE(refused([](auto &p) { p.minP = 1.5f; }));
  EXPECT_TRUE(refused([&](auto &p) { p.topP = nan; }));
  EXPECT_TRUE(refused([](auto &p) { p.repetitionPenalty = 0; }));
  EXPECT_TRUE(refused([](auto &p) { p.repetitionPenalty = -1; }));
  EXPECT_TRUE(refused([](auto &p) { p.presencePenalty = 2.5f; }));
  EXPECT_TRUE(refused([](auto &p) { p.frequencyPenalty = -3; }));
  EXPECT_TRUE(refused([](auto &p) { p.logprobs = 21; }));
}

TEST(Sampler, S13_EqualLogitsGoToTheLowestId) {
  EXPECT_EQ(sampleOne({1, 7, 7, 7}, SamplingParams()), 1);
  std::vector<float> wide(1000, 0.0f);
  wide[999] = wide[17] = wide[500] = 2;
  EXPECT_EQ(sampleOne(wide, SamplingParams()), 17);
  SamplingParams params = at(1);
  params.topK = 2; // of three equal ones the two with the lower ids
  EXPECT_EQ(frequencies(wide, params, 2000).count(999), 0u);
}

TEST(Sampler, S15_ADrawDependsOnSeedPositionAndIdOnly) {
  std::vector<float> logits(300);
  for (size_t i = 0; i < logits.size(); ++i)
    logits[i] = float((i * 37) % 11) * 0.3f;
  int32_t alone = sampleOne(logits, at(1), 9);
  // After other draws with the same sampler.
  Sampler sampler(300);
  for (uint64_t i = 0; i < 9; ++i)
    (void)sampler.sample(logits, at(0.5f), {}, i);
  EXPECT_EQ(sampler.sample(logits, at(1), {}, 9)->id, alone);
}

TEST(Sampler, PassingOverTokensThatCanNotWinChangesNothing) {
  // The pruned draw over all tokens against the same draw over a candidate list of all.
  std::vector<float> logits(2000);
  for (size_t i = 0; i < logits.size(); ++i)
    logits[i] = float(int((i * 7919) % 1000)) * 0.01f;
  Sampler sampler(2000);
  SamplingParams ranked = at(1);
  ranked.topP = std::nextafter(1.0f, 0.0f);
  int same = 0;
  for (uint64_t i = 0; i < 500; ++i)
    same += sampler.sample(logits, at(1), {}, i)->id == sampler.sample(logits, ranked, {}, i)->id;
  EXPECT_EQ(same, 500);
}

/// The rules as README.md states them, with a sort and no shortcut.
int32_t plainSample(const std::vector<float> &logits, const SamplingParams &p, uint64_t position) {
  std::vector<int32_t> ids(logits.size());
  for (size_t i = 0; i < ids.size(); ++i)
    ids[i] = int32_t(i);
  std::sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) {
    return std::pair(-logits[size_t(a)], a) < std::pair(-logits[size_t(b)], b);
  });
  if (p.topK > 0)
    ids.resize(std::min(ids.size(), size_t(p.topK)));
  double top = logits[size_t(ids[0])], total = 0, sum = 0;
  for (int32_t id : ids)
    total += std::exp(logits[size_t(id)] - top);
  size_t kept = 0;
  while (kept < ids.size() && sum < p.topP * total)
    sum += std::exp(logits[size_t(ids[kept++])] - top);
  ids.resize(kept);
  std::erase_if(ids, [&](int32_t id) { return std::exp(logits[size_t(id)] - top) < p.minP; });
  PositionNoise noise(p.seed, p.stream, position);
  int32_t best = -1;
  double bestScore = 0;
  for (int32_t id : ids) {
    double u = (double(noise.bits(uint32_t(id))) + 0.5) * 0x1p-52;
    double score = (logits[size_t(id)] - top) / p.temperature - fixedLog(-fixedLog(u));
    if (best < 0 || score > bestScore) {
      best = id;
      bestScore = score;
    }
  }
  return best;
}

TEST(Sampler, EqualsThePlainRules) {
  uint64_t state = 99;
  auto uniform = [&] { return double(mix64(++state) >> 11) * 0x1p-53; };
  int same = 0, rounds = 0;
  for (float spread : {0.1f, 2.0f, 8.0f, 60.0f})
    for (int32_t topK : {0, 3, 50})
      for (float topP : {0.05f, 0.5f, 0.93f, 0.9999f})
        for (float minP : {0.0f, 0.07f}) {
          std::vector<float> logits(700);
          for (float &l : logits)
            l = float(uniform() + uniform() + uniform()) * spread;
          SamplingParams p = at(0.9f);
          p.topK = topK;
          p.topP = topP;
          p.minP = minP;
          for (uint64_t i = 0; i < 20; ++i, ++rounds)
            same += sampleOne(logits, p, i) == plainSample(logits, p, i);
        }
  EXPECT_EQ(same, rounds);
}

TEST(Sampler, NotANumberEndsTheRequestWithAnError) {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                    -std::numeric_limits<float>::infinity()})
    for (size_t place : {0u, 20u, 36u}) {
      std::vector<float> logits(37, 1.0f);
      logits[place] = bad;
      Sampler sampler(37);
      Result<SampledToken> token = sampler.sample(logits, SamplingParams(), {}, 12);
      ASSERT_FALSE(token);
      EXPECT_NE(token.status().message().find("position 12"), std::string::npos);
    }
}

TEST(Sampler, TinyTemperaturesAreGreedy) {
  EXPECT_EQ(sampleOne({1, 3, 2}, at(1e-30f)), 1);
  EXPECT_EQ(sampleOne({1, 3, 2}, at(std::numeric_limits<float>::denorm_min())), 1);
}

} // namespace
