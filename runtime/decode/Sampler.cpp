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

int32_t maskedArgmax(std::span<const float> values) {
  float top = -std::numeric_limits<float>::infinity();
  int32_t best = -1;
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] > top)
      top = values[i], best = static_cast<int32_t>(i);
  return best;
}

Sampler::Sampler(int32_t vocabulary)
    : adjusted_(static_cast<size_t>(vocabulary)), exponentials_(static_cast<size_t>(vocabulary)),
      repeats_(static_cast<size_t>(vocabulary)) {
  repeated_.reserve(static_cast<size_t>(vocabulary));
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
}

/// The longest repeat that counts; a longer one is penalised as much.
static constexpr int64_t longestDryRepeat = 256;

void Sampler::applyDry(std::span<float> logits, const SamplingParams &params,
                       std::span<const int32_t> tokens) {
  if (params.dryLastN > 0 && tokens.size() > static_cast<size_t>(params.dryLastN))
    tokens = tokens.last(static_cast<size_t>(params.dryLastN));
  auto breaks = [&](int32_t id) {
    return std::find(params.dryBreakers.begin(), params.dryBreakers.end(), id) !=
           params.dryBreakers.end();
  };
  int64_t n = static_cast<int64_t>(tokens.size());
  if (n < 2 || breaks(tokens.back()))
    return;
  // Where the end of the text stood before, the token that followed would make it a longer repeat.
  for (int64_t end = n - 2; end >= 0; --end) {
    if (tokens[size_t(end)] != tokens.back())
      continue;
    int64_t length = 1;
    while (length <= end && length < longestDryRepeat &&
           tokens[size_t(end - length)] == tokens[size_t(n - 1 - length)] &&
           !breaks(tokens[size_t(end - length)]))
      ++length;
    int32_t next = tokens[size_t(end + 1)];
    if (next >= static_cast<int32_t>(logits.size()) || breaks(next))
      continue;
    int32_t &known = repeats_[size_t(next)];
    if (known == 0)
      repeated_.push_back(next);
    known = std::max(known, static_cast<int32_t>(length));
  }
  for (int32_t id : repeated_) {
    int32_t beyond = repeats_[size_t(id)] - params.dryAllowedLength;
    repeats_[size_t(id)] = 0;
    if (beyond < 0)
      continue;
    // Finite in any case: a logit of minus a large number is as good as none.
    double power = fixedExp(fixedLog(static_cast<double>(params.dryBase)) * beyond);
    logits[size_t(id)] -=
        static_cast<float>(std::min(static_cast<double>(params.dryMultiplier) * power, 1e6));
  }
  repeated_.clear();
}

