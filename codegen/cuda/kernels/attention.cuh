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

#include "attention_block.cuh"

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

    typename Tile::Query query;
    float *out[2];
    int low[2], high[2], heads[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = firstRow + rowWarp * 16 + lane / 4 + 8 * r;
      const int token = start + row / kGroup;
      const bool exists = row < count * kGroup;
      const int head = kvHead * kGroup + row % kGroup;
      const long long at = static_cast<long long>(token) * Config::kHeads + head;
      heads[r] = exists ? head : -1;
      query.row[r] = exists ? binding<const float>(b, 0) + at * Config::kKeySize : nullptr;
      query.slope[r] = exists && Config::kAlibi ? binding<const float>(b, 1)[head] : 0.0f;
      out[r] = exists ? binding<float>(b, Block::kOut) + at * Config::kValueSize : nullptr;
      const int position = exists ? step->positions[token] : -1;
      low[r] = Block::lowest(position);
      high[r] = position + 1;
    }
    query.load(lane % 4);

    // Positions of a tile ascend: its first and last rows bound what the block reads.
    const int lastRow = min(firstRow + kRows, count * kGroup) - 1;
    const int beyond = step->positions[start + lastRow / kGroup] + 1;
    const int firstTile = Block::lowest(step->positions[start + firstRow / kGroup]) / kKeyTile;
    const int tiles = (beyond + kKeyTile - 1) / kKeyTile - firstTile;
    const typename Block::Cache cache(step, b.scalars[0]);
    const int *table = step->blockTable + sequence * step->maxBlocks;
    typename Tile::State state;
    state.reset();
    Merged merged;
    Block::attendTiles(
        shared.stages, state, query, cache, kvHead, firstTile, tiles, beyond, low, high, part, lane,
        [&](int key) -> long long { return Block::slotOf(table, cache, key); },
        [&](int i) {
          if (Config::kMaxSplits > 1 && (firstTile + i + 1) % Block::kSplitTiles == 0 &&
              i + 1 < tiles)
            merge(shared, merged, state, warp, lane);
        });
    if constexpr (Config::kMaxSplits > 1) {
      merge(shared, merged, state, warp, lane);
#pragma unroll
      for (int i = 0; i < Tile::kValueTiles; ++i) {
        const float4 v = shared.merged[warp][i][lane];
        state.values[i][0] = v.x, state.values[i][1] = v.y;
        state.values[i][2] = v.z, state.values[i][3] = v.w;
      }
      state.sum[0] = merged.sum[0], state.sum[1] = merged.sum[1];
      state.largest[0] = merged.largest[0], state.largest[1] = merged.largest[1];
    } else {
      state.finish();
    }
    Block::store(b, out, heads, state, part, lane % 4);
  }

private:
  /// Of the splits before: their values are in shared memory once there is one.
  struct Merged {
    float largest[2], sum[2];
    bool empty;
    LLMC_METHOD Merged() : empty(true) {
      largest[0] = largest[1] = minusInfinity();
      sum[0] = sum[1] = 0.0f;
    }
  };

  /// Ends a split: adds it to those before and starts the next.
  LLMC_MEMBER void merge(Shared &shared, Merged &merged, typename Tile::State &state, int warp,
                         int lane) {
    state.finish();
    float before[2], split[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const MergeFactors f = mergeFactors(merged.largest[r], state.largest[r]);
      before[r] = f.before, split[r] = f.split;
      merged.largest[r] = f.largest;
      merged.sum[r] = fmaf(state.sum[r], f.split, merged.sum[r] * f.before);
    }
#pragma unroll
    for (int i = 0; i < Tile::kValueTiles; ++i) {
      const float4 v =
          merged.empty ? make_float4(0.0f, 0.0f, 0.0f, 0.0f) : shared.merged[warp][i][lane];
      shared.merged[warp][i][lane] =
          make_float4(fmaf(state.values[i][0], split[0], v.x * before[0]),
                      fmaf(state.values[i][1], split[0], v.y * before[0]),
                      fmaf(state.values[i][2], split[1], v.z * before[1]),
                      fmaf(state.values[i][3], split[1], v.w * before[1]));
    }
    merged.empty = false;
    state.reset();
  }
};

