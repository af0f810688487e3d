//===- sampling.cuh - a token from a row of logits -----------------------------===//
//
// What runtime/decode/Sampler draws, bit for bit: the same noise, the same arithmetic operation for
// operation (-fmad=false), ties to the lower id. No result depends on an order: scores are compared
// as they are, and what top-p adds up are integers (runtime/decode/ProbabilityMass.h).
//
// Four launches, a row's vocabulary cut into slices: top (biases, bans, the largest logit), select
// (what top-k and top-p keep), draw (the best of logit / temperature + noise), pick (of all
// slices). Bindings: logits f32[R, kVocabulary], of which rows with changes are overwritten; tokens
// i32[R].
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CUDA_SAMPLING_CUH
#define LLMC_CUDA_SAMPLING_CUH

#include "rows.cuh"

using u64 = unsigned long long;

/// What pick writes where no token can be drawn.
enum NoToken { kNotFinite = -1, kAllForbidden = -2 };

/// A logit as an unsigned number of the same order; both zeros are one.
LLMC_FN unsigned orderedLogit(float v) {
  const unsigned bits = __float_as_uint(v + 0.0f);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
LLMC_FN float logitOf(unsigned ordered) {
  return __uint_as_float(ordered & 0x80000000u ? ordered & 0x7fffffffu : ~ordered);
}

/// fixedExpf of runtime/decode/Math.h.
LLMC_FN float fixedExp(float x) {
  const float magic = 12582912.0f; // 1.5 * 2^23
  const float shifted = x * 1.44269504f + magic;
  const float n = shifted - magic;
  const unsigned exponent = __float_as_uint(shifted) - 0x4b400000u;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float q = 1.39261835877e-3f * r + 8.36317905272e-3f;
  q = q * r + 4.16665546172e-2f;
  q = q * r + 1.66665769897e-1f;
  q = q * r + 0.5f;
  float y = (q * (r * r) + r) + 1.0f;
  y = y * __uint_as_float((exponent + 127u) << 23);
  return x < -87.3f ? 0.0f : y;
}

/// fixedLog of runtime/decode/Math.h.
LLMC_FN double fixedLog(double x) {
  const u64 bits = static_cast<u64>(__double_as_longlong(x));
  long long exponent = static_cast<long long>(bits >> 52) - 1023;
  double m = __longlong_as_double(
      static_cast<long long>((bits & 0x000fffffffffffffull) | 0x3ff0000000000000ull));
  if (m > 0x1.6a09e667f3bcdp+0) {
    m *= 0.5;
    exponent += 1;
  }
  const double f = m - 1.0;
  const double s = f / (m + 1.0);
  const double z = s * s;
  double p = 1.0 / 21.0;
  p = p * z + 1.0 / 19.0;
  p = p * z + 1.0 / 17.0;
  p = p * z + 1.0 / 15.0;
  p = p * z + 1.0 / 13.0;
  p = p * z + 1.0 / 11.0;
  p = p * z + 1.0 / 9.0;
  p = p * z + 1.0 / 7.0;
  p = p * z + 1.0 / 5.0;
  p = p * z + 1.0 / 3.0;
  const double logM = 2.0 * s + 2.0 * s * (z * p);
  const double e = static_cast<double>(exponent);
  return e * 0x1.62e42fee00000p-1 + (logM + e * 0x1.a39ef35793c76p-33);
}

/// 52 uniform bits for token \p id: PositionNoise::bits().
LLMC_FN u64 noiseBits(u64 key, int id) {
  u64 x = key + (static_cast<u64>(id) + 1) * 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return (x ^ (x >> 31)) >> 12;
}

/// The largest of a value over the warp.
LLMC_FN u64 warpMaxOf(u64 v) {
#pragma unroll
  for (int i = 16; i > 0; i >>= 1)
    v = max(v, __shfl_xor_sync(kAllLanes, v, i));
  return v;
}

/// The best token of some: the highest score, the lower id of equals; id -1: none.
struct Draw {
  double score;
  int id;

  LLMC_METHOD void take(double otherScore, int otherId) {
    if (otherId >= 0 && (id < 0 || otherScore > score || (otherScore == score && otherId < id))) {
      score = otherScore;
      id = otherId;
    }
  }
  LLMC_METHOD void takeWarp() {
#pragma unroll
    for (int i = 16; i > 0; i >>= 1) {
      const double otherScore = __shfl_xor_sync(kAllLanes, score, i);
      const int otherId = __shfl_xor_sync(kAllLanes, id, i);
      take(otherScore, otherId);
    }
  }
};

/// The tokens that top-k and top-p keep: those of a larger logit, and of equal ones the first ids.
struct Threshold {
  unsigned logit; ///< ordered; 0: all
  int lastId;

  LLMC_METHOD bool keeps(unsigned ordered, int id) const {
    return ordered > logit || (ordered == logit && id <= lastId);
  }
};

///   Config: kVocabulary (columns of the logits), kSlice, kThreads (a slice), kSelectThreads (a
///   row)
template <class Config> struct Sampling {
  static constexpr int kSlices = (Config::kVocabulary + Config::kSlice - 1) / Config::kSlice;
  static constexpr int kWarps = Config::kThreads / 32, kSelectWarps = Config::kSelectThreads / 32;
  static constexpr int kBins = 2048;
  /// Scratch of a row.
  struct Row {
    u64 tops[kSlices]; ///< ordered logit, then ~id; 0: no token; all ones: not finite
    Draw draws[kSlices];
    Threshold threshold;
  };
  struct TopShared {
    u64 tops[kWarps];
  };
  struct DrawShared {
    Draw draws[kWarps];
  };
  struct SelectShared {
    u64 bins[kBins]; ///< mass of tokens, the largest logits first
    u64 groups[kSelectWarps];
    u64 before, weight; ///< of the bins before the chosen one; of it
    int chosen, lastId;
  };

  LLMC_MEMBER bool draws(const LlmrtCudaStep *step, long long row) {
    return row < step->R && step->sampling != nullptr && step->sampling[row].onDevice != 0;
  }
  LLMC_MEMBER Row *scratch(const LlmrtCudaBindings &b, long long row) {
    return static_cast<Row *>(b.scratch) + row;
  }
  LLMC_MEMBER float *logits(const LlmrtCudaBindings &b, long long row) {
    return binding<float>(b, 0) + row * Config::kVocabulary;
  }
  /// The largest logit of the row and its id, from what its slices left.
  LLMC_MEMBER u64 rowTop(const Row *row) {
    u64 top = 0;
    for (int i = threadIdx.x % 32; i < kSlices; i += 32)
      top = max(top, row->tops[i]);
    return warpMaxOf(top);
  }
  LLMC_MEMBER bool isToken(u64 top) { return top != 0 && top != ~0ull; }
  LLMC_MEMBER int idOf(u64 top) { return static_cast<int>(~static_cast<unsigned>(top)); }
  LLMC_MEMBER float topLogit(u64 top) { return logitOf(static_cast<unsigned>(top >> 32)); }
  LLMC_MEMBER bool isFinite(float v) { return fabsf(v) <= 3.402823466e38f; }
  LLMC_MEMBER bool isAllowed(float v) { return v >= -3.402823466e38f; }

  /// Grid: a block a slice of a row.
  LLMC_MEMBER void top(const LlmrtCudaStep *step, const LlmrtCudaBindings &b) {
    LLMC_SHARED(TopShared, shared);
    const long long row = blockIdx.x / kSlices;
    const int slice = blockIdx.x % kSlices;
    if (!draws(step, row))
      return;
    const LlmrtCudaRowSampling &how = step->sampling[row];
    float *x = logits(b, row);
    const int begin = slice * Config::kSlice;
    const int end = min(begin + Config::kSlice, step->sampledVocabulary);
    const bool changes = how.biases + how.bans > 0;
    bool finite = true;
    if (changes) {
      for (int i = begin + threadIdx.x; i < end; i += Config::kThreads)
        finite = finite && isFinite(x[i]);
      __syncthreads();
      change(x, step->changes + how.firstChange, how.biases, begin, end);
      __syncthreads();
      change(x, step->changes + how.firstChange + how.biases, how.bans, begin, end);
      __syncthreads();
    }
    u64 top = 0;
    for (int i = begin + threadIdx.x; i < end; i += Config::kThreads) {
      const float v = x[i];
      finite = finite && (changes || isFinite(v));
      if (isAllowed(v))
        top = max(top, static_cast<u64>(orderedLogit(v)) << 32 | ~static_cast<unsigned>(i));
    }
    top = warpMaxOf(finite ? top : ~0ull);
    if (threadIdx.x % 32 == 0)
      shared.tops[threadIdx.x / 32] = top;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int i = 1; i < kWarps; ++i)
        top = max(top, shared.tops[i]);
      scratch(b, row)->tops[slice] = top;
    }
  }

  /// Adds the changes that lie in [begin, end).
  LLMC_MEMBER void change(float *x, const LlmrtCudaLogitChange *changes, int count, int begin,
                          int end) {
    for (int i = threadIdx.x; i < count; i += Config::kThreads) {
      const int id = changes[i].id;
      if (id >= begin && id < end)
        x[id] += changes[i].bias;
    }
  }

  /// Grid: a block a row.
  LLMC_MEMBER void select(const LlmrtCudaStep *step, const LlmrtCudaBindings &b) {
    LLMC_SHARED(SelectShared, shared);
    const long long row = blockIdx.x;
    if (!draws(step, row))
      return;
    const LlmrtCudaRowSampling &how = step->sampling[row];
    const u64 top = rowTop(scratch(b, row));
    if (!isToken(top))
      return;
    const float topValue = topLogit(top), unit = step->massUnit;
    const float *x = logits(b, row);
    const int n = step->sampledVocabulary;
    Threshold kept = {0, 0};
    if (how.topK > 0)
      kept = narrow(
          shared, x, n, topValue, kept, [](float) -> u64 { return 1; },
          [&](u64 total) -> u64 { return min(static_cast<u64>(how.topK), total); });
    if (how.topP < 1.0f)
      kept = narrow(
          shared, x, n, topValue, kept,
          [&](float v) -> u64 {
            return static_cast<u64>(static_cast<long long>(fixedExp(v - topValue) * unit));
          },
          [&](u64 total) -> u64 {
            const double sum = ceil(static_cast<double>(how.topP) * static_cast<double>(total));
            return max(u64(1), min(static_cast<u64>(sum), total));
          });
    if (threadIdx.x == 0)
      scratch(b, row)->threshold = kept;
  }

  /// Of the tokens that \p kept has, the first whose weights reach wanted(sum of all weights), by
  /// descending logit, then id. Bands of 1/64 below the top logit first, where a vocabulary is
  /// spread thin; then the bits of the logits in the one band that matters.
  template <class Weight, class Wanted>
  LLMC_MEMBER Threshold narrow(SelectShared &shared, const float *x, int n, float top,
                               Threshold kept, Weight weight, Wanted wantedOf) {
    auto bandOf = [&](float v) -> int {
      const float steps = (top - v) * 64.0f;
      return steps < static_cast<float>(kBins - 1) ? static_cast<int>(steps) : kBins - 1;
    };
    fill(shared, x, n, kept, weight, [&](float v, unsigned) -> int { return bandOf(v); });
    u64 left = choose(shared, wantedOf(total(shared)));
    const int band = shared.chosen;
    unsigned key = 0, known = 0;
#pragma unroll 1
    for (int turn = 0; turn < 3; ++turn) { // 11, 11 and 10 bits
      const int shift = turn == 0 ? 21 : turn == 1 ? 10 : 0;
      const unsigned digits = turn == 2 ? 1023u : 2047u;
      fill(shared, x, n, kept, weight, [&](float v, unsigned ordered) -> int {
        return bandOf(v) == band && (ordered & known) == key
                   ? static_cast<int>(digits - (ordered >> shift & digits))
                   : -1;
      });
      total(shared);
      left = choose(shared, left);
      key |= (digits - static_cast<unsigned>(shared.chosen)) << shift;
      known |= digits << shift;
    }
    return {key, lastOfEqual(shared, x, n, kept, key, left, weight(logitOf(key)))};
  }

  /// Adds the weights of the tokens that \p kept has to the bins that \p binOf says; -1: to none.
  template <class Weight, class BinOf>
  LLMC_MEMBER void fill(SelectShared &shared, const float *x, int n, const Threshold &kept,
                        Weight weight, BinOf binOf) {
    for (int i = threadIdx.x; i < kBins; i += Config::kSelectThreads)
      shared.bins[i] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += Config::kSelectThreads) {
      const float v = x[i];
      const unsigned ordered = orderedLogit(v);
      if (isAllowed(v) && kept.keeps(ordered, i)) {
        const int bin = binOf(v, ordered);
        if (bin >= 0)
          atomicAdd(&shared.bins[bin], weight(v));
      }
    }
    __syncthreads();
  }

  static constexpr int kBinsAWarp = kBins / kSelectWarps, kBinsALane = kBinsAWarp / 32;

  /// The sum of all bins, in every thread; groups has the sum of each warp's bins.
  LLMC_MEMBER u64 total(SelectShared &shared) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u64 sum = 0;
    for (int i = lane; i < kBinsAWarp; i += 32)
      sum += shared.bins[warp * kBinsAWarp + i];
