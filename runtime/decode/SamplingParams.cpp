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

constexpr size_t maxBadWords = 1024;

Status checkIds(const std::vector<int32_t> &ids, int32_t vocabulary, const char *name) {
  for (int32_t id : ids)
    if (id < 0 || id >= vocabulary)
      return invalidArgument(std::string(name) + " names token " + std::to_string(id) +
                             "; ids go from 0 to " + std::to_string(vocabulary - 1));
  return Status::ok();
}

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
  if (!within(p.typicalP, 0, 1))
    return outOfRange("typical_p", p.typicalP, "from 0 to 1 (1 is off)");
  if (!within(p.xtcProbability, 0, 1))
    return outOfRange("xtc_probability", p.xtcProbability, "from 0 to 1 (0 is off)");
  if (!within(p.xtcThreshold, 0, 1))
    return outOfRange("xtc_threshold", p.xtcThreshold, "from 0 to 1");
  if (!within(p.dryMultiplier, 0, 100))
    return outOfRange("dry_multiplier", p.dryMultiplier, "from 0 (off) to 100");
  if (!within(p.dryBase, 1, 100))
    return outOfRange("dry_base", p.dryBase, "from 1 to 100");
  if (p.dryAllowedLength < 0)
    return outOfRange("dry_allowed_length", p.dryAllowedLength, "0 or more");
  if (p.dryLastN < -1)
    return outOfRange("dry_penalty_last_n", p.dryLastN, "a count, 0 (off) or -1 (all)");
  if (p.mirostat != 0 && p.mirostat != 2)
    return outOfRange("mirostat", p.mirostat, "0 (off) or 2");
  if (p.mirostat && !(p.mirostatTau > 0 && p.mirostatTau <= 100))
    return outOfRange("mirostat_tau", p.mirostatTau, "above 0, up to 100");
  if (p.mirostat && !(p.mirostatEta > 0 && p.mirostatEta <= 1))
    return outOfRange("mirostat_eta", p.mirostatEta, "above 0, up to 1");
  if (p.minTokens < 0)
    return outOfRange("min_tokens", p.minTokens, "0 or more");
  LLMRT_RETURN_IF_ERROR(checkIds(p.dryBreakers, vocabulary, "dry_sequence_breakers"));
  if (p.badWords.size() > maxBadWords)
    return outOfRange("the number of bad_words", static_cast<double>(p.badWords.size()),
                      "at most 1024");
  for (const std::vector<int32_t> &word : p.badWords) {
    if (word.empty())
      return invalidArgument("one of the bad_words has no tokens");
    LLMRT_RETURN_IF_ERROR(checkIds(word, vocabulary, "bad_words"));
  }
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
