//===- attention_block.cuh - what the attention of prompts and of decoding share ----===//
#ifndef LLMC_CUDA_ATTENTION_BLOCK_CUH
#define LLMC_CUDA_ATTENTION_BLOCK_CUH

#include "softmax.cuh"

template <bool Latent, class Both, class Keys> struct StageOf {
  using Type = Both;
};
template <class Both, class Keys> struct StageOf<true, Both, Keys> {
  using Type = Keys;
};

/// What both kernels have in common.
///   Config: that of SoftmaxTile, and kHeads, kKvHeads, kWindow (0: none), kSplitKeys, kMaxSplits,
///           kStages (1 or 2 key tiles in shared memory), kRowWarps, kQueryTile, kSinks
template <class Config, int RowWarps> struct AttentionBlock {
  using Tile = SoftmaxTile<Config>;
  using Cache = KvCache<Config::kKvHeads, Config::kKeySize,
                        Config::kLatent ? 0 : Config::kValueSize, Config::kKv>;
  static constexpr int kGroup = Config::kHeads / Config::kKvHeads;
  static constexpr int kKeyTile = Config::kKeyTile;
  static constexpr int kThreads = 32 * RowWarps * Config::kValueParts;
  static constexpr int kSplitTiles = Config::kSplitKeys / kKeyTile;
  /// Bindings: q, the slopes of ALiBi and the sinks where there are, y.
  static constexpr int kSinksAt = Config::kAlibi ? 2 : 1;
  static constexpr int kOut = kSinksAt + (Config::kSinks ? 1 : 0);

  struct KeysAndValues {
    __align__(16) unsigned char keys[kKeyTile * Tile::Keys::kStride];
    __align__(
        16) unsigned char valueRows[kKeyTile * SharedRows<Config::kValueSize, Tile::Kv>::kStride];
    LLMC_METHOD unsigned char *values() { return valueRows; }
    LLMC_METHOD const unsigned char *values() const { return valueRows; }
  };
  struct KeysAlone {
    __align__(16) unsigned char keys[kKeyTile * Tile::Keys::kStride];
    LLMC_METHOD const unsigned char *values() const { return keys; }
  };
  using Stage = typename StageOf<Config::kLatent, KeysAndValues, KeysAlone>::Type;

  /// The first key that position \p p sees.
  LLMC_MEMBER int lowest(int p) {
    return Config::kWindow > 0 && p >= Config::kWindow ? p - Config::kWindow + 1 : 0;
  }

  /// The two query rows of a lane: g and g + 8 of its warp's 16.
  struct Rows {
    typename Tile::Query query;
    float *out[2];
    int low[2], high[2]; ///< the keys that a row sees are [low, high)
    int heads[2];        ///< below 0: there is no such row

    /// Rows \p first and following of the tile of \p count tokens from \p start on.
    LLMC_METHOD void ofTokens(const LlmrtCudaStep *step, const LlmrtCudaBindings &b, int kvHead,
                              int start, int count, int first, int lane) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int row = first + lane / 4 + 8 * r;
        const int token = start + row / kGroup;
        const bool exists = row < count * kGroup;
        const int head = kvHead * kGroup + row % kGroup;
        const long long at = static_cast<long long>(token) * Config::kHeads + head;
        heads[r] = exists ? head : -1;
        query.row[r] = exists ? binding<const float>(b, 0) + at * Config::kKeySize : nullptr;
        query.slope[r] = exists && Config::kAlibi ? binding<const float>(b, 1)[head] : 0.0f;
        out[r] = exists ? binding<float>(b, kOut) + at * Config::kValueSize : nullptr;
        const int position = exists ? step->positions[token] : -1;
        low[r] = lowest(position);
        high[r] = position + 1;
      }
      query.load(lane % 4);
    }

    /// Heads \p first and following of those that share \p kvHead, of one token.
    LLMC_METHOD void ofToken(const LlmrtCudaBindings &b, int kvHead, int token, int position,
                             int first, int lane) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int row = first + lane / 4 + 8 * r;
        const bool exists = row < kGroup;
        const int head = kvHead * kGroup + row;
        const long long at = static_cast<long long>(token) * Config::kHeads + head;
        heads[r] = exists ? head : -1;
        query.row[r] = exists ? binding<const float>(b, 0) + at * Config::kKeySize : nullptr;
        query.slope[r] = exists && Config::kAlibi ? binding<const float>(b, 1)[head] : 0.0f;
        out[r] = exists ? binding<float>(b, kOut) + at * Config::kValueSize : nullptr;
        low[r] = exists ? lowest(position) : 0;
        high[r] = exists ? position + 1 : 0;
      }
      query.load(lane % 4);
    }
  };

  /// The keys of a query tile's rows [first, last]: positions ascend, so that its first and last
  /// rows bound what the block reads.
  struct KeyRange {
    int beyond, firstTile, tiles;
    LLMC_METHOD KeyRange(const LlmrtCudaStep *step, int start, int first, int last)
        : beyond(step->positions[start + last / kGroup] + 1),
          firstTile(lowest(step->positions[start + first / kGroup]) / kKeyTile),
          tiles((beyond + kKeyTile - 1) / kKeyTile - firstTile) {}
  };

  /// Begins copying keys [first, first + kKeyTile); zeros from \p beyond on: what lies there may be
  /// anything. \p slotOf gives the slot of a key. Four threads a key; eight keys, whose rows lie in
  /// different banks, take turns so that what a quarter of a warp writes does too: rows r and r +
  /// 4, of the half rows r, r + 2, r + 4 and r + 6.
  template <class SlotOf>
  LLMC_MEMBER void copyTile(Stage &stage, const Cache &cache, int kvHead, int first, int beyond,
                            SlotOf slotOf) {
    constexpr int kKeysAPass = kThreads / 4;
#pragma unroll
    for (int pass = 0; pass < (kKeyTile + kKeysAPass - 1) / kKeysAPass; ++pass) {
      const int turn = threadIdx.x / 4;
      const int key =
          pass * kKeysAPass + (turn & ~7) + ((turn & 1) * 4 | (turn & 2) | (turn >> 2 & 1));
      if (kKeyTile % kKeysAPass != 0 && key >= kKeyTile)
        break;
      const bool exists = first + key < beyond;
      const long long slot = exists ? slotOf(first + key) : 0;
      if constexpr (Config::kKv == kI8) {
        convertRow<Config::kKeySize, typename Tile::Keys>(stage.keys, key, cache.key(slot, kvHead),
                                                          cache.keyScale(slot, kvHead), exists);
        convertRow<Config::kValueSize, typename Tile::Values>(
            stage.values(), key, cache.value(slot, kvHead), cache.valueScale(slot, kvHead), exists);
      } else {
        copyRow<typename Tile::Keys>(stage.keys, key, cache.key(slot, kvHead), exists);
        if constexpr (!Config::kLatent)
          copyRow<typename Tile::Values>(stage.values(), key, cache.value(slot, kvHead), exists);
      }
    }
  }

  /// Goes through \p tiles tiles of keys from \p firstTile on, the next on its way while one is
  /// worked on. \p slotOf as for copyTile; \p done is called after each, with its number.
  template <class SlotOf, class Done>
  LLMC_MEMBER void attendTiles(Stage (&stages)[Config::kStages], typename Tile::State &state,
                               const Rows &rows, const Cache &cache, int kvHead, int firstTile,
                               int tiles, int beyond, int part, int lane, SlotOf slotOf,
                               Done done) {
    auto copy = [&](int i) {
      copyTile(stages[i % Config::kStages], cache, kvHead, (firstTile + i) * kKeyTile, beyond,
               slotOf);
    };
    if (Config::kStages == 2 && tiles > 0)
      copy(0);
    copyAsyncCommit();
    for (int i = 0; i < tiles; ++i) {
      if constexpr (Config::kStages == 1)
        copy(i);
      else if (i + 1 < tiles)
        copy(i + 1);
      copyAsyncCommit();
      copyAsyncWait<Config::kStages - 1>();
      __syncthreads();
      const Stage &stage = stages[i % Config::kStages];
      Tile::attend(state, rows.query, stage.keys, stage.values(), (firstTile + i) * kKeyTile,
                   rows.low, rows.high, part, lane);
      // The stage is free again.
      __syncthreads();
      done(i);
    }
  }

  /// The slot of a key of the sequence whose blocks \p table has.
  LLMC_MEMBER long long slotOf(const int *table, const Cache &cache, int key) {
    return static_cast<long long>(table[key / cache.blockTokens]) * cache.blockTokens +
           key % cache.blockTokens;
  }

  /// What the values of a row are multiplied with at its end: 1 / sum; a row without keys gives
  /// zeros. A sink is one more score, of a key whose value is 0.
  LLMC_MEMBER float inverse([[maybe_unused]] const LlmrtCudaBindings &b, [[maybe_unused]] int head,
                            [[maybe_unused]] float largest, float sum) {
    float share = 1.0f;
    if constexpr (Config::kSinks) {
      const float sink = binding<const float>(b, kSinksAt)[head] * 1.44269504f;
      const MergeFactors f = mergeFactors(sink, largest);
      sum = fmaf(sum, f.split, f.before);
      share = f.split;
    }
    return sum == 0.0f ? 0.0f : share / sum;
  }

  /// Writes the lane's two rows of a tile, those of \p heads (below 0: none).
  LLMC_MEMBER void store(const LlmrtCudaBindings &b, float *const (&out)[2], const int (&heads)[2],
                         const typename Tile::State &state, int part, int t) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (heads[r] < 0)
        continue;
      const float inverse = AttentionBlock::inverse(b, heads[r], state.largest[r], state.sum[r]);