#pragma unroll
    for (int i = 16; i > 0; i >>= 1)
      sum += __shfl_xor_sync(kAllLanes, sum, i);
    if (lane == 0)
      shared.groups[warp] = sum;
    __syncthreads();
    sum = 0;
    for (int i = 0; i < kSelectWarps; ++i)
      sum += shared.groups[i];
    return sum;
  }

  /// Chooses the bin that holds what \p wanted asks for, counted from the first bin on; returns
  /// what is left of it for that bin.
  LLMC_MEMBER u64 choose(SelectShared &shared, u64 wanted) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u64 before = 0;
    int group = 0;
    while (group < kSelectWarps - 1 && before + shared.groups[group] < wanted)
      before += shared.groups[group++];
    if (warp == group) {
      const u64 *bins = shared.bins + group * kBinsAWarp + lane * kBinsALane;
      u64 sum = 0;
      for (int i = 0; i < kBinsALane; ++i)
        sum += bins[i];
      u64 upTo = sum; // of the lanes up to this one
#pragma unroll
      for (int i = 1; i < 32; i <<= 1) {
        const u64 other = __shfl_up_sync(kAllLanes, upTo, i);
        if (lane >= i)
          upTo += other;
      }
      u64 at = before + upTo - sum;
      if (at < wanted && before + upTo >= wanted) {
        int i = 0;
        while (at + bins[i] < wanted)
          at += bins[i++];
        shared.chosen = group * kBinsAWarp + lane * kBinsALane + i;
        shared.before = at;
        shared.weight = bins[i];
      }
    }
    __syncthreads();
    return wanted - shared.before;
  }

  /// The id of the last token with logit \p key that is kept: as many of them, each of weight
  /// \p each, as reach \p left; the last turn's bin holds them all.
  LLMC_MEMBER int lastOfEqual(SelectShared &shared, const float *x, int n, const Threshold &kept,
                              unsigned key, u64 left, u64 each) {
    if (left > shared.weight - each) // all of them
      return key == kept.logit ? kept.lastId : n - 1;
    // A run of ids a thread; then one thread looks for the run that holds the last one.
    const int run = (n + Config::kSelectThreads - 1) / Config::kSelectThreads;
    const int first = threadIdx.x * run, end = min(first + run, n);
    u64 mass = 0;
    for (int i = first; i < end; ++i)
      mass += orderedLogit(x[i]) == key ? each : 0;
    shared.bins[threadIdx.x] = mass;
    __syncthreads();
    if (threadIdx.x == 0) {
      u64 before = 0;
      int at = 0;
      while (before + shared.bins[at] < left)
        before += shared.bins[at++];
      int id = at * run - 1;
      while (before < left)
        before += orderedLogit(x[++id]) == key ? each : 0;
      shared.lastId = id;
    }
    __syncthreads();
    return shared.lastId;
  }

  /// (logit - top) / temperature + Gumbel noise where that may reach \p bound; else kPassedOver.
  static constexpr double kPassedOver = -1e300;
  LLMC_MEMBER double score(const LlmrtCudaRowSampling &how, double top, float logit, int id,
                           double bound) {
    const u64 bits = noiseBits(how.noiseKey, id);
    const double x = (static_cast<double>(logit) - top) * how.scale;
    const double complement = (static_cast<double>(0xfffffffffffffull - bits) + 0.5) * 0x1p-52;
    const int e = static_cast<int>(__double_as_longlong(complement) >> 52) - 1023;
    // The noise is at most -e ln 2: most tokens can't win, and need no logarithm.
    if (x - static_cast<double>(e) * 0x1.62e42fefa39efp-1 + 1e-9 < bound)
      return kPassedOver;
    const double u = (static_cast<double>(bits) + 0.5) * 0x1p-52;
    return x - fixedLog(-fixedLog(u));
  }

  /// Grid: a block a slice of a row.
  LLMC_MEMBER void draw(const LlmrtCudaStep *step, const LlmrtCudaBindings &b) {
    LLMC_SHARED(DrawShared, shared);
    const long long row = blockIdx.x / kSlices;
    const int slice = blockIdx.x % kSlices;
    if (!draws(step, row))
      return;
    const LlmrtCudaRowSampling &how = step->sampling[row];
    const u64 best = rowTop(scratch(b, row));
    if (how.scale == 0.0 || !isToken(best))
      return;
    const double top = static_cast<double>(topLogit(best)), floor = top + how.floor;
    const Threshold kept = scratch(b, row)->threshold;
    const float *x = logits(b, row);
    const int begin = slice * Config::kSlice;
    const int end = min(begin + Config::kSlice, step->sampledVocabulary);
    // The likeliest token is always kept: who can't reach its score can't win.
    double bound = score(how, top, topLogit(best), idOf(best), kPassedOver);
    Draw mine = {0.0, -1};
    for (int i = begin + threadIdx.x; i < end; i += Config::kThreads) {
      const float v = x[i];
      if (!isAllowed(v) || static_cast<double>(v) < floor || !kept.keeps(orderedLogit(v), i))
        continue;
      const double s = score(how, top, v, i, bound);
      if (s >= bound) {
        mine.take(s, i);
        bound = s;
      }
    }
    mine.takeWarp();
    if (threadIdx.x % 32 == 0)
      shared.draws[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int i = 1; i < kWarps; ++i)
        mine.take(shared.draws[i].score, shared.draws[i].id);
      scratch(b, row)->draws[slice] = mine;
    }
  }

  /// Grid: a warp a row.
  LLMC_MEMBER void pick(const LlmrtCudaStep *step, const LlmrtCudaBindings &b) {
    const long long row = blockIdx.x;
    if (!draws(step, row))
      return;
    const Row *scratchRow = scratch(b, row);
    const u64 top = rowTop(scratchRow);
    Draw best = {0.0, top == 0 ? kAllForbidden : top == ~0ull ? kNotFinite : idOf(top)};
    if (isToken(top) && step->sampling[row].scale != 0.0) {
      best.id = -1;
      for (int i = threadIdx.x; i < kSlices; i += 32)
        best.take(scratchRow->draws[i].score, scratchRow->draws[i].id);
      best.takeWarp();
    }
    if (threadIdx.x == 0)
      binding<int>(b, 1)[row] = best.id;
  }
};

#endif // LLMC_CUDA_SAMPLING_CUH
