//===- Noise.h - randomness that depends on where it is used only -----------===//
//
// A counter-based generator: the noise of a token is a hash of (seed, stream, position, token id),
// with no state that other requests, discarded tokens or the order of work could disturb. So a
// seed gives the same text alone and in any batch, and with speculation as without.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_DECODE_NOISE_H
#define LLMRT_DECODE_NOISE_H

#include "runtime/support/Mix64.h"

#include <cstdint>

namespace llmrt {

/// The noise of every token id at one position of one request.
class PositionNoise {
public:
  /// \p stream tells the choices of one request (n > 1) apart.
  PositionNoise(uint64_t seed, uint32_t stream, uint64_t position)
      : key_(mix64(mix64(mix64(seed + golden) + stream * golden + 1) + position * golden + 2)) {}

  /// 52 uniform bits for token \p id.
  uint64_t bits(uint32_t id) const {
    return mix64(key_ + (static_cast<uint64_t>(id) + 1) * golden) >> 12;
  }

  /// All of it that a device needs: the bits are mix64(key + (id + 1) * golden) >> 12.
  uint64_t key() const { return key_; }

private:
  /// 2^64 / golden ratio, odd: consecutive multiples are spread evenly.
  static constexpr uint64_t golden = 0x9e3779b97f4a7c15ULL;
  uint64_t key_;
};

} // namespace llmrt

#endif // LLMRT_DECODE_NOISE_H
