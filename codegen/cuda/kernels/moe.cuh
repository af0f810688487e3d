//===- moe.cuh - mixtures of experts --------------------------------------------===//
//
// The router, the products by the matrices that it names, and the sum of what they give. A product
// is SlicedGemm's, bit for bit: which rows share a pass over a matrix changes nothing.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CUDA_MOE_CUH
#define LLMC_CUDA_MOE_CUH

#include "gemm.cuh"

/// How a router scores: the values of the plan's `scoring`.
enum Scoring { kSoftmax = 0, kScoreSigmoid = 1, kSoftmaxChosen = 2 };

/// ids[m], weights[m] = the kChosen best experts of logits[m], largest first, the lower index of
/// equals first. A warp a row.
///   Config: kRows, kExperts, kChosen, kScoring, kNormalize, kCorrection, kGroups (0: none),
///           kTopGroups, kGroupBestTwo, kScale
template <class Config> struct Route {
  static constexpr int E = Config::kExperts, C = Config::kChosen;
  struct Shared {
    float scores[E], choices[E], weights[C];
    float groups[Config::kGroups > 0 ? Config::kGroups : 1];
  };

  LLMC_MEMBER void run(const LlmrtCudaStep *step, const LlmrtCudaBindings &b) {
    LLMC_SHARED(Shared, shared);
    const long long row = blockIdx.x;
    if (row >= countRows<Config::kRows>(step))
      return;
    const int lane = threadIdx.x;
    constexpr int kIds = Config::kCorrection ? 2 : 1;
    const float *x = binding<const float>(b, 0) + row * E;
    for (int i = lane; i < E; i += 32)
      shared.scores[i] = Config::kScoring == kScoreSigmoid ? sigmoid(x[i]) : x[i];
    __syncwarp();
    if constexpr (Config::kScoring == kSoftmax)
      softmax(shared.scores, E, lane);
    for (int i = lane; i < E; i += 32)
      shared.choices[i] =
          Config::kCorrection ? shared.scores[i] + binding<const float>(b, 1)[i] : shared.scores[i];
    __syncwarp();
    if constexpr (Config::kGroups > 0)
      leaveGroups(shared, lane);
    for (int j = 0; j < C; ++j) {
      int best = largestIndex(shared.choices, E, lane);
      // Without numbers to choose by, any expert will do: the scores make the result NaN.
      best = best < 0 ? j : best;
      __syncwarp(); // all have looked
      if (lane == 0) {
        binding<int>(b, kIds)[row * C + j] = best;
        shared.weights[j] = shared.scores[best];
        shared.choices[best] = minusInfinite();
      }
      __syncwarp();
    }
    if constexpr (Config::kScoring == kSoftmaxChosen)
      softmax(shared.weights, C, lane);
    float sum = 1.0f;
    if constexpr (Config::kNormalize) {
      sum = 0.0f;
      for (int j = 0; j < C; ++j)
        sum = sum + shared.weights[j];
      sum = sum + 1e-20f; // zeros stay zeros
    }
    for (int j = lane; j < C; j += 32)
      binding<float>(b, kIds + 1)[row * C + j] = shared.weights[j] / sum * Config::kScale;
  }

private:
  LLMC_MEMBER float minusInfinite() { return __uint_as_float(0xff800000u); }

  /// In place. Sums as on the CPU: sixteen lanes ascending, then halves onto halves.
  LLMC_MEMBER void softmax(float *x, int count, int lane) {
    float largest = minusInfinite();
    for (int i = lane; i < count; i += 32)
      largest = fmaxf(largest, x[i]);
    largest = warpMax(largest);
    float sum = 0.0f;
    for (int i = lane; i < 16 && i < count; i += 16)
      for (int k = i; k < count; k += 16)
        sum += expAccurate(x[k] - largest);
#pragma unroll
    for (int i = 8; i > 0; i >>= 1)
      sum += __shfl_xor_sync(kAllLanes, sum, i);
    sum = __shfl_sync(kAllLanes, sum, 0);
    __syncwarp();
    for (int i = lane; i < count; i += 32)
      x[i] = expAccurate(x[i] - largest) / sum;
    __syncwarp();
  }

  /// The index of the largest that is neither -infinity nor NaN, the lowest of equals; -1: none.
  /// A lane looks at elements lane, lane + 32...: those that it wrote itself need no barrier.
  LLMC_MEMBER int largestIndex(const float *x, int count, int lane) {
    float most = minusInfinite();
    int best = -1;
    for (int i = lane; i < count; i += 32)
      if (x[i] > most)
        most = x[i], best = i;
#pragma unroll
    for (int i = 16; i > 0; i >>= 1) {
      const float other = __shfl_xor_sync(kAllLanes, most, i);
      const int index = __shfl_xor_sync(kAllLanes, best, i);
      if (other > most || (other == most && index >= 0 && (best < 0 || index < best)))
        most = other, best = index;
    }
    return best;
  }

  /// Excludes the experts of all groups but the kTopGroups best.
  LLMC_MEMBER void leaveGroups(Shared &shared, int lane) {
    constexpr int kSize = E / Config::kGroups;
    for (int g = lane; g < Config::kGroups; g += 32) {
      float most = minusInfinite(), second = minusInfinite();
      for (int i = g * kSize; i < (g + 1) * kSize; ++i) {
        const float v = shared.choices[i];
        if (v > most)
          second = most, most = v;
        else if (v > second)
          second = v;
      }
      shared.groups[g] = Config::kGroupBestTwo && kSize > 1 ? most + second : most;
    }
    for (int taken = 0; taken < Config::kTopGroups; ++taken) {
      const int g = largestIndex(shared.groups, Config::kGroups, lane);
      __syncwarp();
      if (g >= 0 && lane == 0)
        shared.groups[g] = minusInfinite(); // taken
      __syncwarp();
    }
    // What is still above -infinity was not taken.
    for (int i = lane; i < E; i += 32)
      if (shared.groups[i / kSize] > minusInfinite())
        shared.choices[i] = minusInfinite();
  }
};

