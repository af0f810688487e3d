#include "runtime/decode/Sampler.h"

#include "runtime/decode/Math.h"
#include "runtime/decode/Noise.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>

namespace llmrt {
namespace {

constexpr double minusInfinity = -std::numeric_limits<double>::infinity();

/// One Gumbel draw at a time: keeps the best of (logit - top) / temperature + noise.
///
/// With u uniform in (0, 1), -log(-log u) has the Gumbel distribution, and the largest of
/// logit + noise is a draw from the softmax (Gumbel-max; Maddison et al. 2014, section 2).
class GumbelMax {
public:
  GumbelMax(const PositionNoise &noise, float top, float temperature)
      : noise_(noise), top_(top), scale_(1.0 / static_cast<double>(temperature)) {}

  void consider(float logit, int32_t id) {
    uint64_t bits = noise_.bits(static_cast<uint32_t>(id));
    double x = (static_cast<double>(logit) - top_) * scale_;
    // 1 - u is exact: u = (bits + 1/2) / 2^52.
    double complement = (static_cast<double>(uint64_t(0xfffffffffffff) - bits) + 0.5) * 0x1p-52;
    // -log u >= 1 - u >= 2^e, so the noise is at most -e ln2: most tokens can't win, and need no
    // logarithm. (A little slack: the two sides are rounded.)
    int64_t e = static_cast<int64_t>(std::bit_cast<uint64_t>(complement) >> 52) - 1023;
    if (x - static_cast<double>(e) * ln2 + 1e-9 < best_)
      return;
    double u = (static_cast<double>(bits) + 0.5) * 0x1p-52;
    double score = x - fixedLog(-fixedLog(u));
    if (score > best_ || (score == best_ && id < id_) || id_ < 0) {
      best_ = score;
      id_ = id;
    }
  }
  int32_t id() const { return id_; }

private:
  const PositionNoise &noise_;
  double top_, scale_;
  double best_ = minusInfinity;
  int32_t id_ = -1;
};

} // namespace

int32_t finiteArgmax(std::span<const float> values) {
  // Two passes over lanes, which the compiler turns into vectors: the largest value and whether
  // all are finite; then the first place that holds it.
  constexpr size_t lanes = 16;
  constexpr uint32_t exponentMask = 0x7f800000;
  float best[lanes];
  uint32_t bad[lanes] = {};
  std::fill_n(best, lanes, -std::numeric_limits<float>::infinity());
  size_t n = values.size(), i = 0;
  auto visit = [&](size_t lane, float v) {
    best[lane] = v > best[lane] ? v : best[lane];
    bad[lane] |= (std::bit_cast<uint32_t>(v) & exponentMask) == exponentMask ? 1u : 0u;
  };
  for (; i + lanes <= n; i += lanes)
    for (size_t lane = 0; lane < lanes; ++lane)
      visit(lane, values[i + lane]);
  for (; i < n; ++i)
    visit(0, values[i]);
  float top = *std::max_element(best, best + lanes);
  if (std::any_of(bad, bad + lanes, [](uint32_t b) { return b != 0; }))
    return -1;
  for (i = 0; i < n; ++i)
    if (values[i] == top)
      return static_cast<int32_t>(i);
  return -1;
}

Sampler::Sampler(int32_t vocabulary)
    : adjusted_(static_cast<size_t>(vocabulary)), exponentials_(static_cast<size_t>(vocabulary)) {
  candidates_.reserve(static_cast<size_t>(vocabulary));
}

void Sampler::applyPenalties(std::span<float> logits, const SamplingParams &params,
                             const TokenHistory &history) const {
  if (params.needsHistory())
    for (int32_t id : history.distinct()) {
      float &logit = logits[static_cast<size_t>(id)];
      // Away from the top on both sides of zero: dividing a negative logit would reward it.
      if (params.repetitionPenalty != 1)
        logit = logit > 0 ? logit / params.repetitionPenalty : logit * params.repetitionPenalty;
      if (uint32_t count = history.outputCount(id)) {
        logit -= params.presencePenalty;
        logit -= params.frequencyPenalty * static_cast<float>(count);
      }
    }
  for (const LogitBias &b : params.logitBias)
    logits[static_cast<size_t>(b.id)] += b.bias;
}

void Sampler::collectTopK(std::span<const float> logits, size_t k) {
  // A heap of the k best so far with the worst of them on top; most logits fail its test at once.
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    Candidate c{logits[i], static_cast<int32_t>(i)};
    if (candidates_.size() < k) {
      candidates_.push_back(c);
      std::push_heap(candidates_.begin(), candidates_.end(), before);
    } else if (before(c, candidates_.front())) {
      std::pop_heap(candidates_.begin(), candidates_.end(), before);
      candidates_.back() = c;
      std::push_heap(candidates_.begin(), candidates_.end(), before);
    }
  }
  std::sort_heap(candidates_.begin(), candidates_.end(), before);
}

double Sampler::exponentials(std::span<const float> logits, float top) {
  // Eight sums, added at the end: a fixed order that vectors can follow.
  constexpr size_t lanes = 8;
  double sums[lanes] = {};
  double *out = exponentials_.data();
  size_t n = logits.size(), i = 0;
  for (; i + lanes <= n; i += lanes)
    for (size_t lane = 0; lane < lanes; ++lane) {
      out[i + lane] = fixedExp(static_cast<double>(logits[i + lane]) - top);
      sums[lane] += out[i + lane];
    }
  for (; i < n; ++i) {
    out[i] = fixedExp(static_cast<double>(logits[i]) - top);
    sums[0] += out[i];
  }
  double total = 0;
  for (double sum : sums)
    total += sum;
  return total;
}

