#include "runtime/decode/SamplingParams.h"

#include <cmath>
#include <cstdio>

namespace llmrt {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", value);
  return text;
}

Status outOfRange(const char *name, double value, const char *allowed) {
  return invalidArgument(std::string(name) + " is " + number(value) + "; it must be " + allowed);
}

bool within(float value, float low, float high) { return value >= low && value <= high; }

} // namespace

Status validate(const SamplingParams &p, int32_t vocabulary) {
  // Every comparison is false for NaN.
  if (!(p.temperature >= 0 && std::isfinite(p.temperature)))
    return outOfRange("temperature", p.temperature, "0 (greedy) or more");
  if (!within(p.topP, 0, 1))
    return outOfRange("top_p", p.topP, "from 0 to 1");
  if (!within(p.minP, 0, 1))
    return outOfRange("min_p", p.minP, "from 0 to 1");
  if (p.topK < -1)
    return outOfRange("top_k", p.topK, "a count, or 0 or -1 for no limit");
  if (!(p.repetitionPenalty > 0 && std::isfinite(p.repetitionPenalty)))
    return outOfRange("repetition_penalty", p.repetitionPenalty, "above 0 (1 is off)");
  if (!within(p.presencePenalty, -2, 2))
    return outOfRange("presence_penalty", p.presencePenalty, "from -2 to 2");
  if (!within(p.frequencyPenalty, -2, 2))
    return outOfRange("frequency_penalty", p.frequencyPenalty, "from -2 to 2");
  if (p.logprobs < -1 || p.logprobs > maxLogprobs)
    return outOfRange("logprobs", p.logprobs, "from 0 to 20");
  for (const LogitBias &b : p.logitBias) {
    if (b.id < 0 || b.id >= vocabulary)
      return invalidArgument("logit_bias names token " + std::to_string(b.id) +
                             "; ids go from 0 to " + std::to_string(vocabulary - 1));
    if (!within(b.bias, -100, 100))
      return outOfRange("logit_bias", b.bias, "from -100 to 100");
  }
  return Status::ok();
}

} // namespace llmrt
