#include "runtime/speculate/SuffixAutomaton.h"

#include "runtime/support/Mix64.h"

#include <algorithm>
#include <bit>

namespace llmrt {
namespace {

/// Suffix links that are followed to note where a string stood last: beyond these the first
/// occurrences stay noted, which are as true.
constexpr int notedLinks = 8;

/// Zeroed by the system, so that pages cost nothing before they are used.
template <typename T> T *zeroed(size_t n) {
  auto *p = static_cast<T *>(std::calloc(n, sizeof(T)));
  if (!p)
    std::abort(); // as operator new would end without exceptions
  return p;
}

} // namespace

SuffixAutomaton::SuffixAutomaton(int64_t maxTokens)
    : bucketMask_(std::bit_ceil(static_cast<size_t>(3 * maxTokens + 1)) - 1) {
  states_.reset(zeroed<State>(static_cast<size_t>(2 * maxTokens + 2)));
  edges_.reset(zeroed<Edge>(static_cast<size_t>(3 * maxTokens + 4)));
  buckets_.reset(zeroed<int32_t>(bucketMask_ + 1));
  newState(0, -1);
  states_[0].link = -1;
}

int32_t SuffixAutomaton::newState(int32_t length, int32_t end) {
  states_[size_t(stateCount_)] = {length, 0, end, end, -1};
  return stateCount_++;
}

size_t SuffixAutomaton::bucketOf(int32_t state, int32_t token) const {
  return mix64((uint64_t(uint32_t(state)) << 32) | uint32_t(token)) & bucketMask_;
}

int32_t SuffixAutomaton::findEdge(int32_t state, int32_t token) const {
  int32_t edge = buckets_[bucketOf(state, token)] - 1;
  while (edge >= 0 && (edges_[size_t(edge)].from != state || edges_[size_t(edge)].token != token))
    edge = edges_[size_t(edge)].nextOfBucket;
  return edge;
}

void SuffixAutomaton::addEdge(int32_t from, int32_t token, int32_t to) {
  int32_t &bucket = buckets_[bucketOf(from, token)];
  edges_[size_t(edgeCount_)] = {token, from, to, states_[size_t(from)].firstEdge, bucket - 1};
  states_[size_t(from)].firstEdge = edgeCount_;
  bucket = ++edgeCount_;
}

void SuffixAutomaton::append(int32_t token) {
  int32_t position = static_cast<int32_t>(size_++);
  int32_t added = newState(states_[size_t(last_)].length + 1, position);
  int32_t p = last_;
  for (; p >= 0 && findEdge(p, token) < 0; p = states_[size_t(p)].link)
    addEdge(p, token, added);
  if (p < 0) {
    states_[size_t(added)].link = 0;
  } else {
    int32_t q = edges_[size_t(findEdge(p, token))].to;
    int32_t link = q;
    if (states_[size_t(p)].length + 1 != states_[size_t(q)].length) {
      // q also stands for longer strings, which didn't end here: a state for the shorter ones.
      link = newState(states_[size_t(p)].length + 1, states_[size_t(q)].end);
      states_[size_t(link)].link = states_[size_t(q)].link;
      for (int32_t e = states_[size_t(q)].firstEdge; e >= 0; e = edges_[size_t(e)].nextOfState)
        addEdge(link, edges_[size_t(e)].token, edges_[size_t(e)].to);
      for (; p >= 0; p = states_[size_t(p)].link) {
        int32_t e = findEdge(p, token);
        if (e < 0 || edges_[size_t(e)].to != q)
          break;
        edges_[size_t(e)].to = link;
      }
      states_[size_t(q)].link = link;
    }
    states_[size_t(added)].link = link;
  }
  last_ = added;
  int32_t s = states_[size_t(added)].link;
  for (int i = 0; i < notedLinks && s > 0; ++i, s = states_[size_t(s)].link) {
    states_[size_t(s)].previousEnd = states_[size_t(s)].end;
    states_[size_t(s)].end = position;
  }
}

namespace {

struct SuffixState final : DraftState {
  explicit SuffixState(int64_t maxTokens) : automaton(maxTokens) {}
  SuffixAutomaton automaton;
};

} // namespace

std::unique_ptr<DraftState> SuffixDrafter::begin(int64_t maxTokens, const SamplingParams &) const {
  return std::make_unique<SuffixState>(maxTokens);
}

Status SuffixDrafter::propose(std::span<DraftRequest> requests) {
  for (DraftRequest &request : requests) {
    SuffixAutomaton &automaton = static_cast<SuffixState *>(request.state)->automaton;
    for (size_t i = static_cast<size_t>(automaton.size()); i < request.tokens.size(); ++i)
      automaton.append(request.tokens[i]);
    SuffixAutomaton::Repeat repeat = automaton.longestRepeat();
    if (repeat.length < least_)
      continue;
    SuffixAutomaton::Repeat other;
    if (wantsSecondChoice(request, repeat.length))
      other = automaton.shorterRepeat([&](int64_t next) {
        return request.tokens[size_t(next)] != request.tokens[size_t(repeat.next)];
      });
    guessRepeat(request, repeat.next, repeat.length, other.length > 0 ? other.next : -1);
  }
  return Status::ok();
}

} // namespace llmrt