void Sampler::collectNucleus(std::span<const float> logits, float top, float topP) {
  double wanted = static_cast<double>(topP) * exponentials(logits, top);
  // Sorting a vocabulary costs milliseconds. Instead sum up the probability of bands of logits, a
  // quarter wide, from the top down: all of the bands before the one that reaches top-p is kept,
  // and only that one needs an order.
  constexpr size_t bands = 128;
  auto bandOf = [top](float logit) {
    float steps = (top - logit) * 4;
    return steps < float(bands - 1) ? static_cast<size_t>(steps) : bands - 1;
  };
  double mass[bands] = {};
  for (size_t i = 0; i < logits.size(); ++i)
    mass[bandOf(logits[i])] += exponentials_[i];
  double sum = 0;
  size_t last = 0;
  while (last + 1 < bands && sum + mass[last] < wanted)
    sum += mass[last++];

  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i)
    if (bandOf(logits[i]) < last)
      candidates_.push_back({logits[i], static_cast<int32_t>(i)});
  size_t first = candidates_.size();
  for (size_t i = 0; i < logits.size(); ++i)
    if (bandOf(logits[i]) == last)
      candidates_.push_back({logits[i], static_cast<int32_t>(i)});
  std::sort(candidates_.begin() + static_cast<ptrdiff_t>(first), candidates_.end(), before);
  keepUntil(first, sum, wanted);
}

/// Keeps the candidates before \p first, whose exponentials add up to \p sum, and of the rest,
/// which is in order, those that are needed to reach \p wanted.
void Sampler::keepUntil(size_t first, double sum, double wanted) {
  size_t kept = first;
  while (kept < candidates_.size() && (sum < wanted || kept == 0))
    sum += exponentials_[static_cast<size_t>(candidates_[kept++].id)];
  candidates_.resize(kept);
}

void Sampler::fillLogprobs(std::span<const float> logits, const SamplingParams &params,
                           SampledToken &token) {
  collectTopK(logits,
              std::max<size_t>(1, std::min<size_t>(size_t(params.logprobs), logits.size())));
  float top = candidates_.front().logit;
  double logTotal = fixedLog(exponentials(logits, top));
  auto logprob = [&](float logit) {
    return static_cast<float>((static_cast<double>(logit) - top) - logTotal);
  };
  token.logprob = logprob(logits[static_cast<size_t>(token.id)]);
  token.topCount = std::min<int32_t>(params.logprobs, static_cast<int32_t>(candidates_.size()));
  for (int32_t i = 0; i < token.topCount; ++i)
    token.top[size_t(i)] = {candidates_[size_t(i)].id, logprob(candidates_[size_t(i)].logit)};
}

Result<SampledToken> Sampler::sample(std::span<const float> logits, const SamplingParams &params,
                                     const TokenHistory &history, uint64_t position) {
  assert(logits.size() == adjusted_.size() && "one logit a token of the vocabulary");
  SampledToken token;
  int32_t best = finiteArgmax(logits);
  if (best < 0)
    return internalError("the logits at position " + std::to_string(position) +
                         " hold NaN or an infinity; the model's weights or this prompt overflow");
  std::span<const float> work = logits;
  if (params.changesLogits()) {
    std::copy(logits.begin(), logits.end(), adjusted_.begin());
    applyPenalties(adjusted_, params, history);
    work = adjusted_;
    best = finiteArgmax(work);
    if (best < 0)
      return invalidArgument("the penalties make a logit at position " + std::to_string(position) +
                             " infinite; use smaller ones");
  }

  if (params.temperature == 0 || params.topK == 1 || params.topP == 0) {
    token.id = best;
  } else {
    float top = work[static_cast<size_t>(best)];
    PositionNoise noise(params.seed, params.stream, position);
    GumbelMax draw(noise, top, params.temperature);
    // min-p compares with the likeliest token, which every filter keeps, so it acts on the logits.
    double floor =
        params.minP > 0 ? top + fixedLog(static_cast<double>(params.minP)) : minusInfinity;
    bool limitK = params.topK > 0 && static_cast<size_t>(params.topK) < work.size();
    if (!limitK && params.topP >= 1) {
      // Nothing to rank. The likeliest first: a good bound early lets most others be passed over.
      draw.consider(top, best);
      for (size_t i = 0; i < work.size(); ++i)
        if (work[i] >= floor)
          draw.consider(work[i], static_cast<int32_t>(i));
    } else {
      if (limitK) {
        collectTopK(work, static_cast<size_t>(params.topK));
        if (params.topP < 1) {
          double total = 0; // of what top-k kept
          for (const Candidate &c : candidates_)
            total += exponentials_[static_cast<size_t>(c.id)] =
                fixedExp(static_cast<double>(c.logit) - top);
          keepUntil(0, 0, static_cast<double>(params.topP) * total);
        }
      } else {
        collectNucleus(work, top, params.topP);
      }
      for (const Candidate &c : candidates_)
        if (c.logit >= floor)
          draw.consider(c.logit, c.id);
    }
    token.id = draw.id();
  }
  if (params.logprobs >= 0)
    fillLogprobs(logits, params, token);
  return token;
}

} // namespace llmrt