void Sampler::applyMasks(std::span<float> logits, const SamplingParams &params,
                         const SamplingContext &context) {
  constexpr float never = -std::numeric_limits<float>::infinity();
  // Kept in work memory that is free now.
  size_t kept = std::min(context.alsoAllowed.size(), exponentials_.size());
  auto keptId = [&](size_t i) { return static_cast<size_t>(context.alsoAllowed[i]); };
  for (size_t i = 0; i < kept; ++i)
    if (keptId(i) < logits.size())
      exponentials_[i] = static_cast<double>(logits[keptId(i)]);
  for (size_t word = 0; word < context.allowed.size(); ++word) {
    uint64_t bits = context.allowed[word];
    size_t first = word * 64, count = std::min<size_t>(64, logits.size() - first);
    if (bits != ~uint64_t(0))
      for (size_t i = 0; i < count; ++i)
        logits[first + i] = bits >> i & 1 ? logits[first + i] : never;
  }
  for (size_t i = 0; i < kept; ++i)
    if (keptId(i) < logits.size())
      logits[keptId(i)] = static_cast<float>(exponentials_[i]);
  for (std::span<const int32_t> ids : {context.banned, context.alsoBanned})
    for (int32_t id : ids)
      if (id < static_cast<int32_t>(logits.size()))
        logits[size_t(id)] = never;
  std::span<const int32_t> output =
      context.tokens.subspan(static_cast<size_t>(context.promptTokens));
  for (const std::vector<int32_t> &word : params.badWords)
    if (word.size() - 1 <= output.size() &&
        std::equal(word.begin(), word.end() - 1, output.end() - ptrdiff_t(word.size() - 1)))
      logits[size_t(word.back())] = never;
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
  keepUntil(0, 0, typicalP * total);
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
      keepUntil(0, 0, static_cast<double>(params.topP) * total());
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
    if (params.topP < 1) {
      double total = 0; // of what top-k kept
      for (const Candidate &c : candidates_)
        total += exponentials_[static_cast<size_t>(c.id)] =
            fixedExp(static_cast<double>(c.logit) - top);
      keepUntil(0, 0, static_cast<double>(params.topP) * total);
    }
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

int32_t Sampler::choose(std::span<const float> work, int32_t best, const SamplingParams &params,
                        const SamplingContext &context, uint64_t position) {
  if (isGreedy(params))
    return best;
  float top = work[static_cast<size_t>(best)];
  PositionNoise noise(params.seed, params.stream, position);
  GumbelMax draw(noise, top, params.temperature);
  bool ranks = params.mirostat || params.typicalP < 1 || params.xtcProbability > 0 ||
               params.topP < 1 ||
               (params.topK > 0 && static_cast<size_t>(params.topK) < work.size());
  if (!ranks) {
    // Nothing to rank. The likeliest first: a good bound early lets most others be passed over.
    constexpr float never = -std::numeric_limits<float>::infinity();
    double floor =
        params.minP > 0 ? top + fixedLog(static_cast<double>(params.minP)) : minusInfinity;
    draw.consider(top, best);
    for (size_t i = 0; i < work.size(); ++i)
      if (work[i] >= floor && work[i] > never)
        draw.consider(work[i], static_cast<int32_t>(i));
    return draw.id();
  }
  filter(work, top, params, context, position);
  for (const Candidate &c : candidates_)
    draw.consider(c.logit, c.id);
  if (params.mirostat && context.surprise) {
    double total = 0;
    for (const Candidate &c : candidates_)
      total += exponentials_[size_t(c.id)];
    double p = exponentials_[size_t(draw.id())] / total;
    *context.surprise -= static_cast<double>(params.mirostatEta) *
                         (-fixedLog(p) / ln2 - static_cast<double>(params.mirostatTau));
  }
  return draw.id();
}

Result<Sampler::Prepared> Sampler::prepare(std::span<const float> logits,
                                           const SamplingParams &params, uint64_t position,
                                           const SamplingContext &context) {
  assert(logits.size() == adjusted_.size() && "one logit a token of the vocabulary");
  int32_t best = finiteArgmax(logits);
  if (best < 0)
    return internalError("the logits at position " + std::to_string(position) +
                         " hold NaN or an infinity; the model's weights or this prompt overflow");
  bool masks = !context.banned.empty() || !context.alsoBanned.empty() || !context.allowed.empty() ||
               !params.badWords.empty();
  if (!params.changesLogits() && !masks)
    return Prepared{logits, best};
  std::copy(logits.begin(), logits.end(), adjusted_.begin());
  if (params.needsHistory())
    applyPenalties(adjusted_, params, *context.history);
  if (params.usesDry())
    applyDry(adjusted_, params, context.tokens);
  for (const LogitBias &b : params.logitBias)
    adjusted_[static_cast<size_t>(b.id)] += b.bias;
  best = finiteArgmax(adjusted_);
  if (best < 0)
    return invalidArgument("the penalties make a logit at position " + std::to_string(position) +
                           " infinite; use smaller ones");
  if (masks) {
    applyMasks(adjusted_, params, context);
    best = maskedArgmax(adjusted_);
    if (best < 0)
      return invalidArgument("no token may stand at position " + std::to_string(position) +
                             ": grammar, min_tokens and bad_words together forbid all");
  }
  return Prepared{adjusted_, best};
}

Result<SampledToken> Sampler::sample(std::span<const float> logits, const SamplingParams &params,
                                     uint64_t position, const SamplingContext &context) {
  LLMRT_ASSIGN_OR_RETURN(Prepared prepared, prepare(logits, params, position, context));
  SampledToken token;
  token.id = choose(prepared.logits, prepared.best, params, context, position);
  if (params.logprobs >= 0)
    fillLogprobs(logits, params, token);
  return token;
}

Status Sampler::distribution(std::span<const float> logits, const SamplingParams &params,
                             uint64_t position, const SamplingContext &context,
                             std::vector<TokenProbability> &out) {
  LLMRT_ASSIGN_OR_RETURN(Prepared prepared, prepare(logits, params, position, context));
  if (isGreedy(params)) {
    out.push_back({prepared.best, 1});
    return Status::ok();
  }
  float top = prepared.logits[static_cast<size_t>(prepared.best)];
  filter(prepared.logits, top, params, context, position);
  double scale = 1.0 / static_cast<double>(params.temperature), total = 0;
  size_t first = out.size();
  for (const Candidate &c : candidates_) {
    double value = fixedExp((static_cast<double>(c.logit) - top) * scale);
    out.push_back({c.id, value});
    total += value;
  }
  for (size_t i = first; i < out.size(); ++i)
    out[i].probability /= total;
  return Status::ok();
}

Result<SampledToken> Sampler::sampleClassical(std::span<const float> logits,
                                              const SamplingParams &params, uint64_t position,
                                              const SamplingContext &context, int32_t drafted,
                                              std::span<const TokenProbability> draft) {
  target_.clear();
  LLMRT_RETURN_IF_ERROR(distribution(logits, params, position, context, target_));
  PositionNoise noise(params.seed, params.stream, position);
  // Ids that no token has: independent of the noise by which a draft model drew.
  auto uniform = [&](uint32_t id) { return (static_cast<double>(noise.bits(id)) + 0.5) * 0x1p-52; };
  SampledToken token;
  double q = draft.empty() ? 1 : 0, p = 0;
  for (const TokenProbability &t : draft)
    q = t.id == drafted ? t.probability : q;
  for (const TokenProbability &t : target_)
    p = t.id == drafted ? t.probability : p;
  if (drafted >= 0 && uniform(0xfffffffd) * q < p) {
    token.id = drafted;
  } else {
    double total = 0;
    if (drafted >= 0) { // max(p - q, 0)
      draftShare_.resize(adjusted_.size());
      for (const TokenProbability &t : draft)
        draftShare_[size_t(t.id)] = t.probability;
      if (draft.empty())
        draftShare_[size_t(drafted)] = 1;
      for (TokenProbability &t : target_)
        t.probability = std::max(t.probability - draftShare_[size_t(t.id)], 0.0);
      for (const TokenProbability &t : draft)
        draftShare_[size_t(t.id)] = 0;
      draftShare_[size_t(drafted)] = 0;
    }
    for (const TokenProbability &t : target_)
      total += t.probability;
    double left = uniform(0xfffffffc) * total;
    // Where rounding left nothing, the likeliest of the target stands for it.
    token.id = target_.front().id;
    for (const TokenProbability &t : target_)
      if (t.probability > 0) {
        token.id = t.id;
        if ((left -= t.probability) < 0)
          break;
      }
  }
  if (params.logprobs >= 0)
    fillLogprobs(logits, params, token);
  return token;
}

} // namespace llmrt
