//===- PromptLookup.h - guesses from the sequence's own text ----------------===//
//
// The tokens that followed the last time the text ended like this (Saxena, "Prompt lookup
// decoding", 2023): good where an answer repeats its prompt, as summaries and edited code do.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_SPECULATE_PROMPTLOOKUP_H
#define LLMRT_SPECULATE_PROMPTLOOKUP_H

#include "runtime/speculate/Drafter.h"

namespace llmrt {

class PromptLookup final : public Drafter {
public:
  /// Matches of \p least to \p most tokens count; the longest wins, of equal ones the latest.
  PromptLookup(int64_t least, int64_t most) : least_(least), most_(most) {}

  const char *name() const override { return "ngram"; }
  std::unique_ptr<DraftState> begin(int64_t, const SamplingParams &) const override {
    return nullptr;
  }
  Status propose(std::span<DraftRequest> requests) override;

private:
  int64_t least_, most_;
};

} // namespace llmrt

#endif // LLMRT_SPECULATE_PROMPTLOOKUP_H
