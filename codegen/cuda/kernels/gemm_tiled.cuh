//===- gemm_tiled.cuh - y = epilogue(x w^T) for many tokens ----------------------===//
//
// For prompts the tensor cores are the limit: a block shares what it reads, a warp holds 32 rows by
// 64 tokens (f32: 32) in registers. The bits are those of SlicedGemm: a slice is one chain of mma
// from zero, slices are added in ascending order, here one after the other in the same registers.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CUDA_GEMM_TILED_CUH
#define LLMC_CUDA_GEMM_TILED_CUH

#include "gemm.cuh"

/// A block of WarpRows x WarpTokens warps computes 32 WarpRows rows of w for 8 kTokenTiles
/// WarpTokens tokens. Grid: (tiles of 16 rows / (2 WarpRows), tokens / (8 kTokenTiles WarpTokens)).
/// Config as for SlicedGemm.
template <class Config, int WarpRows, int WarpTokens> struct TiledGemm {
  using Weight = typename Config::Weight;
  using Step = WeightStep<Weight>;
  using Product = GemmShape<Config>;
  static constexpr Compute C = Step::kCompute;
  static constexpr int K = Config::K;
  static constexpr int kThreads = 32 * WarpRows * WarpTokens;
  /// Of a warp; operands of f32 take twice the registers.
  static constexpr int kRowTiles = 2, kTokenTiles = C == Compute::F32 ? 4 : 8;
  static constexpr int kBlockTiles = WarpRows * kRowTiles;
  static constexpr int kBlockTokenTiles = WarpTokens * kTokenTiles;
  static constexpr int kStepsAStage = Config::kTiledSteps, kStages = Config::kTiledStages;
  static constexpr int kAllStages = (Product::kSteps + kStepsAStage - 1) / kStepsAStage;
  static constexpr int kStageBytes = kStepsAStage * kBlockTiles * Step::kBytes;
  /// What a lane needs of 8 tokens and one step, in the order of its fragment.
  static constexpr int kLaneBytes = C == Compute::F32 ? 32 : 16;
  static constexpr int kItems = kStepsAStage * kBlockTokenTiles * 32 / kThreads;

  struct Shared {
    __align__(16) unsigned char ring[kStages][kStageBytes];
    /// [step][8 tokens][16 bytes][lane]
    __align__(16) unsigned char x[2][kStepsAStage][kBlockTokenTiles][32 * kLaneBytes];
    /// The slices so far: each lane its own sums, which registers have no room for.
    float4 slices[Config::kSlices > 1 ? kThreads / 32 : 1][kRowTiles][kTokenTiles][32];
  };

  LLMC_MEMBER void run(const LlmrtCudaStep *step, const LlmrtCudaBindings &b) {
    LLMC_SHARED(Shared, shared);
    const long long rows = countRows<Config::kRows>(step);
    const long long firstToken = static_cast<long long>(blockIdx.y) * 8 * kBlockTokenTiles;
    if (firstToken >= rows)
      return;
    const int firstTile = blockIdx.x * kBlockTiles;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int warpRow = warp % WarpRows, warpToken = warp / WarpRows;

    float sums[kRowTiles][kTokenTiles][4] = {};
    float values[kItems][8];
    loadTokens(values, b, firstToken, rows, 0);
    storeTokens(shared, values, 0);
#pragma unroll
    for (int s = 0; s < kStages - 1; ++s) {
      if (s < kAllStages)
        copyWeights(shared, b, firstTile, s);
      copyAsyncCommit();
    }
    for (int s = 0; s < kAllStages; ++s) {
      if (s + 1 < kAllStages)
        loadTokens(values, b, firstToken, rows, s + 1);
      copyAsyncWait<kStages - 2>();
      // Stage s is there for all, and all are done with stage s - 1.
      __syncthreads();
      if (s + kStages - 1 < kAllStages)
        copyWeights(shared, b, firstTile, s + kStages - 1);
      copyAsyncCommit();
#pragma unroll
      for (int u = 0; u < kStepsAStage; ++u) {
        const int at = s * kStepsAStage + u;
        if (at >= Product::kSteps)
          break;
        if (Config::kSlices > 1 && at > 0 && at % Product::kSliceSteps == 0)
          endSlice(shared.slices[warp], sums, at == Product::kSliceSteps, lane);
        multiplyStep(sums, shared, s, u, warpRow, warpToken, lane);
      }
      if (s + 1 < kAllStages)
        storeTokens(shared, values, s + 1);
    }
    constexpr int kStride = Config::kGlu ? 2 : 1;
#pragma unroll
    for (int i = 0; i < kRowTiles; i += kStride)
#pragma unroll
      for (int j = 0; j < kTokenTiles; ++j) {
        const int last = i + kStride - 1;
        if constexpr (Product::kSteps > Product::kSliceSteps) {
          addTo(sums[i][j], shared.slices[warp][i][j][lane]);
          if (last != i)
            addTo(sums[last][j], shared.slices[warp][last][j][lane]);
        }
        const int tile = firstTile + warpRow * kRowTiles + i;
        Product::store(b, sums[i][j], sums[last][j], tile / kStride,
                       firstToken + 8 * (warpToken * kTokenTiles + j), rows, lane);
      }
  }

private:
  /// sums = before + sums
  LLMC_MEMBER void addTo(float (&sums)[4], const float4 before) {
    sums[0] = before.x + sums[0], sums[1] = before.y + sums[1];
    sums[2] = before.z + sums[2], sums[3] = before.w + sums[3];
  }

  /// slices += sums (= for the first), and sums = 0.
  LLMC_MEMBER void endSlice(float4 (&slices)[kRowTiles][kTokenTiles][32],
                            float (&sums)[kRowTiles][kTokenTiles][4], bool first, int lane) {
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
      for (int j = 0; j < kTokenTiles; ++j) {
        float (&sum)[4] = sums[i][j];
        if (!first)
          addTo(sum, slices[i][j][lane]);
        slices[i][j][lane] = make_float4(sum[0], sum[1], sum[2], sum[3]);
        sum[0] = sum[1] = sum[2] = sum[3] = 0.0f;
      }
  }

  LLMC_MEMBER void copyWeights(Shared &shared, const LlmrtCudaBindings &b, int firstTile, int s) {
    constexpr int kPieces = kStepsAStage * kBlockTiles * Step::kPieces;
    const unsigned char *w = binding<const unsigned char>(b, 1) + firstTile * Weight::tileBytes(K);
    unsigned char *stage = shared.ring[s % kStages];
#pragma unroll
    for (int i = 0; i < (kPieces + kThreads - 1) / kThreads; ++i) {
      const int p = i * kThreads + threadIdx.x;
      if (kPieces % kThreads == 0 || p < kPieces) {
        int at, piece;
        Step::find(p, kStepsAStage * kBlockTiles, at, piece);
        const int tile = at / kStepsAStage, step = s * kStepsAStage + at % kStepsAStage;
        Step::template copyPiece<K>(stage + at * Step::kBytes, w + tile * Weight::tileBytes(K),
                                    step, piece,
                                    step < Product::kSteps && firstTile + tile < Product::kTiles);
      }
    }
  }

  /// Item \p i of this thread: which step of the stage, which 8 tokens, which lane of theirs.
  struct Item {
    int step, tokens, lane;
    LLMC_METHOD explicit Item(int i) {
      const int at = i * kThreads + threadIdx.x;
      lane = at % 32;
      tokens = at / 32 % kBlockTokenTiles;
      step = at / 32 / kBlockTokenTiles;
    }
  };

  LLMC_MEMBER void loadTokens(float (&values)[kItems][8], const LlmrtCudaBindings &b,
                              long long firstToken, long long rows, int s) {
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const Item item(i);
      const long long token = firstToken + 8 * item.tokens + item.lane / 4;
      const int step = s * kStepsAStage + item.step;
      const bool exists = token < rows && step < Product::kSteps;
      Config::Activations::load(values[i],
                                binding<const unsigned char>(b, 0) +
                                    (exists ? token : 0) * Config::Activations::kRowBytes,
                                step, item.lane % 4, exists);
    }
  }

  LLMC_MEMBER void storeTokens(Shared &shared, const float (&values)[kItems][8], int s) {
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const Item item(i);
      unsigned char *to = shared.x[s % 2][item.step][item.tokens] + item.lane * 16;
      if constexpr (C == Compute::F32) {
        *reinterpret_cast<float4 *>(to) =
            make_float4(values[i][0], values[i][1], values[i][2], values[i][3]);
        *reinterpret_cast<float4 *>(to + 512) =
            make_float4(values[i][4], values[i][5], values[i][6], values[i][7]);
      } else {
        TokenFragment<C> f;
        pack(f, values[i]);
        *reinterpret_cast<uint4 *>(to) = make_uint4(f.b[0][0], f.b[0][1], f.b[1][0], f.b[1][1]);
      }
    }
  }

  LLMC_MEMBER void loadFragment(TokenFragment<C> &f, const unsigned char *from) {
    if constexpr (C == Compute::F32) {
      const float4 first = *reinterpret_cast<const float4 *>(from);
      const float4 second = *reinterpret_cast<const float4 *>(from + 512);
      const float v[8] = {first.x,  first.y,  first.z,  first.w,
                          second.x, second.y, second.z, second.w};
      pack(f, v);
    } else {
      const uint4 v = *reinterpret_cast<const uint4 *>(from);
      f.b[0][0] = v.x, f.b[0][1] = v.y, f.b[1][0] = v.z, f.b[1][1] = v.w;
    }
  }

  LLMC_MEMBER void multiplyStep(float (&sums)[kRowTiles][kTokenTiles][4], const Shared &shared,
                                int s, int u, int warpRow, int warpToken, int lane) {
    const unsigned char *stage = shared.ring[s % kStages];
    WeightFragment<C> weights[kRowTiles];
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i)
      Step::load(weights[i], stage + ((warpRow * kRowTiles + i) * kStepsAStage + u) * Step::kBytes,
                 lane);
#pragma unroll
    for (int j = 0; j < kTokenTiles; ++j) {
      TokenFragment<C> tokens;
      loadFragment(tokens, shared.x[s % 2][u][warpToken * kTokenTiles + j] + lane * 16);
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i)
        multiply(sums[i][j], weights[i], tokens);
    }
  }
};

#endif // LLMC_CUDA_GEMM_TILED_CUH
