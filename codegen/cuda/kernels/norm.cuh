//===- norm.cuh - RMS and layer normalisation, int8 rows -----------------------===//
#ifndef LLMC_CUDA_NORM_CUH
#define LLMC_CUDA_NORM_CUH

#include "rows.cuh"

/// The sum of \p v over a block of \p Warps warps, in every thread: lanes by butterfly, then warps
/// ascending. \p partial is used once a call; a barrier separates calls.
template <int Warps> LLMC_FN float blockSum(float v, float (&partial)[Warps]) {
  v = warpSum(v);
  if constexpr (Warps > 1) {
    __syncthreads();
    if (threadIdx.x % 32 == 0)
      partial[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0.0f;
#pragma unroll
    for (int i = 0; i < Warps; ++i)
      v += partial[i];
  }
  return v;
}

/// Quantizes \p get(0 .. K-1) to an int8 row, a warp a group: scale = largest / 127, values to
/// nearest even. A group with NaN or infinity gets the scale NaN.
template <int K, int Group, class Get> LLMC_FN void storeInt8Row(unsigned char *row, Get get) {
  using Row = Int8Row<K, Group>;
  float *scales = reinterpret_cast<float *>(row + Row::kPadded);
  int *sums = reinterpret_cast<int *>(scales + Row::kGroups);
  const int lane = threadIdx.x % 32;
  for (int group = threadIdx.x / 32; group < Row::kGroups; group += blockDim.x / 32) {
    float v[(Group + 31) / 32], largest = 0.0f;
    bool finite = true;
#pragma unroll
    for (int j = 0; j < (Group + 31) / 32; ++j) {
      const int i = 32 * j + lane;
      v[j] = i < Group && group * Group + i < K ? get(group * Group + i) : 0.0f;
      largest = fmaxf(largest, fabsf(v[j]));
      finite = finite && fabsf(v[j]) <= 3.402823466e38f;
    }
    largest = warpMax(largest);
    finite = __ballot_sync(kAllLanes, finite) == kAllLanes;
    const float scale = finite ? largest / 127.0f : __uint_as_float(0x7fc00000u);
    const bool zero = !(scale > 0.0f);
    int sum = 0;
#pragma unroll
    for (int j = 0; j < (Group + 31) / 32; ++j) {
      const int q = zero ? 0 : max(-127, min(127, __float2int_rn(v[j] / scale)));
      if (32 * j + lane < Group)
        reinterpret_cast<signed char *>(row)[group * Group + 32 * j + lane] =
            static_cast<signed char>(q);
      sum += q;
    }
#pragma unroll
    for (int i = 16; i > 0; i >>= 1)
      sum += __shfl_xor_sync(kAllLanes, sum, i);
    if (lane == 0) {
      scales[group] = scale;
      sums[group] = sum;
    }
  }
}

/// y = normalised x * w (+ b), a block a row.
///   Config: kRows, kWidth, kLayerNorm, kEps, kPlusOne, kBias, kThreads,
///           kInt8 (y holds int8 rows), kGroup
template <class Config> struct Norm {
  static constexpr int kWarps = Config::kThreads / 32;
  struct Shared {
    float partial[kWarps];
  };

  LLMC_MEMBER void run(const LlmrtCudaStep *step, const LlmrtCudaBindings &b) {
    constexpr int D = Config::kWidth;
    LLMC_SHARED(Shared, shared);
    const long long row = blockIdx.x;
    if (row >= countRows<Config::kRows>(step))
      return;
    const float *x = binding<const float>(b, 0) + row * D;
    const float *w = binding<const float>(b, 1);
    float mean = 0.0f;
    if constexpr (Config::kLayerNorm) {
      float sum = 0.0f;
      for (int i = threadIdx.x; i < D; i += Config::kThreads)
        sum += x[i];
      mean = blockSum(sum, shared.partial) / static_cast<float>(D);
    }
    float squares = 0.0f;
    for (int i = threadIdx.x; i < D; i += Config::kThreads) {
      const float v = x[i] - mean;
      squares = fmaf(v, v, squares);
    }
    squares = blockSum(squares, shared.partial);
    const float r = 1.0f / sqrtf(squares / static_cast<float>(D) + Config::kEps);
    auto value = [&](int i) -> float {
      const float weight = Config::kPlusOne ? w[i] + 1.0f : w[i];
      const float v = (x[i] - mean) * r;
      if constexpr (Config::kBias)
        return fmaf(v, weight, binding<const float>(b, 2)[i]);
      else
        return v * weight;
    };
    constexpr int kOut = Config::kBias ? 3 : 2;
    if constexpr (Config::kInt8) {
      storeInt8Row<D, Config::kGroup>(
          binding<unsigned char>(b, kOut) + row * Int8Row<D, Config::kGroup>::kBytes, value);
    } else {
      float *y = binding<float>(b, kOut) + row * D;
      for (int i = threadIdx.x; i < D; i += Config::kThreads)
        y[i] = value(i);
    }
  }
};

/// x f32[M, K] to int8 rows, a block a row.
///   Config: kRows, kWidth, kGroup
template <class Config>
LLMC_FN void runQuantize(const LlmrtCudaStep *step, const LlmrtCudaBindings &b) {
  const long long row = blockIdx.x;
  if (row >= countRows<Config::kRows>(step))
    return;
  const float *x = binding<const float>(b, 0) + row * Config::kWidth;
  storeInt8Row<Config::kWidth, Config::kGroup>(
      binding<unsigned char>(b, 1) + row * Int8Row<Config::kWidth, Config::kGroup>::kBytes,
      [&](int i) -> float { return x[i]; });
}

#endif // LLMC_CUDA_NORM_CUH
