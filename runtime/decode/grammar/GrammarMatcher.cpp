#include "runtime/decode/grammar/GrammarMatcher.h"

#include <algorithm>

namespace llmrt {
namespace {

/// A state takes about a kilobyte and a mask an eighth of a byte a token: some megabytes at most.
constexpr size_t rememberedStates = 4096, rememberedMasks = 128;

} // namespace

GrammarMatcher::GrammarMatcher(std::shared_ptr<const Grammar> grammar,
                               std::shared_ptr<const VocabularyTrie> trie)
    : trie_(std::move(trie)), automaton_(std::move(grammar)), state_(automaton_.start()),
      words_(static_cast<size_t>(trie_->vocabulary() + 63) / 64), path_(trie_->deepest() + 1) {}

GrammarAutomaton::State GrammarMatcher::behind(GrammarAutomaton::State state, int32_t id) {
  if (id < 0 || id >= trie_->vocabulary() || trie_->bytes(id).empty())
    return GrammarAutomaton::dead;
  for (char c : trie_->bytes(id)) {
    if (state == GrammarAutomaton::dead)
      break;
    state = automaton_.next(state, static_cast<uint8_t>(c));
  }
  return state;
}

bool GrammarMatcher::accept(int32_t id) {
  GrammarAutomaton::State next =
      state_ == GrammarAutomaton::dead ? GrammarAutomaton::dead : behind(state_, id);
  if (next == GrammarAutomaton::dead)
    return false;
  state_ = next;
  if (automaton_.stateCount() > rememberedStates || maskCount_ > rememberedMasks) {
    state_ = automaton_.forgetOthers(state_);
    masks_.clear();
    maskCount_ = 0;
  }
  return true;
}

int64_t GrammarMatcher::fitting(std::span<const int32_t> tokens) {
  GrammarAutomaton::State state = state_;
  for (size_t i = 0; i < tokens.size(); ++i)
    if (state = behind(state, tokens[i]); state == GrammarAutomaton::dead)
      return static_cast<int64_t>(i);
  return static_cast<int64_t>(tokens.size());
}

void GrammarMatcher::prepare(std::span<const int32_t> tokens) {
  GrammarAutomaton::State state = state_;
  (void)maskOf(state);
  for (int32_t id : tokens) {
    state = behind(state, id);
    if (state == GrammarAutomaton::dead)
      return;
    (void)maskOf(state);
  }
}

std::span<const uint64_t> GrammarMatcher::maskOf(GrammarAutomaton::State state) {
  size_t index = static_cast<size_t>(state);
  if (masks_.size() <= index)
    masks_.resize(index + 1);
  if (masks_[index])
    return {masks_[index].get(), words_};
  auto mask = std::make_unique<uint64_t[]>(words_);
  // Depth first over the vocabulary: a beginning that the grammar refuses takes its subtree along.
  std::span<const VocabularyTrie::Node> nodes = trie_->nodes();
  path_[0] = state;
  for (uint32_t i = 0; i < nodes.size();) {
    const VocabularyTrie::Node &node = nodes[i];
    GrammarAutomaton::State to = automaton_.next(path_[node.depth - 1u], node.byte);
    if (to == GrammarAutomaton::dead) {
      i = node.end;
      continue;
    }
    path_[node.depth] = to;
    for (uint32_t t = 0; t < node.count; ++t) {
      uint32_t id = static_cast<uint32_t>(trie_->ids()[node.first + t]);
      mask[id / 64] |= uint64_t(1) << (id % 64);
    }
    ++i;
  }
  if (masks_.size() <= index)
    masks_.resize(index + 1);
  masks_[index] = std::move(mask);
  ++maskCount_;
  return {masks_[index].get(), words_};
}

} // namespace llmrt
