//===- attention_sm90.cuh - attention of Hopper: TMA, wgmma, warps that specialise ----===//
//
// After FlashAttention-3 (Shah et al., 2024). One warp copies pages of keys and values, by tensor
// maps, into a ring of stages; consumer warpgroups multiply. Barriers of each stage count: `full`
// the bytes that were copied, `empty` the warps that are done with it.
//
//   scores(i) = Q K(i)^T is begun, then values += P(i-1) V(i-1): while tensor cores work on the
//   second, the softmax of tile i runs.
//
// Prompts and decoding share all of it, and so the shape of the products, the order of keys and
// the splits: a token has the same bits in both. Decoding pads the heads that share a KV head to 64
// rows, which costs less than reading the keys does.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CUDA_ATTENTION_SM90_CUH
#define LLMC_CUDA_ATTENTION_SM90_CUH

#include "attention_splits.cuh"
#include "sm90.cuh"

/// \p Config: that of AttentionBlock, for keys and values of one size, 64 or 128, of 16 bits.
template <class Config, int Consumers, int Stages> struct WgmmaAttention {
  using Block = AttentionBlock<Config, 4 * Consumers>;
  using Tile = typename Block::Tile;
  using State = typename Tile::State;
  static constexpr int D = Config::kKeySize;
  static constexpr int kKeyTile = Config::kKeyTile, kStages = Stages;
  static constexpr int kThreads = kWarpgroup * (1 + Consumers);
  static constexpr bool kIsBf16 = Config::kKv == kBF16;
  static_assert(D % 64 == 0 && D == Config::kValueSize && (kIsBf16 || Config::kKv == kF16) &&
                    !Config::kLatent && Config::kValueParts == 1 && Config::kScale > 0.0f,
                "the other kernels serve these");

  /// Rows of 64 elements, 128 bytes, in shared memory; a tile has one after the other D / 64 such
  /// columns of all its keys. A box of 16 keys lands as two pieces that wgmma reads.
  static constexpr int kColumns = D / 64, kColumnBytes = kKeyTile * 128;
  static constexpr int kPieceBytes = 8 * 128;
  static constexpr int kPageKeys = 16, kBoxes = kKeyTile / kPageKeys * kColumns;
  static_assert(kBoxes <= 32, "a lane of the producer copies one box of a tile");

  struct Stage {
    __align__(1024) unsigned char keys[kColumns * kColumnBytes];
    __align__(1024) unsigned char values[kColumns * kColumnBytes];
  };
  struct Ring {
    Stage stages[kStages];
    Mbarrier keysFull[kStages], keysEmpty[kStages], valuesFull[kStages], valuesEmpty[kStages];

    /// By one thread; the others meet it afterwards.
    LLMC_METHOD void prepare() {
      for (int i = 0; i < kStages; ++i) {
        mbarrierInit(keysFull[i], kBoxes);
        mbarrierInit(valuesFull[i], kBoxes);
        mbarrierInit(keysEmpty[i], 4 * Consumers);
        mbarrierInit(valuesEmpty[i], 4 * Consumers);
      }
      mbarrierInitFence();
    }
  };

  /// Where the producer finds keys of one KV head: below \p tree.first in the sequence's blocks.
  struct Source {
    const int *table;
    int blockTokens, kvHead, beyond;
    TreeKeys tree;
  };

  // --- the producer ---
  /// Copies \p tiles tiles from \p firstTile on, one box a lane.
  LLMC_MEMBER void produce(Ring &ring, const LlmrtKvMaps &maps, const Source &from, int firstTile,
                           int tiles, int lane) {
    if (lane >= kBoxes)
      return;
    for (int i = 0; i < tiles; ++i) {
      const int stage = i % kStages, parity = i / kStages % 2 ^ 1;
      const int firstKey = (firstTile + i) * kKeyTile;
      mbarrierWait(ring.keysEmpty[stage], parity);
      copyBox(ring.stages[stage].keys, maps.keyPage, maps.keyToken, ring.keysFull[stage], from,
              firstKey, lane);
      mbarrierWait(ring.valuesEmpty[stage], parity);
      copyBox(ring.stages[stage].values, maps.valuePage, maps.valueToken, ring.valuesFull[stage],
              from, firstKey, lane);
    }
  }

  /// The lane's 16 keys and 64 elements of a tile: a page at once, or, where keys are missing or
  /// lie apart, one by one; zeros from `beyond` on, where memory may hold anything.
  LLMC_MEMBER void copyBox(unsigned char *tile, const LlmrtTensorMap &page,
                           const LlmrtTensorMap &token, Mbarrier &full, const Source &from,
                           int firstKey, int lane) {
    const int row = lane / kColumns * kPageKeys, column = lane % kColumns;
    unsigned char *to = tile + column * kColumnBytes + row * 128;
    const int key = firstKey + row;
    if (key + kPageKeys <= min(from.beyond, from.tree.first)) {
      const int block = from.table[key / from.blockTokens];
      mbarrierArriveExpect(full, kPageKeys * 128);
      copyTensor4(to, page, 64 * column, key % from.blockTokens, from.kvHead, block, full);
      return;
    }
    const int exist = max(0, min(kPageKeys, from.beyond - key));
    for (int r = exist; r < kPageKeys; ++r)
#pragma unroll
      for (int c = 0; c < 8; ++c)
        *reinterpret_cast<uint4 *>(to + r * 128 + c * 16) = make_uint4(0u, 0u, 0u, 0u);
    proxyFence();
    mbarrierArriveExpect(full, exist * 128);
    for (int r = 0; r < exist; ++r) {
      const int k = key + r;
      const bool apart = from.tree.has(k);
      const long long slot = apart ? from.tree.slot(k) : k % from.blockTokens;
      const int block =
          apart ? static_cast<int>(slot / from.blockTokens) : from.table[k / from.blockTokens];
      copyTensor4(to + r * 128, token, 64 * column, static_cast<int>(slot % from.blockTokens),
                  from.kvHead, block, full);
    }
  }

  // --- a consumer ---
  /// Goes through \p tiles tiles from \p firstTile on. Before the first tile of a split,
  /// \p endSplit is given the largest and the sums of the split that ends.
  template <bool HasSplits, class EndSplit>
  LLMC_MEMBER void consume(Ring &ring, State &state, const typename Block::Rows &rows,
                           int firstTile, int tiles, int lane, EndSplit endSplit) {
    if (tiles <= 0)
      return;
    float s[kKeyTile / 8][4];
    unsigned p[kKeyTile / 16][4];
    float rescale[2];
    mbarrierWait(ring.keysFull[0], 0);
    wgmmaFence();
    beginScores(s, rows.query, ring.stages[0].keys);
    wgmmaCommit();
    wgmmaWait<0>();
    holdRegisters(s);
    release(ring.keysEmpty[0], lane);
    softmax(s, state, rescale, rows, firstTile * kKeyTile, lane);
    pack(p, s);
    for (int i = 1; i < tiles; ++i) {
      const int stage = i % kStages, before = (i - 1) % kStages;
      mbarrierWait(ring.keysFull[stage], i / kStages % 2);
      wgmmaFence();
      beginScores(s, rows.query, ring.stages[stage].keys);
      wgmmaCommit();
      mbarrierWait(ring.valuesFull[before], (i - 1) / kStages % 2);
      beginValues(state.values, p, ring.stages[before].values);
      wgmmaCommit();
      wgmmaWait<1>();
      holdRegisters(s);
      release(ring.keysEmpty[stage], lane);
      const bool isNewSplit = HasSplits && (firstTile + i) % Block::kSplitTiles == 0;
      float largest[2], sum[2];
      if (isNewSplit) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          largest[r] = state.largest[r], sum[r] = state.sum[r];
          state.largest[r] = minusInfinity(), state.sum[r] = 0.0f;
        }
      }
      softmax(s, state, rescale, rows, (firstTile + i) * kKeyTile, lane);
      wgmmaWait<0>();
      holdRegisters(state.values);
      release(ring.valuesEmpty[before], lane);
      if (isNewSplit) {
        endSplit(largest, sum);
#pragma unroll
        for (int j = 0; j < Tile::kValueTiles; ++j)
          state.values[j][0] = state.values[j][1] = state.values[j][2] = state.values[j][3] = 0.0f;
      } else {
#pragma unroll
        for (int j = 0; j < Tile::kValueTiles; ++j) {
          state.values[j][0] *= rescale[0], state.values[j][1] *= rescale[0];
          state.values[j][2] *= rescale[1], state.values[j][3] *= rescale[1];
        }
      }
      pack(p, s);
    }
    const int last = (tiles - 1) % kStages;
    mbarrierWait(ring.valuesFull[last], (tiles - 1) / kStages % 2);
    wgmmaFence();
    beginValues(state.values, p, ring.stages[last].values);
    wgmmaCommit();
    wgmmaWait<0>();
    holdRegisters(state.values);
  }

  /// s[64 rows, keys] = Q K^T.
  LLMC_MEMBER void beginScores(float (&s)[kKeyTile / 8][4], const typename Tile::Query &query,
                               const unsigned char *keys) {
    const unsigned long long b = matrixDescriptor(keys, 0, kPieceBytes);
#pragma unroll
    for (int k = 0; k < D / 16; ++k)
      wgmma<kIsBf16, false>(s, query.a[k], advanced(b, k / 4 * kColumnBytes + k % 4 * 32), k > 0);
  }

  /// values += P V, 16 keys at a time.
  LLMC_MEMBER void beginValues(float (&values)[Tile::kValueTiles][4],
                               const unsigned (&p)[kKeyTile / 16][4], const unsigned char *rows) {
    const unsigned long long b = matrixDescriptor(rows, kColumnBytes, kPieceBytes);
#pragma unroll
    for (int k = 0; k < kKeyTile / 16; ++k)
      wgmma<kIsBf16, true>(values, p[k], advanced(b, 2 * k * kPieceBytes), true);
  }

  LLMC_MEMBER void release(Mbarrier &empty, int lane) {
    if (lane == 0)
      mbarrierArrive(empty);
  }

  /// Probabilities from scores of the keys from \p firstKey on, as powers of 2; \p rescale is what
  /// the values so far are multiplied with.
  LLMC_MEMBER void softmax(float (&s)[kKeyTile / 8][4], State &state, float (&rescale)[2],
                           const typename Block::Rows &rows, int firstKey, int lane) {
    const int t = lane % 4;
    bool isWhole = true; // every row sees every key
#pragma unroll
    for (int r = 0; r < 2; ++r)
      isWhole = isWhole && rows.low[r] <= firstKey && firstKey + kKeyTile <= rows.high[r];
    const bool isMasked = !__all_sync(kAllLanes, isWhole);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
      for (int n = 0; n < kKeyTile / 8; ++n)
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          float &x = s[n][2 * r + c];
          if constexpr (!kIsPlain)
            x = Tile::logit(x, rows.query.slope[r],
                            static_cast<float>(firstKey + 8 * n + 2 * t + c - (rows.high[r] - 1)));
        }
      if (isMasked) {
#pragma unroll
        for (int n = 0; n < kKeyTile / 8; ++n)
#pragma unroll
          for (int c = 0; c < 2; ++c) {
            const int key = firstKey + 8 * n + 2 * t + c;
            const bool exists = key >= rows.low[r] && key < rows.high[r];
            s[n][2 * r + c] = exists ? s[n][2 * r + c] : minusInfinity();
          }
      }
      float largest = minusInfinity();
