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

void Sampler::fillLogprobs(std::span<const float> logits, int32_t logprobs, SampledToken &token) {
  collectTopK(logits, std::max<size_t>(1, std::min<size_t>(size_t(logprobs), logits.size())));
  float top = candidates_.front().logit;
  double logTotal = fixedLog(exponentials(logits, top));
  auto logprob = [&](float logit) {
    return static_cast<float>((static_cast<double>(logit) - top) - logTotal);
  };
  token.logprob = logprob(logits[static_cast<size_t>(token.id)]);
  token.topCount = std::min<int32_t>(logprobs, static_cast<int32_t>(candidates_.size()));
  for (int32_t i = 0; i < token.topCount; ++i)
    token.top[size_t(i)] = {candidates_[size_t(i)].id, logprob(candidates_[size_t(i)].logit)};
}

Result<SampledToken> Sampler::score(std::span<const float> logits, int32_t id, int32_t logprobs,
                                    uint64_t position) {
  SamplingParams plain;
  LLMRT_RETURN_IF_ERROR(prepare(logits, plain, position, {}).status());
  SampledToken token;
  token.id = id;
  fillLogprobs(logits, logprobs, token);
  return token;
}

Status Sampler::likeliest(std::span<const float> logits, size_t count, uint64_t position,
                          std::vector<TokenLogprob> &out) {
  out.clear();
  LLMRT_ASSIGN_OR_RETURN(Prepared prepared, prepare(logits, SamplingParams(), position, {}));
  float top = logits[static_cast<size_t>(prepared.best)];
  double logTotal = fixedLog(exponentials(logits, top));
  collectTopK(logits, std::min(count, logits.size()));
  for (const Candidate &c : candidates_)
    out.push_back({c.id, static_cast<float>((static_cast<double>(c.logit) - top) - logTotal)});
  return Status::ok();
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

Status Sampler::notFinite(uint64_t position) {
  return internalError("the logits at position " + std::to_string(position) +
                       " hold NaN or an infinity; the model's weights or this prompt overflow");
}

Status Sampler::allForbidden(uint64_t position) {
  return invalidArgument("no token may stand at position " + std::to_string(position) +
                         ": grammar, min_tokens and bad_words together forbid all");
}

Result<Sampler::Prepared> Sampler::prepare(std::span<const float> logits,
                                           const SamplingParams &params, uint64_t position,
                                           const SamplingContext &context) {
  assert(logits.size() == adjusted_.size() && "one logit a token of the vocabulary");
  int32_t best = finiteArgmax(logits);
  if (best < 0)
    return notFinite(position);
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
      return allForbidden(position);
  }
  return Prepared{adjusted_, best};
}

Result<SampledToken> Sampler::sample(std::span<const float> logits, const SamplingParams &params,
                                     uint64_t position, const SamplingContext &context) {
  LLMRT_ASSIGN_OR_RETURN(Prepared prepared, prepare(logits, params, position, context));
  SampledToken token;
  token.id = choose(prepared.logits, prepared.best, params, context, position);
  if (params.logprobs >= 0)
    fillLogprobs(logits, params.logprobs, token);
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
    fillLogprobs(logits, params.logprobs, token);
  return token;
}

} // namespace llmrt
