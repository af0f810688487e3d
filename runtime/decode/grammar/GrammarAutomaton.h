//===- GrammarAutomaton.h - a grammar, read byte by byte --------------------===//
//
// All that a text so far could mean is a set of places in the rules, each with the calls that it
// must return from: a state. States and the steps between them are made when they are first needed
// and remembered, so reading a byte is a table's entry soon. This is the subset construction of a
// finite automaton, done lazily and with stacks (compare Willard and Louf, "Efficient guided
// generation", 2023, and Dong et al., "XGrammar", 2024).
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_DECODE_GRAMMAR_GRAMMARAUTOMATON_H
#define LLMRT_DECODE_GRAMMAR_GRAMMARAUTOMATON_H

#include "runtime/decode/grammar/Grammar.h"

#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

namespace llmrt {

class GrammarAutomaton {
public:
  using State = int32_t;
  static constexpr State dead = -1;

  explicit GrammarAutomaton(std::shared_ptr<const Grammar> grammar);

  State start() const { return start_; }
  /// The state behind \p byte; dead where no text of the grammar goes on so.
  State next(State state, uint8_t byte) {
    State known = states_[size_t(state)]->next[byte];
    return known == unknown ? step(state, byte) : known;
  }
  /// The text so far is one of the grammar.
  bool accepts(State state) const { return states_[size_t(state)]->accepts; }
  /// It may go on.
  bool goesOn(State state) const { return !states_[size_t(state)]->items.empty(); }
  size_t stateCount() const { return states_.size(); }
  /// Forgets all states but \p state, which gets another number: this is returned.
  State forgetOthers(State state);
  /// A failure when a state would have been too large; it is dead then.
  const Status &status() const { return status_; }

private:
  static constexpr State unknown = -2;
  struct Item {
    uint32_t node, stack;
    bool operator==(const Item &) const = default;
    auto operator<=>(const Item &) const = default;
  };
  struct Frame {
    uint32_t node, below; ///< where it goes on, and what lies below; stack 0 is empty
  };
  struct StateData {
    std::vector<Item> items; ///< those that can read a byte, sorted
    bool accepts = false;
    std::array<State, 256> next;
  };
  uint32_t push(uint32_t node, uint32_t below);
  /// Follows empty edges, calls and returns from work_.
  State close();
  State step(State state, uint8_t byte);
  void reset();

  std::shared_ptr<const Grammar> grammar_;
  std::vector<Frame> frames_;
  std::unordered_map<uint64_t, uint32_t> frameOf_;
  std::vector<std::unique_ptr<StateData>> states_;
  std::unordered_multimap<uint64_t, State> stateOf_; ///< by a hash of items
  std::vector<Item> work_;
  std::unordered_map<uint64_t, bool> seen_;
  State start_;
  Status status_;
};

} // namespace llmrt

#endif // LLMRT_DECODE_GRAMMAR_GRAMMARAUTOMATON_H
