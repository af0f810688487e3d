//===- SuffixAutomaton.h - all substrings of a growing text -----------------===//
//
// The smallest automaton that accepts the suffixes of a text, grown token by token (Blumer et al.,
// "The smallest automaton recognizing the subwords of a text", 1985). Here it answers one question
// in constant time: which longest end of the text stood in it before, and what followed.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_SPECULATE_SUFFIXAUTOMATON_H
#define LLMRT_SPECULATE_SUFFIXAUTOMATON_H

#include "runtime/speculate/Drafter.h"

#include <cstdlib>

namespace llmrt {

/// Memory for the whole text is set aside when it is made, and touched as the text grows.
class SuffixAutomaton {
public:
  explicit SuffixAutomaton(int64_t maxTokens);

  int64_t size() const { return size_; }
  /// Adds the next token of the text.
  void append(int32_t token);

  struct Repeat {
    int64_t length = 0; ///< of the longest suffix that stood before; 0: none did
    int64_t next = 0;   ///< the position after its last occurrence that is known
  };
  Repeat longestRepeat() const { return repeatOf(states_[last_].link); }
  /// Of a shorter end of the text, which stood elsewhere, too: the longest for which \p differs of
  /// the place after it. Length 0: none of the next few.
  template <typename Differs> Repeat shorterRepeat(Differs differs) const {
    constexpr int tries = 8;
    int32_t state = states_[last_].link;
    for (int i = 0; i < tries && state > 0; ++i) {
      state = states_[state].link;
      if (Repeat repeat = repeatOf(state); repeat.length > 0 && differs(repeat.next))
        return repeat;
    }
    return {};
  }

private:
  struct State {
    int32_t length;      ///< of its longest string
    int32_t link;        ///< the state of its longest suffix that is in another state; -1: the root
    int32_t end;         ///< where an occurrence ends: the latest that was noted
    int32_t previousEnd; ///< the same before the newest token
    int32_t firstEdge;
  };
  struct Edge {
    int32_t token, from, to;
    int32_t nextOfState, nextOfBucket; ///< -1: none
  };
  template <typename T> struct Free {
    void operator()(T *p) const { std::free(p); }
  };
  template <typename T> using Array = std::unique_ptr<T[], Free<T>>;

  Repeat repeatOf(int32_t state) const {
    const State &found = states_[state < 0 ? 0 : state];
    return {found.length, found.previousEnd + 1};
  }
  int32_t newState(int32_t length, int32_t end);
  int32_t findEdge(int32_t state, int32_t token) const;
  void addEdge(int32_t from, int32_t token, int32_t to);
  size_t bucketOf(int32_t state, int32_t token) const;

  Array<State> states_;    ///< at most 2 n
  Array<Edge> edges_;      ///< at most 3 n
  Array<int32_t> buckets_; ///< index of an edge + 1; 0: none
  size_t bucketMask_;
  int32_t stateCount_ = 0, edgeCount_ = 0, last_ = 0;
  int64_t size_ = 0;
};

/// Guesses what followed the longest repeated end of the sequence's text.
class SuffixDrafter final : public Drafter {
public:
  /// Repeats shorter than \p least tokens don't count.
  explicit SuffixDrafter(int64_t least) : least_(least) {}
  const char *name() const override { return "suffix"; }
  std::unique_ptr<DraftState> begin(int64_t maxTokens, const SamplingParams &) const override;
  Status propose(std::span<DraftRequest> requests) override;

private:
  int64_t least_;
};

} // namespace llmrt

#endif // LLMRT_SPECULATE_SUFFIXAUTOMATON_H
