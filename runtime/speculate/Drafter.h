//===- Drafter.h - who guesses the next tokens ------------------------------===//
//
// A drafter proposes tokens that may come next in a sequence; the engine lets the model look at the
// whole window in one step and keeps the guesses that equal what it draws itself. So a drafter
// decides how fast an answer comes and never what it says. One interface for all: text lookup, an
// automaton, a small model, heads on the model itself.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_SPECULATE_DRAFTER_H
#define LLMRT_SPECULATE_DRAFTER_H

#include "runtime/decode/Sampler.h"
#include "runtime/decode/SamplingParams.h"
#include "runtime/decode/TokenHistory.h"
#include "runtime/speculate/DraftTree.h"
#include "runtime/support/SlowFallback.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace llmrt {

/// What a drafter remembers of one sequence.
class DraftState {
public:
  virtual ~DraftState() = default;
};

/// From what the guesses of a window were drawn; guess i has entries [ends[i - 1], ends[i]). Empty:
/// the drafter was certain of each.
struct DraftDistributions {
  std::vector<TokenProbability> entries;
  std::vector<size_t> ends;

  void clear() { entries.clear(), ends.clear(); }
  std::span<const TokenProbability> of(size_t guess) const {
    if (guess >= ends.size())
      return {};
    size_t begin = guess == 0 ? 0 : ends[guess - 1];
    return std::span(entries).subspan(begin, ends[guess] - begin);
  }
};

/// One sequence that waits for guesses.
struct DraftRequest {
  DraftState *state = nullptr; ///< begin() made it
  /// All tokens so far. They only grow: what was accepted before is their beginning.
  std::span<const int32_t> tokens;
  const SamplingParams *sampling = nullptr;
  const TokenHistory *history = nullptr; ///< of the tokens, where sampling needs it
  int64_t limit = 0;                     ///< guesses wanted at most
  /// The guesses, empty before and with room for limit; none is a good answer.
  std::vector<int32_t> *draft = nullptr;
  /// Null unless the classical rule needs them.
  DraftDistributions *distributions = nullptr;
  /// Null: a chain is wanted. Else the guesses may be a tree, whose first choices come first; each
  /// of them, or none, gets a parent.
  DraftTree *tree = nullptr;
  /// Set by the drafter: how sure it is, from 0 to draftGrades - 1. The share of guesses that come
  /// true is observed for each grade apart.
  int32_t grade = 0;
};

inline constexpr int32_t draftGrades = 4;

/// How sure a drafter is of what followed a repeated text of \p length tokens.
inline int32_t repeatGrade(int64_t length) {
  return length >= 12 ? 3 : length >= 6 ? 2 : length >= 3 ? 1 : 0;
}
/// Guesses of a second choice at most, and what is sure enough to need none.
inline constexpr int64_t secondChoiceGuesses = 3;
inline bool wantsSecondChoice(const DraftRequest &request, int64_t length) {
  return request.tree && repeatGrade(length) < 2 && request.limit >= 4;
}

/// Guesses that the text goes on as it did from \p next on, the last \p length tokens before which
/// are its end. Where that reaches the end the guesses themselves go on: the text is a loop. As a
/// second choice, if \p second is not negative: as it did from there on.
inline void guessRepeat(DraftRequest &request, int64_t next, int64_t length, int64_t second = -1) {
  int64_t known = static_cast<int64_t>(request.tokens.size());
  int64_t limit = request.limit - (second >= 0 ? secondChoiceGuesses : 0);
  auto guess = [&](int64_t from, int64_t count) {
    const int64_t begin = static_cast<int64_t>(request.draft->size());
    for (int64_t i = 0; i < count; ++i, ++from) {
      request.draft->push_back(from < known ? request.tokens[size_t(from)]
                                            : (*request.draft)[size_t(begin + from - known)]);
      if (second >= 0)
        request.tree->add(i == 0 ? DraftTree::root : static_cast<int32_t>(begin + i - 1),
                          i == 0 && begin > 0);
    }
  };
  guess(next, limit);
  if (second >= 0)
    guess(second, secondChoiceGuesses);
  request.grade = repeatGrade(length);
}

class Drafter {
public:
  virtual ~Drafter() = default;
  virtual const char *name() const = 0;
  /// Takes the memory for a sequence of up to \p maxTokens tokens. Any thread. May be null.
  virtual std::unique_ptr<DraftState> begin(int64_t maxTokens,
                                            const SamplingParams &sampling) const = 0;
  /// Fills in the guesses of \p requests; allocates nothing. A failure is of the drafter itself.
  virtual Status propose(std::span<DraftRequest> requests) = 0;
  /// The sequence of \p state has ended or lost its turn: gives back what is shared with others.
  virtual void end(DraftState &state) {}
  /// Guessing takes time that counts: it is measured, and not done where it wouldn't pay. False for
  /// drafters that take microseconds.
  virtual bool isCostly() const { return false; }
  /// Adds what this drafter, and a device of its own, has seen.
  virtual void addSlowFallbacks(SlowFallbackCounts &counts) const {}
};

} // namespace llmrt

#endif // LLMRT_SPECULATE_DRAFTER_H
