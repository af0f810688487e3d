//===- Xxh64.h - the checksum of plan files ----------------------------------===//
//
// XXH64 as its specification describes it (Yann Collet, "xxHash fast digest algorithm",
// revision 0.1.1): 64 bits, about the speed of memory, no protection against an adversary. It
// finds damage; a signature is what finds forgery.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_PLAN_XXH64_H
#define LLMRT_PLAN_XXH64_H

#include <cstddef>
#include <cstdint>

namespace llmrt {

/// A streaming XXH64: the digest depends on the bytes, not on how they were split over update().
class Xxh64 {
public:
  explicit Xxh64(uint64_t seed = 0);
  void update(const void *data, size_t size);
  /// Hashes \p size zero bytes.
  void updateZeros(uint64_t size);
  uint64_t digest() const;

  static uint64_t hash(const void *data, size_t size, uint64_t seed = 0) {
    Xxh64 state(seed);
    state.update(data, size);
    return state.digest();
  }

private:
  uint64_t seed_;
  uint64_t lanes_[4];
  uint64_t total_ = 0;
  uint8_t pending_[32]; ///< the last total_ % 32 bytes
};

} // namespace llmrt

#endif // LLMRT_PLAN_XXH64_H
