// Which tokens a draw may choose among: top-k, typical, top-p, min-p, XTC, mirostat's bound.
#include "runtime/decode/Sampler.h"

#include "runtime/decode/Math.h"
#include "runtime/decode/Noise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace llmrt {
namespace {

constexpr double minusInfinity = -std::numeric_limits<double>::infinity();

} // namespace

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
  // Sorting a vocabulary costs milliseconds. Instead sum up the probability of bands of logits, a
  // quarter wide, from the top down: all of the bands before the one that reaches top-p is kept,
  // and only that one needs an order.
  constexpr size_t bands = 128;
  auto bandOf = [top](float logit) {
    float steps = (top - logit) * 4;
    return steps < float(bands - 1) ? static_cast<size_t>(steps) : bands - 1;
  };
  const ProbabilityMass mass(logits.size(), top);
  uint64_t masses[bands] = {};
  for (float logit : logits)
    masses[bandOf(logit)] += mass.of(logit);
  uint64_t wanted =
      ProbabilityMass::wanted(topP, std::accumulate(masses, masses + bands, uint64_t(0)));
  uint64_t sum = 0;
  size_t last = 0;
  while (last + 1 < bands && sum + masses[last] < wanted)
    sum += masses[last++];

  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i)
    if (bandOf(logits[i]) < last)
      candidates_.push_back({logits[i], static_cast<int32_t>(i)});
  size_t first = candidates_.size();
  for (size_t i = 0; i < logits.size(); ++i)
    if (bandOf(logits[i]) == last)
      candidates_.push_back({logits[i], static_cast<int32_t>(i)});
  std::sort(candidates_.begin() + static_cast<ptrdiff_t>(first), candidates_.end(), before);
  keepUntil(first, sum, wanted, mass);
}

/// Keeps the candidates before \p first, whose mass is \p sum, and of the rest, which is in order,
/// those that are needed to reach \p wanted.
void Sampler::keepUntil(size_t first, uint64_t sum, uint64_t wanted, const ProbabilityMass &mass) {
  size_t kept = first;
  while (kept < candidates_.size() && sum < wanted)
    sum += mass.of(candidates_[kept++].logit);
  candidates_.resize(kept);
}

void Sampler::keepShare(float share, const ProbabilityMass &mass) {
  uint64_t total = 0;
  for (const Candidate &c : candidates_)
    total += mass.of(c.logit);
  keepUntil(0, 0, ProbabilityMass::wanted(share, total), mass);
}

/// Keeps the candidates, all of them in order, whose surprise is closest to what is expected
/// (Meister et al., "Locally typical sampling", 2023), until their probabilities reach \p typicalP.
void Sampler::keepTypical(double typicalP) {
  double total = 0, entropy = 0;
  auto &e = exponentials_;
  for (const Candidate &c : candidates_)
    total += e[size_t(c.id)];
  auto surprise = [&](const Candidate &c) {
    return e[size_t(c.id)] > 0 ? -fixedLog(e[size_t(c.id)] / total)
                               : std::numeric_limits<double>::infinity();
  };
  for (const Candidate &c : candidates_)
    if (e[size_t(c.id)] > 0)
      entropy += e[size_t(c.id)] / total * surprise(c);
  std::sort(candidates_.begin(), candidates_.end(), [&](const Candidate &a, const Candidate &b) {
    double da = std::abs(surprise(a) - entropy), db = std::abs(surprise(b) - entropy);
    return da < db || (da == db && before(a, b));
  });
  size_t kept = 0;
  for (double sum = 0; kept < candidates_.size() && (sum < typicalP * total || kept == 0); ++kept)
    sum += e[size_t(candidates_[kept].id)];
  candidates_.resize(kept);
  std::sort(candidates_.begin(), candidates_.end(), before);
}

