//===- rope.cuh - rotary positions, and writing keys and values ----------------===//
#ifndef LLMC_CUDA_ROPE_CUH
#define LLMC_CUDA_ROPE_CUH

#include "kvcache.cuh"
#include "math.cuh"
#include "rows.cuh"

/// y[t] = (cos, sin)(positions[t] * frequency[i]) * scale, a block a token.
///   Config: kHalf, kScale
template <class Config>
LLMC_FN void runRopeAngles(const LlmrtCudaStep *step, const LlmrtCudaBindings &b) {
  const long long t = blockIdx.x;
  if (t >= step->T)
    return;
  const float position = static_cast<float>(step->positions[t]);
  float *y = binding<float>(b, 1) + t * 2 * Config::kHalf;
  for (int i = threadIdx.x; i < Config::kHalf; i += blockDim.x) {
    const SinCos v = sinCos(binding<const float>(b, 0)[i] * position);
    y[i] = v.cosine * Config::kScale;
    y[Config::kHalf + i] = v.sine * Config::kScale;
  }
}

/// The same from tables of cosines and sines: f32[positions, half].
///   Config: kHalf, kPositions
template <class Config>
LLMC_FN void runRopeGather(const LlmrtCudaStep *step, const LlmrtCudaBindings &b) {
  const long long t = blockIdx.x;
  if (t >= step->T)
    return;
  const long long p = min(step->positions[t], Config::kPositions - 1);
  float *y = binding<float>(b, 2) + t * 2 * Config::kHalf;
  for (int i = threadIdx.x; i < Config::kHalf; i += blockDim.x) {
    y[i] = binding<const float>(b, 0)[p * Config::kHalf + i];
    y[Config::kHalf + i] = binding<const float>(b, 1)[p * Config::kHalf + i];
  }
}

/// Rotates the first 2 \p Half values of a head by the angles' \p cosines, which the sines follow;
/// \p value(i) gives one, \p store(i, v) takes it.
template <int Half, bool Interleaved, class Value, class Store>
LLMC_FN void rotate(const float *cosines, int lane, Value value, Store store) {
  for (int i = lane; i < Half; i += 32) {
    const int first = Interleaved ? 2 * i : i;
    const int second = Interleaved ? 2 * i + 1 : i + Half;
    const float a = value(first), c = value(second);
    const float cosine = cosines[i], sine = cosines[Half + i];
    store(first, fmaf(-c, sine, a * cosine));
    store(second, fmaf(a, sine, c * cosine));
  }
}

/// y[t] = long[t] where the token's sequence takes longrope's long factors, else short[t].
///   Config: kHalf
template <class Config>
LLMC_FN void runRopeSelect(const LlmrtCudaStep *step, const LlmrtCudaBindings &b) {
  const long long t = blockIdx.x;
  if (t >= step->T)
    return;
  const float *x = binding<const float>(b, step->longContext[t] ? 1 : 0) + t * 2 * Config::kHalf;
  for (int i = threadIdx.x; i < 2 * Config::kHalf; i += blockDim.x)
    binding<float>(b, 2)[t * 2 * Config::kHalf + i] = x[i];
}

