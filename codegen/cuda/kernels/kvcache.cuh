//===- kvcache.cuh - where a token's keys and values lie ------------------------===//
#ifndef LLMC_CUDA_KVCACHE_CUH
#define LLMC_CUDA_KVCACHE_CUH

#include "rows.cuh"

/// The cache of one layer, see KernelAbi.h. \p Heads KV heads, keys of \p D and values of \p DV
/// elements of type \p Kv.
template <int Heads, int D, int DV, int Kv> struct KvCache {
  static constexpr int kBytes = ElementBytes<Kv>::value;
  static constexpr int kKeyBytes = D * kBytes, kValueBytes = DV * kBytes;
  /// An int8 key and an int8 value have an f32 scale each.
  static constexpr int kTokenBytes = kKeyBytes + kValueBytes + (Kv == kI8 ? 8 : 0);

  unsigned char *layer; ///< of block 0
  long long blockBytes, headBytes;
  int blockTokens;

  /// \p prefix: KV bytes a token of the layers before.
  LLMC_METHOD KvCache(const LlmrtCudaStep *step, long long prefix)
      : layer(step->kv + prefix * step->blockTokens), blockBytes(step->blockBytes),
        headBytes(step->blockTokens * kTokenBytes),
        blockTokens(static_cast<int>(step->blockTokens)) {}

  LLMC_METHOD unsigned char *key(long long block, int offset, int head) const {
    return layer + block * blockBytes + head * headBytes + offset * kKeyBytes;
  }
  LLMC_METHOD unsigned char *value(long long block, int offset, int head) const {
    return layer + block * blockBytes + head * headBytes +
           static_cast<long long>(blockTokens) * kKeyBytes + offset * kValueBytes;
  }
  /// The scales of an int8 key and value: all keys', then all values'.
  LLMC_METHOD float *keyScale(long long slot, int head) const {
    return reinterpret_cast<float *>(value(slot / blockTokens, blockTokens, head)) +
           slot % blockTokens;
  }
  LLMC_METHOD float *valueScale(long long slot, int head) const {
    return keyScale(slot, head) + blockTokens;
  }
  /// By slot: block * blockTokens + offset.
  LLMC_METHOD unsigned char *key(long long slot, int head) const {
    return key(slot / blockTokens, static_cast<int>(slot % blockTokens), head);
  }
  LLMC_METHOD unsigned char *value(long long slot, int head) const {
    return value(slot / blockTokens, static_cast<int>(slot % blockTokens), head);
  }
};

#endif // LLMC_CUDA_KVCACHE_CUH
