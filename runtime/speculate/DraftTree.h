//===- DraftTree.h - how the guesses of a window hang together ---------------===//
//
// Guess i stands behind guess parent(i), or behind the newest token of the text: a chain, unless a
// drafter names parents. A parent comes before its children, so every beginning of the window is a
// tree as well.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_SPECULATE_DRAFTTREE_H
#define LLMRT_SPECULATE_DRAFTTREE_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace llmrt {

/// Guesses a window at most.
inline constexpr int64_t maxGuesses = 64;

class DraftTree {
public:
  static constexpr int32_t root = -1; ///< the newest token, as a parent

  /// Takes the memory for \p guesses.
  void reserve(size_t guesses) { guesses_.reserve(guesses); }
  /// A chain, as long as it needs to be.
  void clear() { guesses_.clear(); }
  /// The parent of the next guess. Either all guesses have one or none. \p isLaterChoice: another
  /// guess behind the same parent is the drafter's first choice.
  void add(int32_t parent, bool isLaterChoice = false) {
    guesses_.push_back({parent,
                        parent == root ? 1 : guesses_[static_cast<size_t>(parent)].depth + 1,
                        isLaterChoice});
  }
  bool isChain() const { return guesses_.empty(); }

  int32_t parent(int64_t guess) const {
    return isChain() ? static_cast<int32_t>(guess) - 1
                     : guesses_[static_cast<size_t>(guess)].parent;
  }
  /// Positions behind the newest token.
  int64_t depth(int64_t guess) const {
    return isChain() ? guess + 1 : guesses_[static_cast<size_t>(guess)].depth;
  }
  bool isLaterChoice(int64_t guess) const {
    return !isChain() && guesses_[static_cast<size_t>(guess)].isLaterChoice;
  }
  /// The guess lies at another place of the window than its position says. The others are the
  /// window's beginning: a chain.
  bool isAside(int64_t guess) const { return depth(guess) != guess + 1; }

private:
  struct Guess {
    int32_t parent, depth;
    bool isLaterChoice;
  };
  std::vector<Guess> guesses_; ///< empty: a chain
};

} // namespace llmrt

#endif // LLMRT_SPECULATE_DRAFTTREE_H