#pragma unroll
      for (int n = 0; n < kKeyTile / 8; ++n)
        largest = fmaxf(largest, fmaxf(s[n][2 * r], s[n][2 * r + 1]));
      largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 2));
      largest = fmaxf(state.largest[r], largest * kFactor);
      const float base = largest == minusInfinity() ? 0.0f : largest;
      rescale[r] = exp2Approximate(state.largest[r] - base);
      float sum = 0.0f;
#pragma unroll
      for (int n = 0; n < kKeyTile / 8; ++n)
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          float &x = s[n][2 * r + c];
          x = exp2Approximate(fmaf(x, kFactor, -base));
          sum += x;
        }
      state.sum[r] = fmaf(state.sum[r], rescale[r], sum);
      state.largest[r] = largest;
    }
  }

  /// Without a cap or a penalty scores are scaled where they are exponentiated.
  static constexpr bool kIsPlain = Config::kSoftcap == 0.0f && !Config::kAlibi;
  static constexpr float kFactor = kIsPlain ? Config::kScale * 1.44269504f : 1.0f;

  /// Accumulators as operands of the second product.
  LLMC_MEMBER void pack(unsigned (&p)[kKeyTile / 16][4], const float (&s)[kKeyTile / 8][4]) {
#pragma unroll
    for (int k = 0; k < kKeyTile / 16; ++k)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float *pair = &s[2 * k + i / 2][i % 2 * 2];
        p[k][i] = kIsBf16 ? packBf16(pair[0], pair[1]) : packF16(pair[0], pair[1]);
      }
  }
};

