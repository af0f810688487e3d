//===- Attention.cpp - paged, causal, online softmax ----------------------------===//
//
// A task is one query tile (a few tokens of one sequence) and one KV head; the query heads that
// share the KV head are rows of the tile (row = token * heads a KV head + head), or one of
// `head_tasks` equal parts of them. Key tiles of 64,
// aligned to position 0, in ascending order: Dao, FlashAttention-2 (2023), with a fixed key tile.
//
// What a row computes depends on its own range of keys alone: a tile outside of it is left out
// (which equals multiplying with 1 and adding 0), inside one a row's bounds are exact, so that no
// other query, chunking, block size or stale memory can touch it.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/kernels/AttentionTile.h"
#include "codegen/cpu/kernels/Kernel.h"
#include "codegen/cpu/kernels/Scratch.h"

using namespace llmc::kernel;

namespace {

struct Attention {
  const LlmrtStep *step;
  const float *q;
  float *y;
  const float *sinks; ///< [heads], or null
  int64_t heads, kvHeads, keySize, valueSize, window, element, prefixBytes, latent, headTasks;
  float scale, softcap;
  const float *slopes; ///< of ALiBi, [heads]; null: none
  AttentionScratch layout;
  float *scratch;
  SoftmaxState state;

  /// Query heads of a task. A "head" below is the task's: kvHeads * headTasks of them.
  KERNEL_LAMBDA int64_t group() const { return heads / (kvHeads * headTasks); }
  KERNEL_LAMBDA int64_t lowest(int64_t token) const {
    const int64_t p = step->positions[token];
    return window > 0 && p >= window ? p - window + 1 : 0;
  }
  KERNEL_LAMBDA int64_t beyond(int64_t token) const { return step->positions[token] + 1; }

  /// Where run \p run (of 16 tokens, counted from position 0) of the sequence lies.
  struct Run {
    const uint8_t *keys, *values;
  };
  KERNEL_LAMBDA Run findRun(int64_t sequence, int64_t head, int64_t run) const {
    const int64_t runsPerBlock = step->blockTokens / kRunTokens;
    const int64_t block = step->blockTable[sequence * step->maxBlocks + run / runsPerBlock];
    const int64_t inBlock = run % runsPerBlock;
    KvBlock kv = kvBlock(step, block, prefixBytes, head / headTasks, keySize,
                         latent ? 0 : valueSize, element);
    return {kv.keys + inBlock * kvRunBytes(keySize, element),
            kv.values + inBlock * kvRunBytes(valueSize, element)};
  }

  /// Copies tokens [lo, hi) of a run into the scratch as f32 (int8 without scales), as run \p c of
  /// a tile.
  KERNEL_LAMBDA Run convertRun(const Run &run, int64_t c, int64_t lo, int64_t hi) const {
    const int64_t bytes = elementBytes(element);
    float *keys = scratch + layout.keys + c * kRunTokens * keySize;
    float *values = scratch + layout.values + c * kRunTokens * layout.valueStride;
    for (int64_t d = 0; d < keySize; ++d)
      store(keys + d * kRunTokens, loadElements(run.keys + d * kRunTokens * bytes, element));
    if (latent) { // values are the keys' first elements: [d][16] -> [16][d]
      for (int64_t i = 0; i < valueSize; i += kLanes)
        transposeTile(keys + i * kRunTokens, values + i, layout.valueStride, keySize - i);
      return {reinterpret_cast<const uint8_t *>(keys), reinterpret_cast<const uint8_t *>(values)};
    }
    for (int64_t t = lo; t < hi; ++t)
      for (int64_t i = 0; i < valueSize; i += kLanes)
        store(values + t * layout.valueStride + i,
              loadElementsPart(run.values + (t * valueSize + i) * bytes, element, valueSize - i));
    return {reinterpret_cast<const uint8_t *>(keys), reinterpret_cast<const uint8_t *>(values)};
  }

  /// Points \p tile at the memory that is wanted after key tile \p index: the next tile, or the
  /// next head's first. Runs lie in blocks anywhere, so no hardware can guess it.
  KERNEL_LAMBDA void findNext(int64_t sequence, int64_t head, int64_t index, int64_t lo, int64_t hi,
                              KeyTile &tile) const {
    const int64_t last = (hi - 1) / kRunTokens;
    const bool isLast = (index + 1) * kRuns > last;
    const int64_t nextHead = isLast && head + 1 < kvHeads * headTasks ? head + 1 : head;
    const int64_t first = isLast ? lo / kKeyTile * kRuns : (index + 1) * kRuns;
    for (int64_t c = 0; c < kRuns; ++c) {
      const Run run = findRun(sequence, nextHead, smaller(first + c, last));
      tile.nextKeys[c] = run.keys, tile.nextValues[c] = run.values;
    }
  }