/// Grid: (query tiles, KV heads, row blocks * splits of the longest context). The last block of a
/// row to finish adds up the splits.
template <class Config> struct DecodeAttention {
  using Block = AttentionBlock<Config, 1>;
  using Tile = typename Block::Tile;
  static constexpr int kThreads = Block::kThreads;
  static constexpr int kGroup = Block::kGroup, kKeyTile = Block::kKeyTile;
  static constexpr int kRowBlocks = (kGroup + 15) / 16;
  static constexpr int DV = Config::kValueSize;

  struct Shared {
    typename Block::Stage stages[Config::kStages];
    bool isLast;
  };

  /// Workspace: counters [Q][kKvHeads][kRowBlocks] padded to kCounters, then for each query tile
  /// and head, for each split, its largest, its sum and its values.
  static constexpr long long kRecord = DV + 2;
  LLMC_MEMBER float *record(const LlmrtCudaBindings &b, long long tile, int head, int split) {
    float *records =
        reinterpret_cast<float *>(static_cast<unsigned char *>(b.scratch) + Config::kCounterBytes);
    return records + ((tile * Config::kHeads + head) * Config::kMaxSplits + split) * kRecord;
  }

  LLMC_MEMBER void run(const LlmrtCudaStep *step, const LlmrtCudaBindings &b) {
    LLMC_SHARED(Shared, shared);
    const long long tile = blockIdx.x;
    if (tile >= step->Q || step->tileCount[tile] != 1)
      return;
    const int token = step->tileStart[tile], sequence = step->tileSeq[tile];
    const int position = step->positions[token];
    const int lowest = Block::lowest(position);
    const int rowBlock = blockIdx.z % kRowBlocks;
    const int firstSplit = lowest / Config::kSplitKeys;
    const int splits = position / Config::kSplitKeys - firstSplit + 1;
    const int split = blockIdx.z / kRowBlocks;
    if (split >= splits)
      return;
    const int kvHead = blockIdx.y;
    const int lane = threadIdx.x % 32, part = threadIdx.x / 32;

    typename Tile::Query query;
    float *out[2];
    int low[2], high[2], heads[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = rowBlock * 16 + lane / 4 + 8 * r;
      const bool exists = row < kGroup;
      heads[r] = exists ? kvHead * kGroup + row : -1;
      const long long at = static_cast<long long>(token) * Config::kHeads + kvHead * kGroup + row;
      query.row[r] = exists ? binding<const float>(b, 0) + at * Config::kKeySize : nullptr;
      query.slope[r] =
          exists && Config::kAlibi ? binding<const float>(b, 1)[kvHead * kGroup + row] : 0.0f;
      out[r] = exists ? binding<float>(b, Block::kOut) + at * DV : nullptr;
      low[r] = exists ? lowest : 0;
      high[r] = exists ? position + 1 : 0;
    }
    query.load(lane % 4);

    const int from = max(lowest, (firstSplit + split) * Config::kSplitKeys);
    const int beyond = min(position + 1, (firstSplit + split + 1) * Config::kSplitKeys);
    const int firstTile = from / kKeyTile;
    const int tiles = (beyond + kKeyTile - 1) / kKeyTile - firstTile;
    const typename Block::Cache cache(step, b.scalars[0]);
    const int *table = step->blockTable + sequence * step->maxBlocks;
    // In a tree the last keys are those of the token's ancestors, wherever they lie.
    const int *ancestors =
        step->ancestors == nullptr ? nullptr : step->ancestors + token * step->ancestorWidth;
    int treeKeys = 0;
    if (ancestors != nullptr)
      while (treeKeys < step->ancestorWidth && ancestors[treeKeys] >= 0)
        ++treeKeys;
    const int tree = position - treeKeys;
    typename Tile::State state;
    state.reset();
    Block::attendTiles(
        shared.stages, state, query, cache, kvHead, firstTile, tiles, beyond, low, high, part, lane,
        [&](int key) -> long long {
          if (treeKeys > 0 && key >= tree)
            return step->slots[key == position ? token : ancestors[key - tree]];
          return Block::slotOf(table, cache, key);
        },
        [](int) {});
    state.finish();
    if (splits == 1) {
      Block::store(b, out, heads, state, part, lane % 4);
      return;
    }
    save(b, state, tile, heads, split, part, lane);
    // The last of the splits to get here sees what all have saved: the fences of one thread stand
    // for what the barriers before and after them order.
    __syncthreads();
    if (threadIdx.x == 0) {
      unsigned *counter = static_cast<unsigned *>(b.scratch) +
                          (tile * Config::kKvHeads + kvHead) * kRowBlocks + rowBlock;
      __threadfence();
      const unsigned before = atomicAdd(counter, 1u);
      __threadfence();
      shared.isLast = before + 1 == static_cast<unsigned>(splits);
      if (shared.isLast)
        *counter = 0; // for the next launch
    }
    __syncthreads();
    if (!shared.isLast)
      return;
    addSplits(b, tile, token, kvHead, rowBlock, splits);
  }

private:
  LLMC_MEMBER void save(const LlmrtCudaBindings &b, const typename Tile::State &state,
                        long long tile, const int (&heads)[2], int split, int part, int lane) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (heads[r] < 0)
        continue;
      float *to = record(b, tile, heads[r], split);
      if (lane % 4 == 0 && part == 0) {
        to[0] = state.largest[r];
        to[1] = state.sum[r];
      }
#pragma unroll
      for (int i = 0; i < Tile::kValueTiles; ++i)
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          const int column = part * Tile::kValueTiles * 8 + 8 * i + 2 * (lane % 4) + c;
          if (column < DV)
            to[2 + column] = state.values[i][2 * r + c];
        }
    }
  }

  LLMC_MEMBER void addSplits(const LlmrtCudaBindings &b, long long tile, int token, int kvHead,
                             int rowBlock, int splits) {
    const int rows = min(16, kGroup - rowBlock * 16);
    for (int i = threadIdx.x; i < rows * DV; i += kThreads) {
      const int head = kvHead * kGroup + rowBlock * 16 + i / DV, column = i % DV;
      float largest = minusInfinity(), sum = 0.0f, value = 0.0f;
      for (int s = 0; s < splits; ++s) {
        const float *from = record(b, tile, head, s);
        const MergeFactors f = mergeFactors(largest, from[0]);
        largest = f.largest;
        sum = fmaf(from[1], f.split, sum * f.before);
        value = fmaf(from[2 + column], f.split, value * f.before);
      }
      const float inverse = Block::inverse(b, head, largest, sum);
      binding<float>(
          b, Block::kOut)[(static_cast<long long>(token) * Config::kHeads + head) * DV + column] =
          value * inverse;
    }
  }
};

#endif // LLMC_CUDA_ATTENTION_CUH
