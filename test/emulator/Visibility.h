//===- Visibility.h - what a thread knows of others' writes -------------------===//
//
// Vector clocks that leave a block. A run is one execution of a block.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TEST_EMULATOR_VISIBILITY_H
#define LLMC_TEST_EMULATOR_VISIBILITY_H

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace simt {

/// Of the threads of one run: all that they did before \p epoch, and in it up to \p clocks.
struct RunKnowledge {
  uint32_t epoch = 0;
  std::vector<uint32_t> clocks; ///< [threads]

  bool covers(uint32_t atEpoch, uint32_t clock, unsigned thread) const {
    return atEpoch < epoch || (atEpoch == epoch && clock <= clocks[thread]);
  }
  void add(const RunKnowledge &other);
};

/// Of other runs of the launch, by run. Shared between threads until one learns more.
using OtherRuns = std::shared_ptr<const std::map<uint64_t, RunKnowledge>>;
OtherRuns merged(const OtherRuns &a, const OtherRuns &b);

/// What a barrier or a fence hands on.
struct Knowledge {
  RunKnowledge own;
  OtherRuns others;
};

struct ThreadVisibility {
  OtherRuns seen;    ///< ordered before what this thread does now
  OtherRuns pending; ///< published at addresses of its atomics: seen after its next fence
  OtherRuns
      fenced; ///< what its atomics publish: all that it knew at its last fence, its own run too
};

} // namespace simt

#endif // LLMC_TEST_EMULATOR_VISIBILITY_H
