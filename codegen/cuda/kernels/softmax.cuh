//===- softmax.cuh - 16 query rows against tiles of keys ------------------------===//
//
// Online softmax (Milakov and Gimelshein 2018; Dao, FlashAttention-2, 2023) of one warp: scores by
// tensor cores, probabilities from the accumulators straight into the second product.
//
// A row's result depends on its own keys alone: a masked key has probability 0, a tile that is
// masked as a whole multiplies by 1 and adds 0. Keys are cut into tiles of kKeyTile and those into
// splits of kSplitKeys, both aligned to position 0; each split starts from nothing, and splits are
// merged in ascending order. So it does not matter how many rows, splits or blocks there are.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CUDA_SOFTMAX_CUH
#define LLMC_CUDA_SOFTMAX_CUH

#include "kvcache.cuh"
#include "math.cuh"

/// Rows of keys or of values in shared memory: \p D elements padded with zeros to a multiple of 16.
/// Eight successive rows lie in different banks: where rows are multiples of 128 bytes, their
/// pieces of 16 bytes change places (by the row, exclusive or), elsewhere rows are 16 bytes apart.
template <int D, int Kv> struct SharedRows {
  static constexpr int kPadded = (D + 15) / 16 * 16;
  static constexpr int kRowBytes = kPadded * ElementBytes<Kv>::value;
  static constexpr bool kSwizzled = kRowBytes % 128 == 0;
  static constexpr int kStride = kRowBytes + (kSwizzled ? 0 : 16);
  static constexpr int kBytes = D * ElementBytes<Kv>::value; ///< that memory has
  /// Copied at a time: 16 bytes, or 4 where rows are not multiples of 16.
  static constexpr int kPiece = kBytes % 16 == 0 ? 16 : 4;
  static constexpr int kPieces = kRowBytes / kPiece;

  /// Where byte \p byte of row \p row lies.
  LLMC_MEMBER int offset(int row, int byte) {
    if constexpr (kSwizzled)
      return row * kStride + ((byte / 16 ^ (row & 7)) * 16 | byte % 16);
    else
      return row * kStride + byte;
  }
};

/// Values that are the first \p DV elements of the rows of keys \p Keys (latent attention).
template <int DV, class Keys> struct RowsOfKeys {
  static constexpr int kPadded = (DV + 15) / 16 * 16;
  LLMC_MEMBER int offset(int row, int byte) { return Keys::offset(row, byte); }
};
template <bool Latent, int DV, int Kv, class Keys> struct ValueRows {
  using Rows = SharedRows<DV, Kv>;
};
template <int DV, int Kv, class Keys> struct ValueRows<true, DV, Kv, Keys> {
  using Rows = RowsOfKeys<DV, Keys>;
};

LLMC_FN float minusInfinity() { return __uint_as_float(0xff800000u); }

/// Adds up what the four lanes of a row have of its sum, for both rows of a lane.
LLMC_FN void addLanes(float (&sum)[2]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    sum[r] += __shfl_xor_sync(kAllLanes, sum[r], 1);
    sum[r] += __shfl_xor_sync(kAllLanes, sum[r], 2);
  }
}

/// The running softmax of rows g and g + 8 of a warp's 16 (two a lane, columns over 4 lanes).
template <int ValueTiles> struct SoftmaxState {
  float values[ValueTiles][4]; ///< rows g (0, 1) and g + 8 (2, 3); columns 8 i + 2t, + 1
  float largest[2], sum[2];    ///< of 2^x; sum is the lane's own part until finish()

  LLMC_METHOD void reset() {
#pragma unroll
    for (int i = 0; i < ValueTiles; ++i)
      values[i][0] = values[i][1] = values[i][2] = values[i][3] = 0.0f;
    largest[0] = largest[1] = minusInfinity();
    sum[0] = sum[1] = 0.0f;
  }

  LLMC_METHOD void finish() { addLanes(sum); }
};

/// What a row of one split is multiplied with when it joins the sum of those before it.
struct MergeFactors {
  float before, split, largest;
};
LLMC_FN MergeFactors mergeFactors(float before, float split) {
  const float largest = fmaxf(before, split);
  const float base = largest == minusInfinity() ? 0.0f : largest;
  return {exp2Approximate(before - base), exp2Approximate(split - base), largest};
}

