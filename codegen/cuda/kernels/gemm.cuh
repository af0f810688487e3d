//===- gemm.cuh - y = epilogue(x w^T) -------------------------------------------===//
//
// The order of a sum is fixed by the shape of w alone: its columns are cut into kSlices runs of
// steps; a slice is one chain of mma from zero; slices are added in ascending order. So every tile
// size below gives the same bits for every M.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CUDA_GEMM_CUH
#define LLMC_CUDA_GEMM_CUH

#include "activations.cuh"
#include "math.cuh"

/// What all cuts of one product share.
///   Config: kRows, K, N (rows of w; with kGlu gate and up in alternating tiles), Weight,
///           Activations (FloatRows or Int8Rows), kSlices, kGlu, kBias, kResidual;
///           static float epilogue(float sum, float bias, float residual), or with kGlu
///           epilogue(float gate, float up, float residual)
template <class Config> struct GemmShape {
  static constexpr int kOutputs = Config::kGlu ? Config::N / 2 : Config::N; ///< columns of y
  static constexpr int kTiles = (kOutputs + 15) / 16 * (Config::kGlu ? 2 : 1);
  static constexpr int kSteps = WeightStep<typename Config::Weight>::steps(Config::K);
  static constexpr int kSliceSteps = (kSteps + Config::kSlices - 1) / Config::kSlices;
  static_assert(kSliceSteps * (Config::kSlices - 1) < kSteps, "no slice is empty");

  /// Epilogue and output of one 16 x 8 tile: the lane has rows 2g and 2g + 1 of tokens 2t, 2t + 1.
  LLMC_MEMBER void store(const LlmrtCudaBindings &b, const float (&first)[4],
                         const float (&second)[4], int outputTile, long long token0, long long rows,
                         int lane) {
    constexpr int kBiasAt = 2, kResidualAt = 2 + (Config::kBias ? 1 : 0),
                  kOut = kResidualAt + (Config::kResidual ? 1 : 0);
    const int column = outputTile * 16 + lane / 4 * 2;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const long long token = token0 + lane % 4 * 2 + i;
      if (column >= kOutputs || token >= rows)
        continue;
      const long long at = token * kOutputs + column;
      float *y = binding<float>(b, kOut) + at;
      const float *residual =
          Config::kResidual ? binding<const float>(b, kResidualAt) + at : nullptr;
      const float *bias = Config::kBias ? binding<const float>(b, kBiasAt) + column : nullptr;
      if constexpr (kOutputs % 2 == 0) { // whole sectors
        const float2 none = make_float2(0.0f, 0.0f);
        const float2 r = Config::kResidual ? *reinterpret_cast<const float2 *>(residual) : none;
        const float2 c = Config::kBias ? *reinterpret_cast<const float2 *>(bias) : none;
        *reinterpret_cast<float2 *>(y) = make_float2(value(first[i], second[i], c.x, r.x),
                                                     value(first[i + 2], second[i + 2], c.y, r.y));
      } else {
        y[0] = value(first[i], second[i], Config::kBias ? bias[0] : 0.0f,
                     Config::kResidual ? residual[0] : 0.0f);
        if (column + 1 < kOutputs)
          y[1] = value(first[i + 2], second[i + 2], Config::kBias ? bias[1] : 0.0f,
                       Config::kResidual ? residual[1] : 0.0f);
      }
    }
  }

private:
  LLMC_MEMBER float value(float first, [[maybe_unused]] float second, [[maybe_unused]] float bias,
                          float residual) {
    if constexpr (Config::kGlu)
      return Config::epilogue(first, second, residual);
    else
      return Config::epilogue(first, bias, residual);
  }
};