#pragma unroll
      for (int i = 0; i < Tile::kValueTiles; ++i) {
        const int column = part * Tile::kValueTiles * 8 + 8 * i + 2 * t;
        const float first = state.values[i][2 * r] * inverse;
        const float second = state.values[i][2 * r + 1] * inverse;
        if (Config::kValueSize % 2 == 0 && column < Config::kValueSize) {
          *reinterpret_cast<float2 *>(out[r] + column) = make_float2(first, second);
        } else {
          if (column < Config::kValueSize)
            out[r][column] = first;
          if (column + 1 < Config::kValueSize)
            out[r][column + 1] = second;
        }
      }
    }
  }

private:
  /// An int8 row to f16; where rows allow it eight values a lane, so that four lanes read a sector.
  template <int D, class Rows>
  LLMC_MEMBER void convertRow(unsigned char *to, int row, const unsigned char *from,
                              const float *scaleOfRow, bool exists) {
    constexpr int kWords = D % 8 == 0 ? 2 : 1, kPieces = Rows::kPadded / (4 * kWords);
    const float scale = exists ? *scaleOfRow : 0.0f;
#pragma unroll
    for (int i = 0; i < (kPieces + 3) / 4; ++i) {
      const int piece = i * 4 + threadIdx.x % 4;
      if (kPieces % 4 != 0 && piece >= kPieces)
        break;
      const bool keep = exists && piece * 4 * kWords < D;
      unsigned char *at = to + Rows::offset(row, piece * 8 * kWords);
      if constexpr (kWords == 2) {
        const uint2 words =
            keep ? *reinterpret_cast<const uint2 *>(from + piece * 8) : make_uint2(0u, 0u);
        const uint2 first = scaled(words.x, scale), second = scaled(words.y, scale);
        *reinterpret_cast<uint4 *>(at) = make_uint4(first.x, first.y, second.x, second.y);
      } else {
        const unsigned word = keep ? *reinterpret_cast<const unsigned *>(from + piece * 4) : 0u;
        *reinterpret_cast<uint2 *>(at) = scaled(word, scale);
      }
    }
  }
  /// Four int8 as f16.
  LLMC_MEMBER uint2 scaled(unsigned word, float scale) {
    float v[4];
#pragma unroll
    for (int j = 0; j < 4; ++j)
      v[j] = static_cast<float>(static_cast<signed char>(word >> (8 * j) & 0xff)) * scale;
    return make_uint2(packF16(v[0], v[1]), packF16(v[2], v[3]));
  }

  template <class Rows>
  LLMC_MEMBER void copyRow(unsigned char *to, int row, const unsigned char *from, bool exists) {
#pragma unroll
    for (int i = 0; i < (Rows::kPieces + 3) / 4; ++i) {
      const int piece = i * 4 + threadIdx.x % 4;
      if (Rows::kPieces % 4 != 0 && piece >= Rows::kPieces)
        break;
      const bool keep = exists && piece * Rows::kPiece < Rows::kBytes;
      const unsigned char *source = from + (keep ? piece * Rows::kPiece : 0);
      unsigned char *at = to + Rows::offset(row, piece * Rows::kPiece);
      if constexpr (Rows::kPiece == 16)
        copyAsync16(at, source, keep);
      else
        copyAsync4(at, source, keep);
    }
  }
};

#endif // LLMC_CUDA_ATTENTION_BLOCK_CUH