/// Of the candidates that are likely enough, keeps the least likely one ("exclude top choices", of
/// text-generation-webui): the list is in order.
void Sampler::dropLikely(const SamplingParams &params) {
  double total = 0;
  for (const Candidate &c : candidates_)
    total += exponentials_[size_t(c.id)];
  size_t likely = 0;
  while (likely < candidates_.size() && exponentials_[size_t(candidates_[likely].id)] >=
                                            static_cast<double>(params.xtcThreshold) * total)
    ++likely;
  if (likely >= 2)
    candidates_.erase(candidates_.begin(), candidates_.begin() + ptrdiff_t(likely - 1));
}

void Sampler::filterRanked(std::span<const float> work, float top, const SamplingParams &params,
                           const SamplingContext &context, uint64_t position) {
  constexpr float never = -std::numeric_limits<float>::infinity();
  PositionNoise noise(params.seed, params.stream, position);
  candidates_.clear();
  for (size_t i = 0; i < work.size(); ++i)
    if (work[i] > never)
      candidates_.push_back({work[i], static_cast<int32_t>(i)});
  std::sort(candidates_.begin(), candidates_.end(), before);
  double scale = params.mirostat ? 1.0 / static_cast<double>(params.temperature) : 1.0;
  for (const Candidate &c : candidates_)
    exponentials_[size_t(c.id)] = fixedExp((static_cast<double>(c.logit) - top) * scale);
  auto total = [&] {
    double sum = 0;
    for (const Candidate &c : candidates_)
      sum += exponentials_[size_t(c.id)];
    return sum;
  };
  if (!params.mirostat) {
    if (params.topK > 0 && candidates_.size() > static_cast<size_t>(params.topK))
      candidates_.resize(static_cast<size_t>(params.topK));
    if (params.typicalP < 1)
      keepTypical(static_cast<double>(params.typicalP));
    if (params.topP < 1)
      keepShare(params.topP, ProbabilityMass(work.size(), top));
    if (params.minP > 0) {
      double floor = candidates_.front().logit + fixedLog(static_cast<double>(params.minP));
      std::erase_if(candidates_, [&](const Candidate &c) { return c.logit < floor; });
    }
    if (params.xtcProbability > 0) {
      // An id that no token has: the coin is not the noise of any of them.
      double coin = static_cast<double>(noise.bits(0xfffffffe)) * 0x1p-52;
      if (coin < static_cast<double>(params.xtcProbability))
        dropLikely(params);
    }
  } else {
    // Mirostat 2 (Basu et al., 2021): tokens whose surprise is above the present bound go; the
    // bound moves so that the surprise of what is drawn tends to tau. In bits.
    double first = std::numeric_limits<double>::quiet_NaN();
    double &bound = context.surprise ? *context.surprise : first;
    if (std::isnan(bound))
      bound = 2 * static_cast<double>(params.mirostatTau);
    double sum = total();
    size_t kept = 1;
    while (kept < candidates_.size()) {
      double p = exponentials_[size_t(candidates_[kept].id)] / sum;
      if (!(p > 0) || -fixedLog(p) / ln2 > bound)
        break;
      ++kept;
    }
    candidates_.resize(kept);
  }
}

void Sampler::filter(std::span<const float> work, float top, const SamplingParams &params,
                     const SamplingContext &context, uint64_t position) {
  if (params.mirostat || params.typicalP < 1 || params.xtcProbability > 0)
    return filterRanked(work, top, params, context, position);
  constexpr float never = -std::numeric_limits<float>::infinity();
  if (params.topK > 0 && static_cast<size_t>(params.topK) < work.size()) {
    collectTopK(work, static_cast<size_t>(params.topK));
    if (params.topP < 1) // of what top-k kept
      keepShare(params.topP, ProbabilityMass(work.size(), top));
  } else if (params.topP < 1) {
    collectNucleus(work, top, params.topP);
  } else {
    candidates_.clear();
    for (size_t i = 0; i < work.size(); ++i)
      candidates_.push_back({work[i], static_cast<int32_t>(i)});
  }
  // min-p compares with the likeliest token, which every filter keeps, so it acts on the logits.
  double floor = params.minP > 0 ? top + fixedLog(static_cast<double>(params.minP)) : minusInfinity;
  std::erase_if(candidates_,
                [&](const Candidate &c) { return c.logit < floor || !(c.logit > never); });
}

} // namespace llmrt
