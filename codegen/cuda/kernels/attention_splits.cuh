//===- attention_splits.cuh - the splits of a context, added up; trees ----------===//
//
// A context is cut into splits of kSplitKeys keys, each of which starts from nothing. They are
// added up in ascending order, by a prompt's rows one after the other (MergedSplits), of decoding
// by the last block to be done (SplitRecords): the same operations, so the same bits.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CUDA_ATTENTION_SPLITS_CUH
#define LLMC_CUDA_ATTENTION_SPLITS_CUH

#include "attention_block.cuh"

/// The splits so far of a lane's two rows. Their values are in shared memory once there is one.
template <int ValueTiles> struct MergedSplits {
  float largest[2], sum[2];
  bool empty;

  LLMC_METHOD MergedSplits() : empty(true) {
    largest[0] = largest[1] = minusInfinity();
    sum[0] = sum[1] = 0.0f;
  }

  /// Adds a finished split to those before.
  LLMC_METHOD void add(float4 (&memory)[ValueTiles][32], const float (&values)[ValueTiles][4],
                       const float (&splitLargest)[2], const float (&splitSum)[2], int lane) {
    float before[2], split[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const MergeFactors f = mergeFactors(largest[r], splitLargest[r]);
      before[r] = f.before, split[r] = f.split;
      largest[r] = f.largest;
      sum[r] = fmaf(splitSum[r], f.split, sum[r] * f.before);
    }
#pragma unroll
    for (int i = 0; i < ValueTiles; ++i) {
      const float4 v = empty ? make_float4(0.0f, 0.0f, 0.0f, 0.0f) : memory[i][lane];
      memory[i][lane] = make_float4(fmaf(values[i][0], split[0], v.x * before[0]),
                                    fmaf(values[i][1], split[0], v.y * before[0]),
                                    fmaf(values[i][2], split[1], v.z * before[1]),
                                    fmaf(values[i][3], split[1], v.w * before[1]));
    }
    empty = false;
  }

  /// All of them.
  LLMC_METHOD void get(const float4 (&memory)[ValueTiles][32], SoftmaxState<ValueTiles> &state,
                       int lane) const {
#pragma unroll
    for (int i = 0; i < ValueTiles; ++i) {
      const float4 v = memory[i][lane];
      state.values[i][0] = v.x, state.values[i][1] = v.y;
      state.values[i][2] = v.z, state.values[i][3] = v.w;
    }
    state.sum[0] = sum[0], state.sum[1] = sum[1];
    state.largest[0] = largest[0], state.largest[1] = largest[1];
  }
};

