//===- TokenHistory.h - which tokens a request has seen, for the penalties --===//
#ifndef LLMRT_DECODE_TOKENHISTORY_H
#define LLMRT_DECODE_TOKENHISTORY_H

#include <cstdint>
#include <span>
#include <vector>

namespace llmrt {

/// The distinct tokens of prompt and output, and how often each stands in the output. Memory is
/// taken once, when it is made: 4 bytes a row of the vocabulary and 4 a token of the sequence.
/// Every id given to it is below the vocabulary.
class TokenHistory {
public:
  TokenHistory() = default;
  TokenHistory(int32_t vocabulary, std::span<const int32_t> prompt, size_t maxOutput)
      : entries_(static_cast<size_t>(vocabulary)) {
    distinct_.reserve(prompt.size() + maxOutput);
    for (int32_t id : prompt)
      see(id);
  }

  /// A token was added to the output.
  void commit(int32_t id) {
    see(id);
    ++entries_[static_cast<size_t>(id)].outputCount;
  }

  std::span<const int32_t> distinct() const { return distinct_; }
  uint32_t outputCount(int32_t id) const { return entries_[static_cast<size_t>(id)].outputCount; }

private:
  struct Entry {
    uint32_t seen : 1 = 0;
    uint32_t outputCount : 31 = 0;
  };
  void see(int32_t id) {
    Entry &e = entries_[static_cast<size_t>(id)];
    if (!e.seen) {
      e.seen = 1;
      distinct_.push_back(id);
    }
  }
  std::vector<Entry> entries_;
  std::vector<int32_t> distinct_;
};

} // namespace llmrt

#endif // LLMRT_DECODE_TOKENHISTORY_H
