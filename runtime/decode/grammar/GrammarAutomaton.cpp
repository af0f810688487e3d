#include "runtime/decode/grammar/GrammarAutomaton.h"

#include "runtime/support/Mix64.h"

#include <algorithm>

namespace llmrt {
namespace {

/// Places of one state, and states in all, before the grammar counts as too ambiguous.
constexpr size_t maxItems = 50000, maxStates = 200000, maxFrames = 2000000;

uint64_t keyOf(uint32_t a, uint32_t b) { return uint64_t(a) << 32 | b; }

} // namespace

GrammarAutomaton::GrammarAutomaton(std::shared_ptr<const Grammar> grammar)
    : grammar_(std::move(grammar)) {
  reset();
  work_.push_back({grammar_->root(), 0});
  start_ = close();
}

void GrammarAutomaton::reset() {
  frames_.assign(1, {});
  frameOf_.clear();
  states_.clear();
  stateOf_.clear();
}

uint32_t GrammarAutomaton::push(uint32_t node, uint32_t below) {
  auto [place, isNew] =
      frameOf_.try_emplace(keyOf(node, below), static_cast<uint32_t>(frames_.size()));
  if (isNew)
    frames_.push_back({node, below});
  return place->second;
}

GrammarAutomaton::State GrammarAutomaton::close() {
  auto data = std::make_unique<StateData>();
  data->next.fill(unknown);
  seen_.clear();
  auto visit = [&](uint32_t node, uint32_t stack) {
    if (seen_.try_emplace(keyOf(node, stack), true).second)
      work_.push_back({node, stack});
  };
  std::vector<Item> begin;
  begin.swap(work_);
  for (const Item &item : begin)
    visit(item.node, item.stack);
  while (!work_.empty()) {
    auto [index, stack] = work_.back();
    work_.pop_back();
    const Grammar::Node &node = grammar_->node(index);
    if (node.ends) {
      if (stack == 0)
        data->accepts = true;
      else
        visit(frames_[stack].node, frames_[stack].below);
    }
    bool reads = false;
    const Grammar::Edge *edges = grammar_->edges(node);
    for (uint32_t e = 0; e < node.edgeCount; ++e)
      switch (edges[e].kind) {
      case Grammar::EdgeKind::Bytes:
        reads = true;
        break;
      case Grammar::EdgeKind::Empty:
        visit(edges[e].target, stack);
        break;
      case Grammar::EdgeKind::Call: {
        // A rule that ends with a call returns to its own caller: loops by recursion stay flat.
        bool tail = grammar_->node(edges[e].target).onlyEnds;
        visit(grammar_->start(edges[e].rule), tail ? stack : push(edges[e].target, stack));
        break;
      }
      }
    if (reads)
      data->items.push_back({index, stack});
    if (seen_.size() > maxItems || frames_.size() > maxFrames || states_.size() > maxStates) {
      work_.clear();
      status_ = resourceExhausted("the grammar is too ambiguous: a text so far has more than " +
                                  std::to_string(maxItems) + " meanings");
      return dead;
    }
  }
  if (data->items.empty() && !data->accepts)
    return dead;
  std::sort(data->items.begin(), data->items.end());
  uint64_t hash = data->accepts;
  for (const Item &item : data->items)
    hash = mix64(hash + keyOf(item.node, item.stack));
  auto [low, high] = stateOf_.equal_range(hash);
  for (; low != high; ++low) {
    const StateData &other = *states_[size_t(low->second)];
    if (other.items == data->items && other.accepts == data->accepts)
      return low->second;
  }
  State state = static_cast<State>(states_.size());
  stateOf_.emplace(hash, state);
  states_.push_back(std::move(data));
  return state;
}

GrammarAutomaton::State GrammarAutomaton::step(State state, uint8_t byte) {
  for (const Item &item : states_[size_t(state)]->items) {
    const Grammar::Node &node = grammar_->node(item.node);
    const Grammar::Edge *edges = grammar_->edges(node);
    for (uint32_t e = 0; e < node.edgeCount; ++e)
      if (edges[e].kind == Grammar::EdgeKind::Bytes && edges[e].low <= byte &&
          byte <= edges[e].high)
        work_.push_back({edges[e].target, item.stack});
  }
  State to = work_.empty() ? dead : close();
  return states_[size_t(state)]->next[byte] = to;
}

GrammarAutomaton::State GrammarAutomaton::forgetOthers(State state) {
  StateData kept = std::move(*states_[size_t(state)]);
  std::vector<Frame> old = std::move(frames_);
  reset();
  // Stacks of what is kept, from the bottom up.
  for (Item &item : kept.items) {
    std::vector<uint32_t> nodes;
    for (uint32_t s = item.stack; s != 0; s = old[s].below)
      nodes.push_back(old[s].node);
    item.stack = 0;
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node)
      item.stack = push(*node, item.stack);
    work_.push_back(item);
  }
  if (work_.empty()) { // it only accepts
    auto data = std::make_unique<StateData>();
    data->next.fill(unknown);
    data->accepts = kept.accepts;
    states_.push_back(std::move(data));
    return 0;
  }
  State made = close();
  // The items can read; whether the text may end here was decided by those that can't.
  if (made != dead)
    states_[size_t(made)]->accepts = kept.accepts;
  return made;
}

} // namespace llmrt