/// One warp's work on a tile of keys.
///   Config: kKeySize, kValueSize, kKv, kLatent (values are the first elements of keys), kKeyTile,
///           kScale, kSoftcap (0: none), kAlibi, kValueParts (warps that share the rows, each with
///           a part of the columns of the values)
template <class Config> struct SoftmaxTile {
  static constexpr int D = Config::kKeySize, DV = Config::kValueSize;
  /// What is multiplied: int8 became f16 on the way into shared memory.
  static constexpr int Kv = Config::kKv == kI8 ? int(kF16) : Config::kKv;
  static constexpr bool kIsF32 = Kv == kF32;
  using Keys = SharedRows<D, Kv>;
  using Values = typename ValueRows<Config::kLatent, DV, Kv, Keys>::Rows;
  static constexpr int kKeyTile = Config::kKeyTile;
  static constexpr int kDepth = Keys::kPadded / (kIsF32 ? 8 : 16); ///< mma along a key
  static constexpr int kValueTiles =
      (Values::kPadded / 16 + Config::kValueParts - 1) / Config::kValueParts * 2;
  /// Queries stay in registers where that takes at most 32 of them.
  static constexpr bool kQueryInRegisters = kDepth * 4 <= 32;
  using State = SoftmaxState<kValueTiles>;

  /// The queries of the warp: two rows a lane, or null beyond the tile.
  struct Query {
    const float *row[2];
    float slope[2]; ///< of ALiBi (Press et al., 2021): added for each position of distance
    unsigned a[kQueryInRegisters ? kDepth : 1][4];

    LLMC_METHOD void load(int t) {
      if constexpr (kQueryInRegisters) {
#pragma unroll
        for (int k = 0; k < kDepth; ++k)
          fragment(a[k], k, t);
      }
    }
    LLMC_METHOD void get(unsigned (&f)[4], int k, int t) const {
      if constexpr (kQueryInRegisters) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
          f[i] = a[k][i];
      } else {
        fragment(f, k, t);
      }
    }

  private:
    LLMC_METHOD float at(int r, int column) const {
      return row[r] != nullptr && column < D ? row[r][column] : 0.0f;
    }
    LLMC_METHOD float2 pair(int r, int column) const {
      if constexpr (D % 2 == 0)
        return row[r] != nullptr && column < D ? *reinterpret_cast<const float2 *>(row[r] + column)
                                               : make_float2(0.0f, 0.0f);
      else
        return make_float2(at(r, column), at(r, column + 1));
    }
    LLMC_METHOD void fragment(unsigned (&f)[4], int k, int t) const {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if constexpr (kIsF32) {
          f[i] = __float_as_uint(at(i % 2, 8 * k + 4 * (i / 2) + t));
        } else {
          const float2 v = pair(i % 2, 16 * k + 8 * (i / 2) + 2 * t);
          f[i] = Kv == kF16 ? packF16(v.x, v.y) : packBf16(v.x, v.y);
        }
      }
    }
  };

  /// Keys [firstKey, firstKey + kKeyTile) at \p keys and \p values; row r of the lane sees those in
  /// [low[r], high[r]). The warp has part \p part of the values' columns.
  LLMC_MEMBER void attend(State &state, const Query &query, const unsigned char *keys,
                          const unsigned char *values, int firstKey, const int (&low)[2],
                          const int (&high)[2], int part, int lane) {
    float s[kKeyTile / 8][4] = {};
    scores(s, query, keys, lane);
    const int t = lane % 4;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float largest = state.largest[r];
#pragma unroll
      for (int n = 0; n < kKeyTile / 8; ++n)
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          const int key = firstKey + 8 * n + 2 * t + c;
          float &x = s[n][2 * r + c];
          // The row's own position is the last it sees.
          x = key >= low[r] && key < high[r]
                  ? logit(x, query.slope[r], static_cast<float>(key - (high[r] - 1)))
                  : minusInfinity();
          largest = fmaxf(largest, x);
        }
      largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 2));
      const float base = largest == minusInfinity() ? 0.0f : largest;
      const float rescale = exp2Approximate(state.largest[r] - base);
      float sum = 0.0f;
#pragma unroll
      for (int n = 0; n < kKeyTile / 8; ++n)
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          float &x = s[n][2 * r + c];
          x = exp2Approximate(x - base);
          sum += x;
        }
#pragma unroll
      for (int i = 0; i < kValueTiles; ++i) {
        state.values[i][2 * r] *= rescale;
        state.values[i][2 * r + 1] *= rescale;
      }
      state.sum[r] = fmaf(state.sum[r], rescale, sum);
      state.largest[r] = largest;
    }
    weigh(state, s, values, part, lane);
  }

  /// A score as an exponent of 2: scaled, capped, then the penalty of the distance.
  LLMC_MEMBER float logit(float score, [[maybe_unused]] float slope,
                          [[maybe_unused]] float distance) {
    constexpr float kLog2E = 1.44269504f;
    if constexpr (Config::kSoftcap == 0.0f && !Config::kAlibi)
      return score * (Config::kScale * kLog2E);
    float v = score * Config::kScale;
    if constexpr (Config::kSoftcap > 0.0f)
      v = Config::kSoftcap * tanhAccurate(v / Config::kSoftcap);
    if constexpr (Config::kAlibi)
      v = fmaf(slope, distance, v);
    return v * kLog2E;
  }