  template <int Rows, bool Prefetch>
  KERNEL_LAMBDA void score(int64_t row, int64_t start, int64_t head, const KeyTile &tile) const {
    const float *pointers[Rows];
    unroll<Rows>([&](auto r) KERNEL_LAMBDA {
      const int64_t token = start + (row + r) / group(), inGroup = (row + r) % group();
      pointers[r] = q + (token * heads + head * group() + inGroup) * keySize;
    });
    scoreRows<Rows, Prefetch>(state, row, pointers, tile, keySize);
  }

  KERNEL_LAMBDA PositionBias bias(int64_t row, int64_t start, int64_t head, int64_t base) const {
    if (!slopes)
      return {0.0f, 0};
    const int64_t token = start + row / group();
    return {slopes[head * group() + row % group()], base - step->positions[token]};
  }

  /// \p count (1 to 4) rows from \p row on, all of which see the keys [lo, hi) of the tile, whose
  /// first key is at position \p base.
  template <bool Prefetch>
  KERNEL_LAMBDA void attend(int64_t row, int64_t count, int64_t start, int64_t head,
                            const KeyTile &tile, int64_t base, int64_t lo, int64_t hi) const {
    if (count == 4)
      score<4, Prefetch>(row, start, head, tile);
    else if (count == 3)
      score<3, Prefetch>(row, start, head, tile);
    else if (count == 2)
      score<2, Prefetch>(row, start, head, tile);
    else
      score<1, Prefetch>(row, start, head, tile);
    for (int64_t r = 0; r < count; ++r)
      softmaxRow(state, row + r, tile, lo, hi, scale, softcap, slopes != nullptr,
                 bias(row + r, start, head, base));
    if (count == 4)
      valueRows<4, Prefetch>(state, row, tile, lo, hi);
    else if (count == 3)
      valueRows<3, Prefetch>(state, row, tile, lo, hi);
    else if (count == 2)
      valueRows<2, Prefetch>(state, row, tile, lo, hi);
    else
      valueRows<1, Prefetch>(state, row, tile, lo, hi);
  }

  /// All query rows against key tile \p index; keys [lo, hi) are those that any row sees. With
  /// \p convert, keys and values become f32 once for all rows. \p Prefetch asks for the next tile's
  /// memory on the way, and is of tasks of one token and up to four heads.
  template <bool Prefetch>
  KERNEL_LAMBDA void keyTile(int64_t sequence, int64_t head, int64_t start, int64_t count,
                             int64_t index, int64_t lo, int64_t hi, bool convert) const {
    const int64_t base = index * kKeyTile;
    KeyTile tile;
    tile.element = convert ? int64_t(kF32) : element;
    tile.isScaled = element == kI8;
    tile.valueStride = layout.valueStride;
    const int64_t from = lo > base ? lo - base : 0, to = smaller(hi - base, kKeyTile);
    const int64_t firstRun = from / kRunTokens, lastRun = (to - 1) / kRunTokens;
    for (int64_t c = firstRun; c <= lastRun; ++c) {
      const int64_t runLo = from > c * kRunTokens ? from - c * kRunTokens : 0;
      Run run = findRun(sequence, head, base / kRunTokens + c);
      const int64_t bytes = kRunTokens * elementBytes(element);
      tile.keyScales[c] = reinterpret_cast<const float *>(run.keys + keySize * bytes);
      tile.valueScales[c] = reinterpret_cast<const float *>(run.values + valueSize * bytes);
      if (convert)
        run = convertRun(run, c, runLo, smaller(to - c * kRunTokens, kRunTokens));
      tile.keys[c] = run.keys, tile.values[c] = run.values;
    }
    for (int64_t c = 0; c < kRuns; ++c)
      if (c < firstRun || c > lastRun) {
        tile.keys[c] = tile.keys[firstRun], tile.values[c] = tile.values[firstRun];
        tile.keyScales[c] = tile.keyScales[firstRun];
        tile.valueScales[c] = tile.valueScales[firstRun];
      }

    if constexpr (Prefetch)
      findNext(sequence, head, index, lo, hi, tile);

    const int64_t all = count * group();
    for (int64_t row = 0; row < all;) {
      // Rows that see the same keys of this tile go together: at least those of one token.
      int64_t rowLo = 0, rowHi = 0, same = 0;
      for (int64_t r = row; r < all && same < 4; r += group() - r % group()) {
        const int64_t token = start + r / group();
        const int64_t l = lowest(token) - base, h = beyond(token) - base;
        const int64_t clippedLo = l > 0 ? l : 0, clippedHi = smaller(h, kKeyTile);
        if (r != row && (clippedLo != rowLo || clippedHi != rowHi))
          break;
        rowLo = clippedLo, rowHi = clippedHi;
        same += group() - r % group();
      }
      if (rowLo >= rowHi) { // nothing of this tile is visible
        row += same;
        continue;
      }
      // A task of one token has that token's heads for rows: a constant, and one text.
      const int64_t together = Prefetch ? group() : smaller(same, 4);
      attend<Prefetch>(row, together, start, head, tile, base, rowLo, rowHi);
      row += together;
    }
  }