/// A block computes kRowTiles tiles of 16 rows of w for 8 * kTokenTiles tokens; each of its warps
/// takes one slice of the columns and keeps its own ring of stages in flight, so that few blocks
/// suffice to load the memory. Grid: (tiles / kRowTiles, tokens / (8 kTokenTiles)).
///   Config: that of GemmShape, and kRowTiles, kStepsAStage, kStages
template <class Config, int kTokenTiles> struct SlicedGemm {
  using Weight = typename Config::Weight;
  using Step = WeightStep<Weight>;
  static constexpr Compute C = Step::kCompute;
  static constexpr int K = Config::K;
  static constexpr int kSlices = Config::kSlices, kRowTiles = Config::kRowTiles,
                       kStages = Config::kStages;
  static constexpr int kThreads = 32 * kSlices;
  using Product = GemmShape<Config>;
  static constexpr int kSteps = Product::kSteps, kSliceSteps = Product::kSliceSteps;
  static_assert(Product::kTiles % kRowTiles == 0, "every tile of a block exists");
  static constexpr int kStageBytes = Config::kStepsAStage * kRowTiles * Step::kBytes;

  struct Shared {
    union {
      unsigned char ring[kSlices][kStages][kStageBytes];
      float4 partial[kSlices][kRowTiles][kTokenTiles][32];
    };
  };

  LLMC_MEMBER void run(const LlmrtCudaStep *step, const LlmrtCudaBindings &b) {
    LLMC_SHARED(Shared, shared);
    const long long rows = countRows<Config::kRows>(step);
    const long long firstToken = static_cast<long long>(blockIdx.y) * 8 * kTokenTiles;
    if (firstToken >= rows)
      return;
    const int lane = threadIdx.x % 32, slice = threadIdx.x / 32;
    const int firstTile = blockIdx.x * kRowTiles;
    const unsigned char *x[kTokenTiles];
    bool keep[kTokenTiles];
#pragma unroll
    for (int j = 0; j < kTokenTiles; ++j) {
      const long long token = firstToken + 8 * j + lane / 4;
      keep[j] = token < rows;
      x[j] = binding<const unsigned char>(b, 0) +
             (keep[j] ? token : 0) * Config::Activations::kRowBytes;
    }
    multiplyTiles(shared, binding<const unsigned char>(b, 1) + firstTile * Weight::tileBytes(K), x,
                  keep, firstTile, slice, lane,
                  [&](int tile, int tokens, const float (&first)[4], const float (&second)[4]) {
                    Product::store(b, first, second, tile, firstToken + 8 * tokens, rows, lane);
                  });
  }

  /// The block's tiles, from \p w on, times the rows \p x of the lane's tokens (g of each 8) where
  /// \p keep says that there is one. \p store gets each tile of 16 outputs for 8 tokens, by the
  /// number of the tile of outputs; with kGlu gate and up.
  template <class Store>
  LLMC_MEMBER void
  multiplyTiles(Shared &shared, const unsigned char *w, const unsigned char *(&x)[kTokenTiles],
                const bool (&keep)[kTokenTiles], int firstTile, int slice, int lane, Store store) {
    float sums[kRowTiles][kTokenTiles][4] = {};
    multiplySlice(sums, shared.ring[slice], w, x, keep, firstTile, slice, lane);

    // Every warp is done with the ring before the partial sums take its place.
    copyAsyncWait<0>();
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
      for (int j = 0; j < kTokenTiles; ++j)
        shared.partial[slice][i][j][lane] =
            make_float4(sums[i][j][0], sums[i][j][1], sums[i][j][2], sums[i][j][3]);
    __syncthreads();
    constexpr int kStride = Config::kGlu ? 2 : 1;
    for (int i = slice; i < kRowTiles / kStride * kTokenTiles; i += kSlices) {
      const int tile = i / kTokenTiles * kStride, tokens = i % kTokenTiles;
      float first[4], second[4];
      addSlices(first, shared, tile, tokens, lane);
      if constexpr (Config::kGlu)
        addSlices(second, shared, tile + 1, tokens, lane);
      store((firstTile + tile) / kStride, tokens, first, second);
    }
  }

private:
  LLMC_MEMBER void addSlices(float (&sum)[4], const Shared &shared, int tile, int tokens,
                             int lane) {
#pragma unroll
    for (int s = 0; s < kSlices; ++s) {
      const float4 v = shared.partial[s][tile][tokens][lane];
      if (s == 0) {
        sum[0] = v.x, sum[1] = v.y, sum[2] = v.z, sum[3] = v.w;
      } else {
        sum[0] += v.x, sum[1] += v.y, sum[2] += v.z, sum[3] += v.w;
      }
    }
  }

  LLMC_MEMBER void multiplySlice(float (&sums)[kRowTiles][kTokenTiles][4],
                                 unsigned char (&ring)[kStages][kStageBytes],
                                 const unsigned char *w, const unsigned char *(&x)[kTokenTiles],
                                 const bool (&keep)[kTokenTiles], int firstTile, int slice,
                                 int lane) {
    const int t = lane % 4;
    const int begin = slice * kSliceSteps, end = min(kSteps, begin + kSliceSteps);
    constexpr int U = Config::kStepsAStage;
    const int stages = (end - begin + U - 1) / U;

    // Stage s of this warp: U steps of kRowTiles tiles, 16 bytes a lane at a time.
    auto copyStage = [&](int s) {
      constexpr int kPieces = U * kRowTiles * Step::kPieces;
      unsigned char *stage = ring[s % kStages];
#pragma unroll
      for (int i = 0; i < (kPieces + 31) / 32; ++i) {
        const int p = i * 32 + lane;
        if (p < kPieces) {
          int at, piece;
          Step::find(p, U * kRowTiles, at, piece);
          const int tile = at / U, step = begin + s * U + at % U;
          Step::template copyPiece<K>(stage + at * Step::kBytes, w + tile * Weight::tileBytes(K),
                                      step, piece, step < end);
        }
      }
    };

    float values[kTokenTiles][8];
#pragma unroll
    for (int j = 0; j < kTokenTiles; ++j)
      Config::Activations::load(values[j], x[j], begin, t, keep[j]);

#pragma unroll
    for (int s = 0; s < kStages - 1; ++s) {
      if (s < stages)
        copyStage(s);
      copyAsyncCommit();
    }
    for (int s = 0; s < stages; ++s) {
      copyAsyncWait<kStages - 2>();
      __syncwarp();
      // The slot of stage s - 1, which no lane reads any more.
      if (s + kStages - 1 < stages)
        copyStage(s + kStages - 1);
      copyAsyncCommit();
      const unsigned char *stage = ring[s % kStages];
#pragma unroll
      for (int u = 0; u < U; ++u) {
        const int step = begin + s * U + u;
        if (step >= end)
          break;
        TokenFragment<C> tokens[kTokenTiles];
#pragma unroll
        for (int j = 0; j < kTokenTiles; ++j) {
          pack(tokens[j], values[j]);
          Config::Activations::load(values[j], x[j], step + 1, t, keep[j] && step + 1 < end);
        }
#pragma unroll
        for (int i = 0; i < kRowTiles; ++i) {
          WeightFragment<C> weights;
          Step::load(weights, stage + (i * U + u) * Step::kBytes, lane);
#pragma unroll
          for (int j = 0; j < kTokenTiles; ++j)
            multiply(sums[i][j], weights, tokens[j]);
        }
      }
    }
  }
};

#endif // LLMC_CUDA_GEMM_CUH