/// Grid: (query tiles, KV heads, rows of the largest tile / rows of a block).
template <class Config, int Consumers> struct WgmmaPrefill {
  using Attention = WgmmaAttention<Config, Consumers, Config::kStages>;
  using Block = typename Attention::Block;
  using Tile = typename Block::Tile;
  static constexpr int kRows = 64 * Consumers;

  struct Shared {
    typename Attention::Ring ring;
    /// The splits so far: each lane its own values.
    float4 merged[Config::kMaxSplits > 1 ? 4 * Consumers : 1][Tile::kValueTiles][32];
  };

  LLMC_MEMBER void run(const LlmrtCudaStep *step, const LlmrtCudaBindings &b,
                       const LlmrtKvMaps &maps) {
    LLMC_SHARED(Shared, shared);
    const long long tile = gridDim.x - 1 - blockIdx.x; // the longest first
    if (tile >= step->Q)
      return;
    const int count = step->tileCount[tile];
    const int firstRow = blockIdx.z * kRows;
    if (count < 2 || firstRow >= count * Block::kGroup)
      return;
    const int start = step->tileStart[tile], sequence = step->tileSeq[tile];
    const int kvHead = blockIdx.y;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int lastRow = min(firstRow + kRows, count * Block::kGroup) - 1;
    const typename Block::KeyRange keys(step, start, firstRow, lastRow);
    if (threadIdx.x == 0)
      shared.ring.prepare();
    __syncthreads();
    if (warp < 4) {
      if constexpr (Consumers == 2)
        releaseRegisters<40>();
      // A tile of several tokens has no tree.
      const TreeKeys noTree(keys.beyond);
      if (warp == 0)
        Attention::produce(shared.ring, maps,
                           {step->blockTable + sequence * step->maxBlocks,
                            static_cast<int>(step->blockTokens), kvHead, keys.beyond, noTree},
                           keys.firstTile, keys.tiles, lane);
      return;
    }
    if constexpr (Consumers == 2)
      takeRegisters<232>(); // 128 * (40 + 2 * 232) are what the launch gives, 384 * 168
    const int rowWarp = warp - 4;
    typename Block::Rows rows;
    rows.ofTokens(step, b, kvHead, start, count, firstRow + rowWarp * 16, lane);
    typename Tile::State state;
    state.reset();
    MergedSplits<Tile::kValueTiles> merged;
    auto endSplit = [&](const float (&largest)[2], float (&sum)[2]) {
      addLanes(sum);
      merged.add(shared.merged[rowWarp], state.values, largest, sum, lane);
    };
    Attention::template consume<(Config::kMaxSplits > 1)>(shared.ring, state, rows, keys.firstTile,
                                                          keys.tiles, lane, endSplit);
    if constexpr (Config::kMaxSplits > 1) {
      endSplit(state.largest, state.sum);
      merged.get(shared.merged[rowWarp], state, lane);
    } else {
      state.finish();
    }
    Block::store(b, rows.out, rows.heads, state, 0, lane % 4);
  }
};

