//===- Sampler.h - from a row of logits to a token --------------------------===//
//
// Order: repetition, presence, frequency penalties, DRY, logit bias, masks, top-k, typical, top-p,
// min-p, XTC, temperature or mirostat, then a Gumbel-max draw (README.md defines each step). Equal
// logits rank by the lower id. All arithmetic is ours (Math.h), so a seed means the same text on
// every machine.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_DECODE_SAMPLER_H
#define LLMRT_DECODE_SAMPLER_H

#include "runtime/decode/ProbabilityMass.h"
#include "runtime/decode/SamplingParams.h"
#include "runtime/decode/TokenHistory.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace llmrt {

struct TokenLogprob {
  int32_t id = -1;
  float logprob = 0; ///< natural logarithm
};

struct SampledToken {
  int32_t id = -1;
  /// Of the model's own distribution, before penalties and filters, so always finite.
  float logprob = 0;
  std::array<TokenLogprob, maxLogprobs> top; ///< likeliest first, ties by lower id
  int32_t topCount = 0;                      ///< 0 unless logprobs were asked for
};

/// A token that the filters left, with its share at the request's temperature.
struct TokenProbability {
  int32_t id;
  double probability;
};

/// What a draw depends on beside the logits and the parameters.
struct SamplingContext {
  const TokenHistory *history = nullptr; ///< where params.needsHistory()
  std::span<const int32_t> tokens;       ///< of prompt and output, for DRY and bad words
  int64_t promptTokens = 0;              ///< of them
  /// Ids that may not be drawn now; they need no order.
  std::span<const int32_t> banned, alsoBanned;
  /// Bit id % 64 of word id / 64: the token may be drawn. Empty: all may.
  std::span<const uint64_t> allowed;
  /// Ids that may be drawn whatever \c allowed says: end tokens of a complete text.
  std::span<const int32_t> alsoAllowed;
  /// Of mirostat; kept from draw to draw of one sequence, NaN before the first.
  double *surprise = nullptr;
};

/// Work memory for one row at a time, shared by all requests of an engine; sample() allocates
/// nothing.
class Sampler {
public:
  explicit Sampler(int32_t vocabulary);

  /// Chooses the token at \p position (of the sequence, prompt included) from \p logits, one a
  /// token of the vocabulary; rows of the matrix beyond the tokenizer's ids are not passed.
  /// \p history may be empty unless params.needsHistory(). NaN or an infinity is an error.
  Result<SampledToken> sample(std::span<const float> logits, const SamplingParams &params,
                              const TokenHistory &history, uint64_t position) {
    SamplingContext context;
    context.history = &history;
    return sample(logits, params, position, context);
  }
  /// The same with all that a request can ask for. An error too where nothing may be drawn.
  Result<SampledToken> sample(std::span<const float> logits, const SamplingParams &params,
                              uint64_t position, const SamplingContext &context);

  /// The classical rule of speculative sampling (Leviathan et al. 2023, Chen et al. 2023): \p
  /// drafted, drawn from \p draft, is taken with probability p / q; else the token is drawn from
  /// the positive part of p - q. The distribution is sample()'s, the tokens of a seed are not.
  /// Without \p draft the draft was certain of its token; with \p drafted below 0 there was none.
  Result<SampledToken> sampleClassical(std::span<const float> logits, const SamplingParams &params,
                                       uint64_t position, const SamplingContext &context,
                                       int32_t drafted, std::span<const TokenProbability> draft);
  /// What sample() would report of token \p id with \p logprobs of the likeliest ones beside it.
  Result<SampledToken> score(std::span<const float> logits, int32_t id, int32_t logprobs,
                             uint64_t position);
  /// The \p count likeliest tokens of the model's own distribution, likeliest first, ties by lower
  /// id; all where there are fewer.
  Status likeliest(std::span<const float> logits, size_t count, uint64_t position,
                   std::vector<TokenLogprob> &out);
  /// Appends what sample() draws from: not for mirostat, whose bound moves with the draw.
  Status distribution(std::span<const float> logits, const SamplingParams &params,
                      uint64_t position, const SamplingContext &context,
                      std::vector<TokenProbability> &out);

  /// The largest logit is drawn, whatever the noise.
  static bool isGreedy(const SamplingParams &params) {
    return params.temperature == 0 || (!params.mirostat && (params.topK == 1 || params.topP == 0));
  }
  /// The errors of sample(): logits with NaN or an infinity; everything is forbidden.
  static Status notFinite(uint64_t position);
  static Status allForbidden(uint64_t position);

private:
  /// Logits after penalties and masks, and the largest of them.
  struct Prepared {
    std::span<const float> logits;
    int32_t best;
  };
  Result<Prepared> prepare(std::span<const float> logits, const SamplingParams &params,
                           uint64_t position, const SamplingContext &context);
  struct Candidate {
    float logit;
    int32_t id;
  };
  static bool before(const Candidate &a, const Candidate &b) {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
  }
  void applyPenalties(std::span<float> logits, const SamplingParams &params,
                      const TokenHistory &history) const;
  void applyDry(std::span<float> logits, const SamplingParams &params,
                std::span<const int32_t> tokens);
  /// Puts minus infinity where the context or the bad words forbid a token.
  void applyMasks(std::span<float> logits, const SamplingParams &params,
                  const SamplingContext &context);
  int32_t choose(std::span<const float> work, int32_t best, const SamplingParams &params,
                 const SamplingContext &context, uint64_t position);
  /// Puts what the filters leave into candidates_.
  void filter(std::span<const float> work, float top, const SamplingParams &params,
              const SamplingContext &context, uint64_t position);
  void filterRanked(std::span<const float> work, float top, const SamplingParams &params,
                    const SamplingContext &context, uint64_t position);
  void keepTypical(double typicalP);
  void dropLikely(const SamplingParams &params);
  void collectTopK(std::span<const float> logits, size_t k);
  void collectNucleus(std::span<const float> logits, float top, float topP);
  void keepUntil(size_t first, uint64_t sum, uint64_t wanted, const ProbabilityMass &mass);
  /// Of the candidates, which are in order, the first ones with \p share of their mass.
  void keepShare(float share, const ProbabilityMass &mass);
  double exponentials(std::span<const float> logits, float top);
  void fillLogprobs(std::span<const float> logits, int32_t logprobs, SampledToken &token);

  std::vector<float> adjusted_;          ///< [vocabulary] after penalties and bias
  std::vector<double> exponentials_;     ///< [vocabulary] e^(logit - top)
  std::vector<Candidate> candidates_;    ///< survivors of top-k and top-p, capacity vocabulary
  std::vector<TokenProbability> target_; ///< of the classical rule
  std::vector<double> draftShare_;       ///< [vocabulary] of the classical rule, else zero
  std::vector<int32_t> repeats_;  ///< [vocabulary] length of the repeat that a token goes on with
  std::vector<int32_t> repeated_; ///< those with one
};

/// The index of the largest value, the lowest one of equals, minus infinities left out; -1 if there
/// is no other value.
int32_t maskedArgmax(std::span<const float> values);

/// The index of the largest value, the lowest one of equals; -1 if any value is NaN or infinite.
int32_t finiteArgmax(std::span<const float> values);

} // namespace llmrt

#endif // LLMRT_DECODE_SAMPLER_H