  KERNEL_LAMBDA void task(int64_t queryTile, int64_t head) const {
    const int64_t sequence = step->tileSeq[queryTile], start = step->tileStart[queryTile];
    const int64_t count = step->tileCount[queryTile], all = count * group();
    for (int64_t r = 0; r < all; ++r) {
      // A sink is a key that was seen first and has the value 0.
      state.largest[r] = sinks ? sinks[head * group() + r % group()] : -__builtin_inff();
      store(state.sums + r * kLanes, splat(0.0f));
      if (sinks)
        state.sums[r * kLanes] = 1.0f;
      for (int64_t i = 0; i < layout.valueStride; i += kLanes)
        store(state.outputs + r * layout.valueStride + i, splat(0.0f));
    }
    int64_t lo = lowest(start), hi = beyond(start);
    for (int64_t t = start + 1; t < start + count; ++t) {
      lo = smaller(lo, lowest(t));
      hi = hi > beyond(t) ? hi : beyond(t);
    }
    // One block of rows reads keys and values once: converting them in registers is enough.
    const bool isPlain = element == kF32 && valueSize == layout.valueStride && !latent;
    const bool isShort = count == 1 && group() <= 4 && valueSize == layout.valueStride && !latent;
    for (int64_t index = lo / kKeyTile; index * kKeyTile < hi; ++index) {
      if (isShort)
        keyTile<true>(sequence, head, start, count, index, lo, hi, false);
      else
        keyTile<false>(sequence, head, start, count, index, lo, hi, !isPlain);
    }
    for (int64_t r = 0; r < all; ++r) {
      const float sum = sumLanes(load(state.sums + r * kLanes));
      const float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
      const int64_t token = start + r / group(), inGroup = r % group();
      float *out = y + (token * heads + head * group() + inGroup) * valueSize;
      for (int64_t i = 0; i < valueSize; i += kLanes)
        storePart(out + i, load(state.outputs + r * layout.valueStride + i) * inverse,
                  valueSize - i);
    }
  }
};

} // namespace

LLMC_KERNEL(attention, int64_t heads, int64_t kvHeads, int64_t keySize, int64_t valueSize,
            float scale, float softcap, int64_t window, int64_t kvElement, int64_t queryTile,
            int64_t alibi, int64_t sinks, int64_t latent, int64_t headTasks) {
  const int64_t parts = headTasks ? headTasks : 1;
  const AttentionScratch layout(queryTile, heads / (kvHeads * parts), keySize, valueSize);
  float *s = static_cast<float *>(scratch);
  const Attention a = {step,
                       binding<float>(bindings, 0),
                       binding<float>(bindings, 1 + (alibi != 0) + (sinks != 0)),
                       sinks ? binding<float>(bindings, 1 + (alibi != 0)) : nullptr,
                       heads,
                       kvHeads,
                       keySize,
                       valueSize,
                       window,
                       kvElement,
                       scalars[0],
                       latent,
                       parts,
                       scale,
                       softcap,
                       alibi ? binding<float>(bindings, 1) : nullptr,
                       layout,
                       s,
                       {s + layout.largest, s + layout.sums, s + layout.weights, s + layout.rescale,
                        s + layout.outputs}};
  for (int64_t t = taskBegin; t < taskEnd; ++t)
    a.task(t / (kvHeads * parts), t % (kvHeads * parts));
}