/// Grid: that of DecodeSplit. The last block of a row to finish adds up the splits.
template <class Config, int Stages> struct WgmmaDecode {
  using Attention = WgmmaAttention<Config, 1, Stages>;
  using Block = typename Attention::Block;
  using Tile = typename Block::Tile;
  using Splits = SplitRecords<Config, 64>;

  struct Shared {
    typename Attention::Ring ring;
    bool isLast;
  };

  LLMC_MEMBER void run(const LlmrtCudaStep *step, const LlmrtCudaBindings &b,
                       const LlmrtKvMaps &maps) {
    LLMC_SHARED(Shared, shared);
    DecodeSplit<Config, 64> at;
    if (!at.find(step))
      return;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (threadIdx.x == 0)
      shared.ring.prepare();
    __syncthreads();
    if (warp < 4) {
      if (warp == 0)
        Attention::produce(shared.ring, maps,
                           {step->blockTable + at.sequence * step->maxBlocks,
                            static_cast<int>(step->blockTokens), at.kvHead, at.beyond,
                            TreeKeys(step, at.token, at.position)},
                           at.firstTile, at.tiles, lane);
      return;
    }
    const int rowWarp = warp - 4, thread = threadIdx.x - kWarpgroup;
    typename Block::Rows rows;
    rows.ofToken(b, at.kvHead, at.token, at.position, at.rowBlock * 64 + rowWarp * 16, lane);
    typename Tile::State state;
    state.reset();
    Attention::template consume<false>(shared.ring, state, rows, at.firstTile, at.tiles, lane,
                                       [](const float (&)[2], float (&)[2]) {});
    state.finish();
    if (at.splits == 1) {
      Block::store(b, rows.out, rows.heads, state, 0, lane % 4);
      return;
    }
    Splits::save(b, state, at.tile, rows.heads, at.split, 0, lane);
    if (Splits::isLast(b, at.tile, at.kvHead, at.rowBlock, at.splits, shared.isLast, thread,
                       [] { barrierOf(1, kWarpgroup); }))
      Splits::addUp(b, at.tile, at.token, at.kvHead, at.rowBlock, at.splits, thread, kWarpgroup);
  }
};

#endif // LLMC_CUDA_ATTENTION_SM90_CUH