/// y[m, slot] = f(x w[matrix]^T): with kMatrices of kTiles tiles one after the other, the matrix of
/// slot j is ids[m, j], or j. A block goes through all rows of one matrix, 8 kTokenTiles at a time.
/// Grid: (tiles / kRowTiles, matrices).
///   Config: as for SlicedGemm (kResidual is false), and kSlots, kIds (ids are bound), kXSlots
///           (each slot has an x of its own); static float product(float gate, float up) or (float sum)
template <class Config, int kTokenTiles> struct GroupedGemm {
  using Sliced = SlicedGemm<Config, kTokenTiles>;
  using Product = GemmShape<Config>;
  using Weight = typename Config::Weight;
  static constexpr int kTokens = 8 * kTokenTiles, kSlots = Config::kSlots;
  static constexpr int kBiasAt = Config::kIds ? 3 : 2, kOut = kBiasAt + (Config::kBias ? 1 : 0);

  struct Shared {
    typename Sliced::Shared gemm;
    int entries[kTokens]; ///< row * kSlots + slot
    int count;
  };

  LLMC_MEMBER void run(const LlmrtCudaStep *step, const LlmrtCudaBindings &b) {
    LLMC_SHARED(Shared, shared);
    const int rows = static_cast<int>(countRows<Config::kRows>(step));
    const int matrix = blockIdx.y, firstTile = blockIdx.x * Config::kRowTiles;
    const int lane = threadIdx.x % 32, slice = threadIdx.x / 32;
    const unsigned char *w = binding<const unsigned char>(b, 1) +
                             (static_cast<long long>(matrix) * Product::kTiles + firstTile) *
                                 Weight::tileBytes(Config::K);
    for (int next = 0;;) {
      next = gather(shared, b, rows, matrix, next, lane, slice);
      const int count = shared.count;
      if (count == 0)
        return;
      const unsigned char *x[kTokenTiles];
      bool keep[kTokenTiles];
#pragma unroll
      for (int j = 0; j < kTokenTiles; ++j) {
        keep[j] = 8 * j + lane / 4 < count;
        const int entry = keep[j] ? shared.entries[8 * j + lane / 4] : 0;
        x[j] = binding<const unsigned char>(b, 0) +
               static_cast<long long>(Config::kXSlots ? entry : entry / kSlots) *
                   Config::Activations::kRowBytes;
      }
      Sliced::multiplyTiles(
          shared.gemm, w, x, keep, firstTile, slice, lane,
          [&](int tile, int tokens, const float (&first)[4], const float (&second)[4]) {
            store(shared, b, first, second, tile, matrix, tokens, count, lane);
          });
      // The partial sums and the entries give way to the next rows.
      __syncthreads();
    }
  }

private:
  /// The next entries of \p matrix, looking from \p next on; where to look after them (in the first
  /// warp, which alone looks).
  LLMC_MEMBER int gather(Shared &shared, const LlmrtCudaBindings &b, int rows, int matrix, int next,
                         int lane, int slice) {
    if (slice == 0) {
      int count = 0;
      if constexpr (Config::kIds) {
        // As many as there is room for, so that none is left halfway.
        constexpr int kLook = kTokens < 32 ? kTokens : 32;
        const int total = rows * kSlots;
        for (; next < total; next += kLook) {
          const int entry = next + lane;
          const bool mine =
              lane < kLook && entry < total && binding<const int>(b, 2)[entry] == matrix;
          const unsigned all = __ballot_sync(kAllLanes, mine);
          if (count + __popc(all) > kTokens)
            break;
          if (mine)
            shared.entries[count + __popc(all & ((1u << lane) - 1))] = entry;
          count += __popc(all);
        }
      } else {
        count = max(0, min(kTokens, rows - next));
        for (int i = lane; i < count; i += 32)
          shared.entries[i] = (next + i) * kSlots + matrix;
        next += kTokens;
      }
      if (lane == 0)
        shared.count = count;
    }
    __syncthreads();
    return next;
  }

  LLMC_MEMBER void store(const Shared &shared, const LlmrtCudaBindings &b, const float (&first)[4],
                         const float (&second)[4], int tile, int matrix, int tokens, int count,
                         int lane) {
    constexpr int kStride = Config::kGlu ? 2 : 1;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int inTile = lane / 4 * 2 + i / 2, column = tile * 16 + inTile;
      const int token = 8 * tokens + lane % 4 * 2 + i % 2;
      if (column >= Product::kOutputs || token >= count)
        continue;
      float a = first[i], c = second[i];
      if constexpr (Config::kBias) {
        const float *bias =
            binding<const float>(b, kBiasAt) +
            (static_cast<long long>(matrix) * Product::kTiles + tile * kStride) * 16 + inTile;
        a += bias[0];
        if constexpr (Config::kGlu)
          c += bias[16];
      }
      binding<float>(
          b, kOut)[static_cast<long long>(shared.entries[token]) * Product::kOutputs + column] =
          Config::product(a, c);
    }
  }
};

/// y[m] = sum over slots ascending of weights[m, slot] * values[m, slot] (+ residual[m]).
///   Config: kRows, kWidth, kSlots, kResidual, kThreads
template <class Config>
LLMC_FN void runCombine(const LlmrtCudaStep *step, const LlmrtCudaBindings &b) {
  constexpr int D = Config::kWidth, kSlots = Config::kSlots;
  const long long at = static_cast<long long>(blockIdx.x) * Config::kThreads + threadIdx.x;
  if (at >= countRows<Config::kRows>(step) * D)
    return;
  const long long row = at / D;
  const int i = static_cast<int>(at % D);
  const float *x = binding<const float>(b, 0) + row * kSlots * D + i;
  const float *w = binding<const float>(b, 1) + row * kSlots;
  float sum = x[0] * w[0];
  for (int j = 1; j < kSlots; ++j)
    sum = fmaf(w[j], x[static_cast<long long>(j) * D], sum);
  if constexpr (Config::kResidual)
    sum = sum + binding<const float>(b, 2)[at];
  binding<float>(b, Config::kResidual ? 3 : 2)[at] = sum;
}

#endif // LLMC_CUDA_MOE_CUH
