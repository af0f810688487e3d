//===- SamplingParams.h - how a request's tokens are chosen -----------------===//
#ifndef LLMRT_DECODE_SAMPLINGPARAMS_H
#define LLMRT_DECODE_SAMPLINGPARAMS_H

#include "runtime/support/Status.h"

#include <cstdint>
#include <vector>

namespace llmrt {

struct LogitBias {
  int32_t id;
  float bias; ///< -100 .. 100, added to the logit
};

/// The parameters in the order in which they act; README.md of this folder defines each. The
/// defaults are greedy decoding of the model's own logits.
struct SamplingParams {
  float repetitionPenalty = 1;  ///< above 0; 1: off. Over prompt and output, once a distinct token
  float presencePenalty = 0;    ///< -2 .. 2, over the output
  float frequencyPenalty = 0;   ///< -2 .. 2 for each time a token stands in the output
  float dryMultiplier = 0;      ///< 0: off. Against repeating what stood in the text before
  float dryBase = 1.75f;        ///< 1 or more
  int32_t dryAllowedLength = 2; ///< tokens that may repeat for free
  int32_t dryLastN = -1;        ///< tokens looked back at; -1: all, 0: off
  std::vector<int32_t> dryBreakers; ///< tokens that end a repeat
  std::vector<LogitBias> logitBias;
  /// No end token and no stop id before so many tokens of output.
  int32_t minTokens = 0;
  /// Runs of tokens that may not appear in the output.
  std::vector<std::vector<int32_t>> badWords;
  int32_t topK = 0;          ///< 0 and -1: off
  float typicalP = 1;        ///< 0 .. 1; 1: off
  float topP = 1;            ///< 0 .. 1; 1: off, 0: the top token only
  float minP = 0;            ///< 0 .. 1; 0: off
  float xtcProbability = 0;  ///< 0 .. 1; 0: off
  float xtcThreshold = 0.1f; ///< 0 .. 1; above 0.5 nothing happens
  float temperature = 0;     ///< 0: greedy
  int32_t mirostat = 0;      ///< 2: instead of the filters from top-k to XTC; 0: off
  float mirostatTau = 5, mirostatEta = 0.1f;
  uint64_t seed = 0;
  uint32_t stream = 0;   ///< number of the choice where one request has several
  int32_t logprobs = -1; ///< -1: none; n: of the chosen token and the n likeliest

  bool usesDry() const { return dryMultiplier != 0 && dryLastN != 0; }
  bool changesLogits() const {
    return needsHistory() || usesDry() || !logitBias.empty() || !badWords.empty();
  }
  bool needsHistory() const {
    return repetitionPenalty != 1 || presencePenalty != 0 || frequencyPenalty != 0;
  }
};

/// The most likeliest tokens that a request can ask for.
inline constexpr int32_t maxLogprobs = 20;

/// Checks every value; an error names the parameter, its value and what is allowed. \p vocabulary
/// bounds the ids of logitBias.
Status validate(const SamplingParams &params, int32_t vocabulary);

} // namespace llmrt

#endif // LLMRT_DECODE_SAMPLINGPARAMS_H
