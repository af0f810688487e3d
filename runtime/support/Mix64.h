//===- Mix64.h - a hash of one word -----------------------------------------===//
#ifndef LLMRT_SUPPORT_MIX64_H
#define LLMRT_SUPPORT_MIX64_H

#include <cstdint>

namespace llmrt {

/// A bijection of 64-bit words in which every output bit depends on every input bit (the finalizer
/// of SplitMix64 with Stafford's constants, variant 13).
inline uint64_t mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

} // namespace llmrt

#endif // LLMRT_SUPPORT_MIX64_H
