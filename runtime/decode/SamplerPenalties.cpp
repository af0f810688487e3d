// What changes logits before anything is ranked: penalties, DRY, masks.
#include "runtime/decode/Sampler.h"

#include "runtime/decode/Math.h"

#include <algorithm>
#include <limits>

namespace llmrt {

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

} // namespace llmrt
