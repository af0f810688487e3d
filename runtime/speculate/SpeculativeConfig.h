//===- SpeculativeConfig.h - `--speculative-config JSON` --------------------===//
#ifndef LLMRT_SPECULATE_SPECULATIVECONFIG_H
#define LLMRT_SPECULATE_SPECULATIVECONFIG_H

#include "runtime/support/Status.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace llmrt {

/// Keys are vLLM's:
///   {"method": "ngram", "num_speculative_tokens": 16, "prompt_lookup_min": 2, "prompt_lookup_max":
///   16}
///   {"method": "suffix", "num_speculative_tokens": 16, "prompt_lookup_min": 2}
///   {"model": "draft.plan", "num_speculative_tokens": 4}       ("method": "draft_model" is
///   implied)
/// Ours: "adaptive": false verifies every guess whether it pays or not; "acceptance": "classical"
/// takes a guess with probability p / q (the text has the right distribution, but isn't that of the
/// same seed without speculation) instead of "exact"; "tree": true lets
/// ngram and suffix give a second choice for the next token where they aren't sure (on CPUs).
struct SpeculativeConfig {
  enum class Method { None, Ngram, Suffix, DraftModel };
  Method method = Method::None;
  int64_t tokens = 0;                    ///< guesses a step at most, 1 to 64
  int64_t lookupMin = 2, lookupMax = 16; ///< tokens of the end of the text that must repeat
  std::string model;                     ///< the draft model's plan
  bool adaptive = true, classical = false, tree = false;

  /// An error names the key, its value and what is allowed. Defaults: 16 guesses for ngram and
  /// suffix, 4 for a model.
  static Result<SpeculativeConfig> parse(std::string_view json);
};

} // namespace llmrt

#endif // LLMRT_SPECULATE_SPECULATIVECONFIG_H
