//===- GrammarMatcher.h - which tokens may come next ------------------------===//
#ifndef LLMRT_DECODE_GRAMMAR_GRAMMARMATCHER_H
#define LLMRT_DECODE_GRAMMAR_GRAMMARMATCHER_H

#include "runtime/decode/grammar/GrammarAutomaton.h"
#include "runtime/decode/grammar/VocabularyTrie.h"

#include <memory>
#include <span>
#include <vector>

namespace llmrt {

/// One answer's place in a grammar. Not for two threads at a time; what it remembers (states,
/// masks) is bounded.
class GrammarMatcher {
public:
  GrammarMatcher(std::shared_ptr<const Grammar> grammar,
                 std::shared_ptr<const VocabularyTrie> trie);

  /// The tokens that may come next, as SamplingContext::allowed; valid until accept(). Control and
  /// end tokens are never among them: an end token may come where canEnd().
  std::span<const uint64_t> mask() { return maskOf(state_); }
  /// Goes on behind \p id; false where it may not come, and then nothing changes.
  bool accept(int32_t id);
  bool canEnd() const { return automaton_.accepts(state_); }
  /// The text is complete and can't go on.
  bool mustEnd() const { return canEnd() && !automaton_.goesOn(state_); }
  /// How many of \p tokens may come, one after the other.
  int64_t fitting(std::span<const int32_t> tokens);
  /// Makes the masks of now and behind each of \p tokens, so that mask() finds them.
  void prepare(std::span<const int32_t> tokens);
  const Status &status() const { return automaton_.status(); }

private:
  GrammarAutomaton::State behind(GrammarAutomaton::State state, int32_t id);
  std::span<const uint64_t> maskOf(GrammarAutomaton::State state);

  std::shared_ptr<const VocabularyTrie> trie_;
  GrammarAutomaton automaton_;
  GrammarAutomaton::State state_;
  std::vector<std::unique_ptr<uint64_t[]>> masks_; ///< by state; null: not made
  size_t maskCount_ = 0, words_;
  std::vector<GrammarAutomaton::State> path_; ///< [deepest + 1], of the walk
};

} // namespace llmrt

#endif // LLMRT_DECODE_GRAMMAR_GRAMMARMATCHER_H