private:
  /// s[16 rows, keys] = Q K^T.
  LLMC_MEMBER void scores(float (&s)[kKeyTile / 8][4], const Query &query,
                          const unsigned char *keys, int lane) {
    const int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      unsigned q[4];
      query.get(q, k, t);
      if constexpr (kIsF32) {
        unsigned high[4], low[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
          split(__uint_as_float(q[i]), high[i], low[i]);
#pragma unroll
        for (int n = 0; n < kKeyTile / 8; ++n) {
          const int key = 8 * n + g;
          unsigned bHigh[2], bLow[2];
          split(element<Keys>(keys, key, 8 * k + t), bHigh[0], bLow[0]);
          split(element<Keys>(keys, key, 8 * k + t + 4), bHigh[1], bLow[1]);
          mmaTf32(s[n], low, bHigh);
          mmaTf32(s[n], high, bLow);
          mmaTf32(s[n], high, bHigh);
        }
      } else {
#pragma unroll
        for (int n = 0; n < kKeyTile / 16; ++n) { // 16 keys at a time
          unsigned b[4];
          loadMatrix4(b, keys + Keys::offset(16 * n + lane / 16 * 8 + lane % 8,
                                             32 * k + lane / 8 % 2 * 16));
          const unsigned first[2] = {b[0], b[1]}, second[2] = {b[2], b[3]};
          mma(s[2 * n], q, first);
          mma(s[2 * n + 1], q, second);
        }
      }
    }
  }

  /// state.values += P V.
  LLMC_MEMBER void weigh(State &state, const float (&p)[kKeyTile / 8][4],
                         const unsigned char *values, int part, int lane) {
    const int g = lane / 4, t = lane % 4;
    const int firstColumn = part * kValueTiles * 8;
    if constexpr (kIsF32) {
      // Keys 2t and 2t + 1, which the lane has, are rows t and t + 4 of the mma.
#pragma unroll
      for (int n = 0; n < kKeyTile / 8; ++n) {
        unsigned high[4], low[4];
        split(p[n][0], high[0], low[0]);
        split(p[n][2], high[1], low[1]);
        split(p[n][1], high[2], low[2]);
        split(p[n][3], high[3], low[3]);
        const int key = 8 * n + 2 * t;
#pragma unroll
        for (int i = 0; i < kValueTiles; ++i) {
          const int column = firstColumn + 8 * i + g;
          if (firstColumn + 8 * i >= Values::kPadded)
            break;
          unsigned bHigh[2], bLow[2];
          split(element<Values>(values, key, column), bHigh[0], bLow[0]);
          split(element<Values>(values, key + 1, column), bHigh[1], bLow[1]);
          mmaTf32(state.values[i], low, bHigh);
          mmaTf32(state.values[i], high, bLow);
          mmaTf32(state.values[i], high, bHigh);
        }
      }
    } else {
#pragma unroll
      for (int k = 0; k < kKeyTile / 16; ++k) { // 16 keys at a time
        unsigned a[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float *pair = &p[2 * k + i / 2][i % 2 * 2];
          a[i] = Kv == kF16 ? packF16(pair[0], pair[1]) : packBf16(pair[0], pair[1]);
        }
#pragma unroll
        for (int i = 0; i < kValueTiles / 2; ++i) {
          if (firstColumn + 16 * i >= Values::kPadded)
            break;
          unsigned b[4];
          loadMatrix4Transposed(b, values +
                                       Values::offset(16 * k + lane % 16,
                                                      (firstColumn + 16 * i + lane / 16 * 8) * 2));
          const unsigned first[2] = {b[0], b[1]}, second[2] = {b[2], b[3]};
          mma(state.values[2 * i], a, first);
          mma(state.values[2 * i + 1], a, second);
        }
      }
    }
  }

  template <class Rows> LLMC_MEMBER float element(const unsigned char *rows, int row, int column) {
    return *reinterpret_cast<const float *>(rows + Rows::offset(row, 4 * column));
  }
  LLMC_MEMBER void mma(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    if constexpr (Kv == kF16)
      mmaF16(d, a, b);
    else
      mmaBf16(d, a, b);
  }
  LLMC_MEMBER void split(float v, unsigned &high, unsigned &low) {
    high = floatToTf32(v);
    low = floatToTf32(v - __uint_as_float(high));
  }
};

#endif // LLMC_CUDA_SOFTMAX_CUH
