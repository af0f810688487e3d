//===- Sampler.h - from a row of logits to a token --------------------------===//
//
// Order: repetition, presence, frequency penalties, logit bias, top-k, top-p, min-p, temperature,
// then a Gumbel-max draw (README.md defines each step). Equal logits rank by the lower id. All
// arithmetic is ours (Math.h), so a seed means the same text on every machine.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_DECODE_SAMPLER_H
#define LLMRT_DECODE_SAMPLER_H

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

/// Work memory for one row at a time, shared by all requests of an engine; sample() allocates
/// nothing.
class Sampler {
public:
  explicit Sampler(int32_t vocabulary);

  /// Chooses the token at \p position (of the sequence, prompt included) from \p logits, one a
  /// token of the vocabulary; rows of the matrix beyond the tokenizer's ids are not passed.
  /// \p history may be empty unless params.needsHistory(). NaN or an infinity is an error.
  Result<SampledToken> sample(std::span<const float> logits, const SamplingParams &params,
                              const TokenHistory &history, uint64_t position);

private:
  struct Candidate {
    float logit;
    int32_t id;
  };
  static bool before(const Candidate &a, const Candidate &b) {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
  }
  void applyPenalties(std::span<float> logits, const SamplingParams &params,
                      const TokenHistory &history) const;
  void collectTopK(std::span<const float> logits, size_t k);
  void collectNucleus(std::span<const float> logits, float top, float topP);
  void keepUntil(size_t first, double sum, double wanted);
  double exponentials(std::span<const float> logits, float top);
  void fillLogprobs(std::span<const float> logits, const SamplingParams &params,
                    SampledToken &token);

  std::vector<float> adjusted_;       ///< [vocabulary] after penalties and bias
  std::vector<double> exponentials_;  ///< [vocabulary] e^(logit - top)
  std::vector<Candidate> candidates_; ///< survivors of top-k and top-p, capacity vocabulary
};

/// The index of the largest value, the lowest one of equals; -1 if any value is NaN or infinite.
int32_t finiteArgmax(std::span<const float> values);

} // namespace llmrt

#endif // LLMRT_DECODE_SAMPLER_H
