//===- StepCosts.h - what a step costs, by its tokens ------------------------===//
//
// On a machine that does other things as well, the time of an answer says little. The median time
// of a step of n tokens is steadier, as each size is seen many times; with it, the steps that an
// answer took give what it would have cost undisturbed.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TOOLS_COMMON_STEPCOSTS_H
#define LLMC_TOOLS_COMMON_STEPCOSTS_H

#include "tools/common/BenchSupport.h"

#include <map>

namespace llmc::tools {

/// The steps of one answer: how many there were of each size in tokens.
using StepSizes = std::map<int64_t, int64_t>;

class StepCosts {
public:
  void add(int64_t tokens, double seconds) { seconds_[tokens].push_back(seconds); }

  /// Of a step of \p tokens tokens, which was added; a step of more tokens is never taken to be
  /// cheaper than one of fewer that was seen as often.
  double seconds(int64_t tokens) const {
    const std::vector<double> &own = seconds_.at(tokens);
    double most = median(own);
    for (const auto &[size, times] : seconds_)
      if (size < tokens && times.size() >= own.size())
        most = std::max(most, median(times));
    return most;
  }
  double seconds(const StepSizes &steps) const {
    double sum = 0;
    for (auto [tokens, count] : steps)
      sum += seconds(tokens) * static_cast<double>(count);
    return sum;
  }
  /// The sizes that were added at least \p least times, the smallest first.
  std::vector<int64_t> sizes(size_t least) const {
    std::vector<int64_t> sizes;
    for (const auto &[size, times] : seconds_)
      if (times.size() >= least)
        sizes.push_back(size);
    return sizes;
  }

private:
  std::map<int64_t, std::vector<double>> seconds_;
};

} // namespace llmc::tools

#endif // LLMC_TOOLS_COMMON_STEPCOSTS_H
