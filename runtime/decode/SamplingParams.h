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
  float repetitionPenalty = 1; ///< above 0; 1: off. Over prompt and output, once a distinct token
  float presencePenalty = 0;   ///< -2 .. 2, over the output
  float frequencyPenalty = 0;  ///< -2 .. 2 for each time a token stands in the output
  std::vector<LogitBias> logitBias;
  int32_t topK = 0;      ///< 0 and -1: off
  float topP = 1;        ///< 0 .. 1; 1: off, 0: the top token only
  float minP = 0;        ///< 0 .. 1; 0: off
  float temperature = 0; ///< 0: greedy
  uint64_t seed = 0;
  uint32_t stream = 0;   ///< number of the choice where one request has several
  int32_t logprobs = -1; ///< -1: none; n: of the chosen token and the n likeliest

  bool changesLogits() const {
    return repetitionPenalty != 1 || presencePenalty != 0 || frequencyPenalty != 0 ||
           !logitBias.empty();
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
