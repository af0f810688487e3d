//===- attention.cuh - causal attention over the paged cache --------------------===//
//
// Two kernels of one order of operations (softmax.cuh), so that a token has the same bits in both:
// PrefillAttention takes query tiles of two tokens or more, DecodeAttention those of one token,
// with the context cut into splits that run side by side. The query heads that share a KV head are
// rows of one tile (row = token * heads a KV head + head).
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CUDA_ATTENTION_CUH
#define LLMC_CUDA_ATTENTION_CUH

#include "attention_splits.cuh"

/// Grid: (query tiles, KV heads, rows of the largest tile / rows of a block).
template <class Config> struct PrefillAttention {
  using Block = AttentionBlock<Config, Config::kRowWarps>;
  using Tile = typename Block::Tile;
  static constexpr int kThreads = Block::kThreads;
  static constexpr int kGroup = Block::kGroup, kKeyTile = Block::kKeyTile;
  static constexpr int kRows = 16 * Config::kRowWarps;

  struct Shared {
    typename Block::Stage stages[Config::kStages];
    /// The splits so far: each lane its own values.
    float4 merged[Config::kMaxSplits > 1 ? kThreads / 32 : 1][Tile::kValueTiles][32];
  };

  LLMC_MEMBER void run(const LlmrtCudaStep *step, const LlmrtCudaBindings &b) {
    LLMC_SHARED(Shared, shared);
    const long long tile = blockIdx.x;
    if (tile >= step->Q)
      return;
    const int count = step->tileCount[tile];
    const int firstRow = blockIdx.z * kRows;
    if (count < 2 || firstRow >= count * kGroup)
      return;
    const int start = step->tileStart[tile], sequence = step->tileSeq[tile];
    const int kvHead = blockIdx.y;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int rowWarp = warp % Config::kRowWarps, part = warp / Config::kRowWarps;

    typename Block::Rows rows;
    rows.ofTokens(step, b, kvHead, start, count, firstRow + rowWarp * 16, lane);
    const int lastRow = min(firstRow + kRows, count * kGroup) - 1;
    const typename Block::KeyRange keys(step, start, firstRow, lastRow);
    const typename Block::Cache cache(step, b.scalars[0]);
    const int *table = step->blockTable + sequence * step->maxBlocks;
    typename Tile::State state;
    state.reset();
    MergedSplits<Tile::kValueTiles> merged;
    auto endSplit = [&] {
      state.finish();
      merged.add(shared.merged[warp], state.values, state.largest, state.sum, lane);
      state.reset();
    };
    Block::attendTiles(
        shared.stages, state, rows, cache, kvHead, keys.firstTile, keys.tiles, keys.beyond, part,
        lane, [&](int key) -> long long { return Block::slotOf(table, cache, key); },
        [&](int i) {
          if (Config::kMaxSplits > 1 && (keys.firstTile + i + 1) % Block::kSplitTiles == 0 &&
              i + 1 < keys.tiles)
            endSplit();
        });
    if constexpr (Config::kMaxSplits > 1) {
      endSplit();
      merged.get(shared.merged[warp], state, lane);
    } else {
      state.finish();
    }
    Block::store(b, rows.out, rows.heads, state, part, lane % 4);
  }
};

/// Grid: that of DecodeSplit. The last block of a row to finish adds up the splits.
template <class Config> struct DecodeAttention {
  using Block = AttentionBlock<Config, 1>;
  using Tile = typename Block::Tile;
  using Splits = SplitRecords<Config, 16>;
  static constexpr int kThreads = Block::kThreads;

  struct Shared {
    typename Block::Stage stages[Config::kStages];
    bool isLast;
  };

  LLMC_MEMBER void run(const LlmrtCudaStep *step, const LlmrtCudaBindings &b) {
    LLMC_SHARED(Shared, shared);
    DecodeSplit<Config, 16> at;
    if (!at.find(step))
      return;
    const int lane = threadIdx.x % 32, part = threadIdx.x / 32;
    typename Block::Rows rows;
    rows.ofToken(b, at.kvHead, at.token, at.position, at.rowBlock * 16, lane);
    const typename Block::Cache cache(step, b.scalars[0]);
    const int *table = step->blockTable + at.sequence * step->maxBlocks;
    const TreeKeys tree(step, at.token, at.position);
    typename Tile::State state;
    state.reset();
    Block::attendTiles(
        shared.stages, state, rows, cache, at.kvHead, at.firstTile, at.tiles, at.beyond, part, lane,
        [&](int key) -> long long {
          return tree.has(key) ? tree.slot(key) : Block::slotOf(table, cache, key);
        },
        [](int) {});
    state.finish();
    if (at.splits == 1) {
      Block::store(b, rows.out, rows.heads, state, part, lane % 4);
      return;
    }
    Splits::save(b, state, at.tile, rows.heads, at.split, part, lane);
    if (Splits::isLast(b, at.tile, at.kvHead, at.rowBlock, at.splits, shared.isLast, threadIdx.x,
                       [] { __syncthreads(); }))
      Splits::addUp(b, at.tile, at.token, at.kvHead, at.rowBlock, at.splits, threadIdx.x, kThreads);
  }
};

#endif // LLMC_CUDA_ATTENTION_CUH
