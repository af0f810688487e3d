//===- ProbabilityMass.h - shares of probability as integers ----------------===//
//
// Top-p adds up probabilities until they reach its bound. Floating-point sums depend on their
// order, which a GPU does not have; integers don't, so host and device keep the same tokens.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_DECODE_PROBABILITYMASS_H
#define LLMRT_DECODE_PROBABILITYMASS_H

#include "runtime/decode/Math.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace llmrt {

/// e^(logit - top) in units of 2^-44 (coarser from half a million tokens on): what is lost by
/// rounding down is below 2^-25 of the whole even where every token lies in the tail.
class ProbabilityMass {
public:
  ProbabilityMass(size_t vocabulary, float top) : unit_(unit(vocabulary)), top_(top) {}

  uint64_t of(float logit) const {
    return static_cast<uint64_t>(static_cast<int64_t>(fixedExpf(logit - top_) * unit_));
  }
  /// What the kept tokens must reach: at least 1, at most \p total.
  static uint64_t wanted(float share, uint64_t total) {
    double sum = std::ceil(static_cast<double>(share) * static_cast<double>(total));
    return std::max<uint64_t>(1, std::min(static_cast<uint64_t>(sum), total));
  }
  /// The mass of the top token, a power of two: all tokens together stay below 2^63.
  static float unit(size_t vocabulary) {
    int bits = std::min(44, 63 - static_cast<int>(std::bit_width(vocabulary)));
    return static_cast<float>(uint64_t(1) << bits);
  }

private:
  float unit_, top_;
};

} // namespace llmrt

#endif // LLMRT_DECODE_PROBABILITYMASS_H
