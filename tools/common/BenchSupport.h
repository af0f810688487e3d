//===- BenchSupport.h - what the tests of `llmc bench` share -----------------===//
#ifndef LLMC_TOOLS_COMMON_BENCHSUPPORT_H
#define LLMC_TOOLS_COMMON_BENCHSUPPORT_H

#include "runtime/engine/Request.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace llmc::tools {

using Clock = std::chrono::steady_clock;

inline double secondsBetween(Clock::time_point a, Clock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

/// Of at least one value.
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t n = values.size();
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

inline std::string fixed(double value, const char *unit = "", int digits = 1) {
  char text[48];
  std::snprintf(text, sizeof(text), "%.*f%s", digits, value, unit);
  return text;
}

class CountingListener : public llmrt::RequestListener {
public:
  bool onToken(const llmrt::TokenEvent &) override { return ++tokens, true; }
  void onFinish(const llmrt::FinishEvent &event) override {
    finished = true;
    status = event.status;
    stats = event.stats;
  }
  int64_t tokens = 0;
  bool finished = false;
  llmrt::Status status;
  llmrt::RequestStats stats;
};

/// Ids that no cache of a former call can know: a linear congruential sequence (Knuth's MMIX
/// constants), its seed new for every prompt. The first ids of many vocabularies are control
/// tokens and bytes; ordinary text has few of them.
class PromptSource {
public:
  explicit PromptSource(int64_t vocabulary)
      : low_(vocabulary > 512 ? 256 : 0), span_(static_cast<uint64_t>(vocabulary - low_)) {}
  std::vector<int32_t> next(int64_t n) {
    std::vector<int32_t> ids(static_cast<size_t>(n));
    for (int32_t &id : ids)
      id = static_cast<int32_t>(low_ + static_cast<int64_t>(draw() % span_));
    return ids;
  }
  /// From \p low to \p high.
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(draw() % static_cast<uint64_t>(high - low + 1));
  }

private:
  uint64_t draw() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return state_ >> 33;
  }
  int64_t low_;
  uint64_t span_, state_ = 1234;
};

} // namespace llmc::tools

#endif // LLMC_TOOLS_COMMON_BENCHSUPPORT_H