/// Normalises (optionally) and rotates the heads of Q and K, writes Q out and K and V into the
/// cache. A warp a head; grid: (tokens, ceil(heads + 2 KV heads / warps)).
///   Config: kHeads, kKvHeads, kKeySize, kValueSize, kKv (element of the cache), kRotary,
///           kInterleaved, kSplit, kQkNorm, kEps, kPlusOne, kThreads
template <class Config> struct RopeAppend {
  static constexpr int D = Config::kKeySize, DV = Config::kValueSize;
  static constexpr int kHalf = Config::kRotary / 2;
  static constexpr int kJobs = Config::kHeads + 2 * Config::kKvHeads;
  static constexpr int kWarps = Config::kThreads / 32;
  // Bindings: qkv, or q, k, v; then angles, q_norm, k_norm where there are; then the output.
  static constexpr int kAngles = Config::kSplit ? 3 : 1;
  static constexpr int kNorms = kAngles + (Config::kRotary > 0 ? 1 : 0);
  static constexpr int kOut = kNorms + (Config::kQkNorm ? 2 : 0);

  LLMC_MEMBER void run(const LlmrtCudaStep *step, const LlmrtCudaBindings &b) {
    const long long t = blockIdx.x;
    const int job = blockIdx.y * kWarps + threadIdx.x / 32;
    if (t >= step->T || job >= kJobs)
      return;
    constexpr int kQ = Config::kHeads * D, kK = Config::kKvHeads * D, kV = Config::kKvHeads * DV;
    if (job < Config::kHeads) {
      const float *q = binding<const float>(b, 0) + t * (Config::kSplit ? kQ : kQ + kK + kV);
      float *out = binding<float>(b, kOut) + (t * Config::kHeads + job) * D;
      head(b, t, q + job * D, 0, [&](int i, float v) { out[i] = v; });
      return;
    }
    const long long slot = step->slots[t];
    const bool isKey = job < Config::kHeads + Config::kKvHeads;
    const int kvHead = job - Config::kHeads - (isKey ? 0 : Config::kKvHeads);
    using Cache = KvCache<Config::kKvHeads, D, DV, Config::kKv>;
    const Cache cache(step, b.scalars[0]);
    if (isKey) {
      const float *k = Config::kSplit ? binding<const float>(b, 1) + t * kK
                                      : binding<const float>(b, 0) + t * (kQ + kK + kV) + kQ;
      writeCache(cache.key(slot, kvHead), cache.keyScale(slot, kvHead),
                 [&](auto store) { head(b, t, k + kvHead * D, 1, store); });
    } else {
      const float *v =
          (Config::kSplit ? binding<const float>(b, 2) + t * kV
                          : binding<const float>(b, 0) + t * (kQ + kK + kV) + kQ + kK) +
          kvHead * DV;
      writeCache(cache.value(slot, kvHead), cache.valueScale(slot, kvHead), [&](auto store) {
        for (int i = threadIdx.x % 32; i < DV; i += 32)
          store(i, v[i]);
      });
    }
  }

private:
  /// Writes a row of the cache: \p values calls its argument with each index and value of the lane.
  /// int8: to nearest even with scale = largest / 127; NaN or infinity make the scale NaN.
  template <class Values>
  LLMC_MEMBER void writeCache(unsigned char *row, float *scaleOfRow, Values values) {
    if constexpr (Config::kKv != kI8) {
      values([&](int i, float v) { storeElement<Config::kKv>(row, i, v); });
    } else {
      float largest = 0.0f, strange = 0.0f;
      values([&](int, float v) {
        largest = fmaxf(largest, fabsf(v));
        strange = fabsf(v) <= 3.402823466e38f ? strange : 1.0f;
      });
      largest = warpMax(largest);
      strange = warpMax(strange);
      const float scale = strange > 0.0f ? __uint_as_float(0x7fc00000u) : largest / 127.0f;
      const bool zero = !(scale > 0.0f);
      values([&](int i, float v) {
        const int q = zero ? 0 : max(-127, min(127, __float2int_rn(v / scale)));
        reinterpret_cast<signed char *>(row)[i] = static_cast<signed char>(q);
      });
      if (threadIdx.x % 32 == 0)
        *scaleOfRow = scale;
    }
  }

  /// One head of Q (\p norm 0) or K (1).
  template <class Store>
  LLMC_MEMBER void head(const LlmrtCudaBindings &b, long long t, const float *x, int norm,
                        Store store) {
    const int lane = threadIdx.x % 32;
    float r = 1.0f;
    if constexpr (Config::kQkNorm) {
      float squares = 0.0f;
      for (int i = lane; i < D; i += 32)
        squares = fmaf(x[i], x[i], squares);
      r = 1.0f / sqrtf(warpSum(squares) / static_cast<float>(D) + Config::kEps);
    }
    auto value = [&](int i) -> float {
      if constexpr (Config::kQkNorm) {
        const float w = binding<const float>(b, kNorms + norm)[i];
        return x[i] * r * (Config::kPlusOne ? w + 1.0f : w);
      } else {
        return x[i];
      }
    };
    if constexpr (kHalf > 0)
      rotate<kHalf, Config::kInterleaved>(binding<const float>(b, kAngles) + t * 2 * kHalf, lane,
                                          value, store);
    for (int i = 2 * kHalf + lane; i < D; i += 32)
      store(i, value(i));
  }
};

/// The cache of multi-head latent attention (DeepSeek-V2, 2024): keys [latent, rotated key] into
/// its one head, and queries [absorbed, rotated query] for all heads. A query has kStride values,
/// the last kRotary of which are rotated. A warp a head, the last one the key; grid: (tokens,
/// ceil((heads
/// + 1) / warps)). Bindings: absorbed, query, latent, key, angles, queries.
///   Config: kHeads, kLatent, kRotary, kStride, kKv, kInterleaved, kThreads
template <class Config> struct LatentAppend {
  static constexpr int kHeads = Config::kHeads, kLatent = Config::kLatent,
                       kRotary = Config::kRotary;
  static constexpr int kSize = kLatent + kRotary, kWarps = Config::kThreads / 32;

  LLMC_MEMBER void run(const LlmrtCudaStep *step, const LlmrtCudaBindings &b) {
    const long long t = blockIdx.x;
    const int head = blockIdx.y * kWarps + threadIdx.x / 32;
    if (t >= step->T || head > kHeads)
      return;
    if (head < kHeads) {
      const long long at = t * kHeads + head;
      float *out = binding<float>(b, 5) + at * kSize;
      write(b, t, binding<const float>(b, 0) + at * kLatent,
            binding<const float>(b, 1) + at * Config::kStride + (Config::kStride - kRotary),
            [&](int i, float v) { out[i] = v; });
    } else {
      // Values are read out of the keys: none are stored.
      const KvCache<1, kSize, 0, Config::kKv> cache(step, b.scalars[0]);
      unsigned char *row = cache.key(step->slots[t], 0);
      write(b, t, binding<const float>(b, 2) + t * kLatent,
            binding<const float>(b, 3) + t * kRotary,
            [&](int i, float v) { storeElement<Config::kKv>(row, i, v); });
    }
  }

private:
  /// [kLatent] as it is, then [kRotary] rotated.
  template <class Store>
  LLMC_MEMBER void write(const LlmrtCudaBindings &b, long long t, const float *latent,
                         const float *rotary, Store store) {
    const int lane = threadIdx.x % 32;
    for (int i = lane; i < kLatent; i += 32)
      store(i, latent[i]);
    rotate<kRotary / 2, Config::kInterleaved>(
        binding<const float>(b, 4) + t * kRotary, lane, [&](int i) -> float { return rotary[i]; },
        [&](int i, float v) { store(kLatent + i, v); });
  }
};

#endif // LLMC_CUDA_ROPE_CUH