/// The splits of decoding, in the workspace: counters [Q][kKvHeads][row blocks] padded to
/// kCounterBytes, then for each query tile, head and split its largest, its sum and its values.
/// A block has \p BlockRows of the heads that share a KV head.
template <class Config, int BlockRows> struct SplitRecords {
  using Block = AttentionBlock<Config, 1>;
  using Tile = typename Block::Tile;
  static constexpr int kGroup = Block::kGroup, DV = Config::kValueSize;
  static constexpr int kRowBlocks = (kGroup + BlockRows - 1) / BlockRows;
  static constexpr long long kRecord = DV + 2;

  LLMC_MEMBER float *record(const LlmrtCudaBindings &b, long long tile, int head, int split) {
    float *records =
        reinterpret_cast<float *>(static_cast<unsigned char *>(b.scratch) + Config::kCounterBytes);
    return records + ((tile * Config::kHeads + head) * Config::kMaxSplits + split) * kRecord;
  }

  /// A lane's rows of a finished split.
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

  /// Whether this block is the last of the splits to get here; it sees what all have saved. The
  /// fences of one thread stand for what \p barrier, of all threads that saved, orders before and
  /// after them.
  template <class Barrier>
  LLMC_MEMBER bool isLast(const LlmrtCudaBindings &b, long long tile, int kvHead, int rowBlock,
                          int splits, bool &answer, int thread, Barrier barrier) {
    barrier();
    if (thread == 0) {
      unsigned *counter = static_cast<unsigned *>(b.scratch) +
                          (tile * Config::kKvHeads + kvHead) * kRowBlocks + rowBlock;
      __threadfence();
      const unsigned before = atomicAdd(counter, 1u);
      __threadfence();
      answer = before + 1 == static_cast<unsigned>(splits);
      if (answer)
        *counter = 0; // for the next launch
    }
    barrier();
    return answer;
  }

  /// The result of a row block, by \p threads threads.
  LLMC_MEMBER void addUp(const LlmrtCudaBindings &b, long long tile, int token, int kvHead,
                         int rowBlock, int splits, int thread, int threads) {
    const int rows = min(BlockRows, kGroup - rowBlock * BlockRows);
    for (int i = thread; i < rows * DV; i += threads) {
      const int head = kvHead * kGroup + rowBlock * BlockRows + i / DV, column = i % DV;
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

/// A block of decoding: a split of the keys of a query tile of one token, for \p BlockRows of the
/// heads that share a KV head. Grid: (query tiles, KV heads, row blocks * splits of the longest
/// context).
template <class Config, int BlockRows> struct DecodeSplit {
  using Block = AttentionBlock<Config, 1>;
  static constexpr int kRowBlocks = SplitRecords<Config, BlockRows>::kRowBlocks;
  static constexpr int kKeyTile = Config::kKeyTile, kSplitKeys = Config::kSplitKeys;
  long long tile;
  int token, sequence, position, kvHead, rowBlock;
  int splits, split;            ///< of the token; this block's
  int beyond, firstTile, tiles; ///< its tiles of keys, of which those from beyond on don't count

  /// False: the step has no such block.
  LLMC_METHOD bool find(const LlmrtCudaStep *step) {
    tile = blockIdx.x;
    if (tile >= step->Q || step->tileCount[tile] != 1)
      return false;
    token = step->tileStart[tile], sequence = step->tileSeq[tile];
    position = step->positions[token];
    const int lowest = Block::lowest(position), firstSplit = lowest / kSplitKeys;
    splits = position / kSplitKeys - firstSplit + 1;
    split = blockIdx.z / kRowBlocks;
    if (split >= splits)
      return false;
    kvHead = blockIdx.y, rowBlock = blockIdx.z % kRowBlocks;
    beyond = min(position + 1, (firstSplit + split + 1) * kSplitKeys);
    firstTile = max(lowest, (firstSplit + split) * kSplitKeys) / kKeyTile;
    tiles = (beyond + kKeyTile - 1) / kKeyTile - firstTile;
    return true;
  }
};

/// The last keys of a token of a tree: those of its ancestors and its own, wherever they lie.
struct TreeKeys {
  const long long *slots;
  const int *ancestors;
  int token, position, count;
  int first; ///< of them; the token's own position plus 1 where it has no tree

  LLMC_METHOD TreeKeys(const LlmrtCudaStep *step, int token, int position)
      : slots(step->slots),
        ancestors(step->ancestors == nullptr ? nullptr
                                             : step->ancestors + token * step->ancestorWidth),
        token(token), position(position), count(0) {
    if (ancestors != nullptr)
      while (count < step->ancestorWidth && ancestors[count] >= 0)
        ++count;
    first = count > 0 ? position - count : position + 1;
  }
  /// Of a tile without a tree, whose rows see no key from \p beyond on.
  LLMC_METHOD explicit TreeKeys(int beyond)
      : slots(nullptr), ancestors(nullptr), token(0), position(beyond - 1), count(0),
        first(beyond) {}
  LLMC_METHOD bool has(int key) const { return key >= first; }
  LLMC_METHOD long long slot(int key) const {
    return slots[key == position ? token : ancestors[key - first]];
  }
};

#endif // LLMC_CUDA_ATTENTION_SPLITS_CUH
