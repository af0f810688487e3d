//===- Attention.cpp - paged, causal, online softmax ----------------------------===//
//
// A task is one query tile (a few tokens of one sequence) and one KV head; the query heads that
// share the KV head are rows of the tile (row = token * heads a KV head + head), or one of
// `head_tasks` equal parts of them. Key tiles of 64,
// aligned to position 0, in ascending order: Dao, FlashAttention-2 (2023), with a fixed key tile.
//
// With `key_split` a row's keys are cut every so many positions: each split has a softmax of its
// own, and they are merged in ascending order. Tasks then are the step's items: a tile and a KV
// head, or one split of them, in which case the task that ends last merges (FlashDecoding; Dao et
// al., 2023). Both do the same operations in the same order.
//
// What a row computes depends on its own range of keys alone: a tile outside of it is left out
// (which equals multiplying with 1 and adding 0), inside one a row's bounds are exact, so that no
// other query, chunking, block size or stale memory can touch it.
//
// A token of a tree (LlmrtStep::ancestors) is a query tile of its own. Its last keys lie in the
// slots of its ancestors: they are put into the copy of the runs that they belong to, so that the
// key at position j is reduced as the j-th key, whatever slot it lies in.
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
  int64_t heads, kvHeads, keySize, valueSize, element, prefixBytes, latent, headTasks;
  int64_t window; ///< keys that a query sees, itself one of them
  int64_t split;  ///< keys a split; 0: none
  float scale, softcap;
  const float *slopes; ///< of ALiBi, [heads]; null: none
  AttentionScratch layout;
  float *scratch;
  SoftmaxState state, total;

  /// Query heads of a task. A "head" below is the task's: kvHeads * headTasks of them.
  KERNEL_LAMBDA int64_t group() const { return heads / (kvHeads * headTasks); }
  KERNEL_LAMBDA int64_t lowest(int64_t token) const {
    const int64_t p = step->positions[token];
    return p >= window ? p - window + 1 : 0;
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

  /// The last keys of a token of a tree: those of its ancestors and its own.
  struct Path {
    const int32_t *ancestors; ///< null: the token has no tree
    int64_t token, first;     ///< first: position of ancestors[0]

    KERNEL_LAMBDA int64_t tokenAt(int64_t position, int64_t own) const {
      return position == own ? token : ancestors[position - first];
    }
  };
  KERNEL_LAMBDA Path pathOf(int64_t token) const {
    if (!step->ancestors)
      return {nullptr, 0, 0};
    const int32_t *ancestors = step->ancestors + token * step->ancestorWidth;
    int64_t count = 0;
    while (count < step->ancestorWidth && ancestors[count] >= 0)
      ++count;
    return {count ? ancestors : nullptr, token, step->positions[token] - count};
  }

  /// Calls \p each(place in the run, run that it lies in, place there) for those tokens of \p path
  /// that are of the run of 16 from \p base on.
  template <typename Each>
  KERNEL_LAMBDA void forPath(const Path &path, int64_t head, int64_t base, Each each) const {
    if (!path.ancestors)
      return;
    const int64_t own = step->positions[path.token];
    for (int64_t p = path.first > base ? path.first : base; p < smaller(own + 1, base + kRunTokens);
         ++p) {
      const int64_t slot = step->slots[path.tokenAt(p, own)];
      const int64_t block = slot / step->blockTokens, offset = slot % step->blockTokens;
      const KvBlock kv = kvBlock(step, block, prefixBytes, head / headTasks, keySize,
                                 latent ? 0 : valueSize, element);
      const int64_t inBlock = offset / kRunTokens;
      each(p - base,
           Run{kv.keys + inBlock * kvRunBytes(keySize, element),
               kv.values + inBlock * kvRunBytes(valueSize, element)},
           offset % kRunTokens);
    }
  }

  /// The scales of a run of int8, those of \p path in their places: run \p c of a tile.
  KERNEL_LAMBDA void placeScales(const Path &path, int64_t head, int64_t base, int64_t c,
                                 KeyTile &tile) const {
    if (!path.ancestors || element != kI8)
      return;
    float *keys = scratch + layout.scales + c * kRunTokens;
    float *values = keys + kKeyTile;
    store(keys, load(tile.keyScales[c]));
    store(values, load(tile.valueScales[c]));
    forPath(path, head, base, [&](int64_t at, Run run, int64_t from) KERNEL_LAMBDA {
      keys[at] = reinterpret_cast<const float *>(run.keys + keySize * kRunTokens)[from];
      values[at] = reinterpret_cast<const float *>(run.values + valueSize * kRunTokens)[from];
    });
    tile.keyScales[c] = keys, tile.valueScales[c] = values;
  }

  /// Copies tokens [lo, hi) of a run into the scratch as f32 (int8 without scales), as run \p c of
  /// a tile; those of \p path, whose run begins at position \p base, from where they lie.
  KERNEL_LAMBDA Run convertRun(const Run &run, int64_t c, int64_t lo, int64_t hi, const Path &path,
                               int64_t head, int64_t base) const {
    const int64_t bytes = elementBytes(element);
    float *keys = scratch + layout.keys + c * kRunTokens * keySize;
    float *values = scratch + layout.values + c * kRunTokens * layout.valueStride;
    for (int64_t d = 0; d < keySize; ++d)
      store(keys + d * kRunTokens, loadElements(run.keys + d * kRunTokens * bytes, element));
    forPath(path, head, base, [&](int64_t at, Run own, int64_t from) KERNEL_LAMBDA {
      for (int64_t d = 0; d < keySize; ++d)
        keys[d * kRunTokens + at] =
            loadElement(own.keys + (d * kRunTokens + from) * bytes, element);
    });
    if (latent) { // values are the keys' first elements: [d][16] -> [16][d]
      for (int64_t i = 0; i < valueSize; i += kLanes)
        transposeTile(keys + i * kRunTokens, values + i, layout.valueStride, keySize - i);
      return {reinterpret_cast<const uint8_t *>(keys), reinterpret_cast<const uint8_t *>(values)};
    }
    for (int64_t t = lo; t < hi; ++t)
      for (int64_t i = 0; i < valueSize; i += kLanes)
        store(values + t * layout.valueStride + i,
              loadElementsPart(run.values + (t * valueSize + i) * bytes, element, valueSize - i));
    forPath(path, head, base, [&](int64_t at, Run own, int64_t from) KERNEL_LAMBDA {
      for (int64_t i = 0; i < valueSize; i += kLanes)
        store(
            values + at * layout.valueStride + i,
            loadElementsPart(own.values + (from * valueSize + i) * bytes, element, valueSize - i));
    });
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
  KERNEL_LAMBDA void score(int64_t row, int64_t start, int64_t head, const KeyTile &tile,
                           KeyForm form) const {
    const float *pointers[Rows];
    unroll<Rows>([&](auto r) KERNEL_LAMBDA {
      const int64_t token = start + (row + r) / group(), inGroup = (row + r) % group();
      pointers[r] = q + (token * heads + head * group() + inGroup) * keySize;
    });
    scoreRows<Rows, Prefetch>(state, row, pointers, tile, form, keySize);
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
                            const KeyTile &tile, KeyForm form, int64_t base, int64_t lo,
                            int64_t hi) const {
    if (count == 4)
      score<4, Prefetch>(row, start, head, tile, form);
    else if (count == 3)
      score<3, Prefetch>(row, start, head, tile, form);
    else if (count == 2)
      score<2, Prefetch>(row, start, head, tile, form);
    else
      score<1, Prefetch>(row, start, head, tile, form);
    for (int64_t r = 0; r < count; ++r)
      softmaxRow(state, row + r, tile, form, lo, hi, scale, softcap, slopes != nullptr,
                 bias(row + r, start, head, base));
    if (count == 4)
      valueRows<4, Prefetch>(state, row, tile, form, lo, hi);
    else if (count == 3)
      valueRows<3, Prefetch>(state, row, tile, form, lo, hi);
    else if (count == 2)
      valueRows<2, Prefetch>(state, row, tile, form, lo, hi);
    else
      valueRows<1, Prefetch>(state, row, tile, form, lo, hi);
  }

  /// All query rows against key tile \p index; keys [lo, hi) are those that any row sees. With
  /// \p convert, keys and values become f32 once for all rows. \p Prefetch asks for the next tile's
  /// memory on the way, and is of tasks of one token and up to four heads.
  template <bool Prefetch>
  KERNEL_LAMBDA void keyTile(int64_t sequence, int64_t head, int64_t start, int64_t count,
                             int64_t index, int64_t lo, int64_t hi, bool convert,
                             const Path &path) const {
    const int64_t base = index * kKeyTile;
    KeyTile tile;
    const KeyForm form = {convert ? int64_t(kF32) : element, layout.valueStride, element == kI8};
    const int64_t from = lo > base ? lo - base : 0, to = smaller(hi - base, kKeyTile);
    const int64_t firstRun = from / kRunTokens, lastRun = (to - 1) / kRunTokens;
    for (int64_t c = firstRun; c <= lastRun; ++c) {
      const int64_t runLo = from > c * kRunTokens ? from - c * kRunTokens : 0;
      Run run = findRun(sequence, head, base / kRunTokens + c);
      const int64_t bytes = kRunTokens * elementBytes(element);
      tile.keyScales[c] = reinterpret_cast<const float *>(run.keys + keySize * bytes);
      tile.valueScales[c] = reinterpret_cast<const float *>(run.values + valueSize * bytes);
      if (convert) {
        const int64_t first = base + c * kRunTokens;
        run =
            convertRun(run, c, runLo, smaller(to - c * kRunTokens, kRunTokens), path, head, first);
        placeScales(path, head, first, c, tile);
      }
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
      attend<Prefetch>(row, together, start, head, tile, form, base, rowLo, rowHi);
      row += together;
    }
  }

  /// The keys that any token of the tile sees.
  struct Keys {
    int64_t lo, hi;
  };
  KERNEL_LAMBDA Keys keysOf(int64_t start, int64_t count) const {
    Keys keys = {lowest(start), beyond(start)};
    for (int64_t t = start + 1; t < start + count; ++t) {
      keys.lo = smaller(keys.lo, lowest(t));
      keys.hi = keys.hi > beyond(t) ? keys.hi : beyond(t);
    }
    return keys;
  }
  /// Keys of a split; of all, where there are no splits.
  KERNEL_LAMBDA int64_t splitKeys() const { return split ? split : INT64_MAX; }

  /// An empty softmax for each row. A sink is a key that was seen first and has the value 0: it is
  /// part of the first split that a row sees.
  KERNEL_LAMBDA void begin(int64_t start, int64_t count, int64_t head, int64_t index) const {
    for (int64_t r = 0; r < count * group(); ++r) {
      const bool hasSink = sinks && lowest(start + r / group()) / splitKeys() == index;
      state.largest[r] = hasSink ? sinks[head * group() + r % group()] : -__builtin_inff();
      store(state.sums + r * kLanes, splat(0.0f));
      if (hasSink)
        state.sums[r * kLanes] = 1.0f;
      for (int64_t i = 0; i < layout.valueStride; i += kLanes)
        store(state.outputs + r * layout.valueStride + i, splat(0.0f));
    }
  }

  /// Adds split \p index to the total of those rows that see any of its keys.
  KERNEL_LAMBDA void merge(const SoftmaxState &part, int64_t start, int64_t count,
                           int64_t index) const {
    for (int64_t r = 0; r < count * group(); ++r) {
      const int64_t token = start + r / group();
      const int64_t first = lowest(token) / split;
      if (index == first)
        copyRow(total, part, r, layout.valueStride);
      else if (index > first && index * split < beyond(token))
        mergeRow(total, part, r, layout.valueStride);
    }
  }

  KERNEL_LAMBDA void finish(const SoftmaxState &sum, int64_t start, int64_t count,
                            int64_t head) const {
    for (int64_t r = 0; r < count * group(); ++r) {
      const float all = sumLanes(load(sum.sums + r * kLanes));
      const float inverse = all == 0.0f ? 0.0f : 1.0f / all;
      const int64_t token = start + r / group(), inGroup = r % group();
      float *out = y + (token * heads + head * group() + inGroup) * valueSize;
      for (int64_t i = 0; i < valueSize; i += kLanes)
        storePart(out + i, load(sum.outputs + r * layout.valueStride + i) * inverse, valueSize - i);
    }
  }

  /// Where split \p index of an item leaves its softmax.
  KERNEL_LAMBDA void usePartials(SoftmaxState &part, const LlmrtAttentionItem &item, int64_t count,
                                 int64_t head, int64_t index) const {
    const int64_t rows = count * group();
    float *at =
        step->partials + (((item.row + (index - item.split) * count) * heads) + head * rows) *
                             LLMRT_PARTIAL_FLOATS(valueSize);
    part.largest = at;
    part.sums = at + 16 * rows;
    part.outputs = at + 32 * rows;
  }

  KERNEL_LAMBDA void task(const LlmrtAttentionItem &item, int64_t head) {
    const int64_t sequence = step->tileSeq[item.tile], start = step->tileStart[item.tile];
    const int64_t count = step->tileCount[item.tile];
    const bool isPart = split && item.split >= 0;
    const Keys keys = keysOf(start, count);
    const int64_t first = isPart ? item.split : keys.lo / splitKeys();
    const int64_t last = isPart ? item.split : (keys.hi - 1) / splitKeys();
    // One block of rows reads keys and values once: converting them in registers is enough.
    const bool isPlain = element == kF32 && valueSize == layout.valueStride && !latent;
    const Path path = pathOf(start);
    const bool isShort =
        count == 1 && group() <= 4 && valueSize == layout.valueStride && !latent && !path.ancestors;
    const SoftmaxState own = state;
    if (isPart)
      usePartials(state, item, count, head, item.split);
    for (int64_t s = first; s <= last; ++s) {
      begin(start, count, head, s);
      const int64_t lo = split && keys.lo < s * split ? s * split : keys.lo;
      const int64_t hi = split ? smaller(keys.hi, (s + 1) * split) : keys.hi;
      for (int64_t index = lo / kKeyTile; index * kKeyTile < hi; ++index) {
        if (isShort)
          keyTile<true>(sequence, head, start, count, index, lo, hi, false, {nullptr, 0, 0});
        else
          keyTile<false>(sequence, head, start, count, index, lo, hi, !isPlain || path.ancestors,
                         path);
      }
      if (split && first != last)
        merge(state, start, count, s);
    }
    if (isPart) {
      SoftmaxState part = state;
      state = own;
      uint32_t *arrivals = step->arrivals + item.arrival * kvHeads * headTasks + head;
      if (__atomic_fetch_add(arrivals, 1, __ATOMIC_ACQ_REL) + 1 != uint32_t(item.splits))
        return;
      *arrivals = 0; // the next command counts after the barrier that follows this one
      for (int64_t s = 0; s < item.splits; ++s) {
        usePartials(part, item, count, head, s);
        merge(part, start, count, s);
      }
    }
    // Not a choice between references, which would keep this object, and so the kernel's constants,
    // in memory.
    SoftmaxState sum = state;
    if (split && (isPart || first != last))
      sum = total;
    finish(sum, start, count, head);
  }
};

} // namespace

LLMC_KERNEL(attention, int64_t heads, int64_t kvHeads, int64_t keySize, int64_t valueSize,
            float scale, float softcap, int64_t window, int64_t kvElement, int64_t queryTile,
            int64_t alibi, int64_t sinks, int64_t latent, int64_t headTasks, int64_t keySplit) {
  const int64_t parts = headTasks ? headTasks : 1;
  const AttentionScratch layout(queryTile, heads / (kvHeads * parts), keySize, valueSize,
                                keySplit != 0);
  float *s = static_cast<float *>(scratch);
  Attention a = {
      step,
      binding<float>(bindings, 0),
      binding<float>(bindings, 1 + (alibi != 0) + (sinks != 0)),
      sinks ? binding<float>(bindings, 1 + (alibi != 0)) : nullptr,
      heads,
      kvHeads,
      keySize,
      valueSize,
      kvElement,
      scalars[0],
      latent,
      parts,
      window > 0 ? window : INT64_MAX,
      keySplit,
      scale,
      softcap,
      alibi ? binding<float>(bindings, 1) : nullptr,
      layout,
      s,
      {s + layout.largest, s + layout.sums, s + layout.weights, s + layout.rescale,
       s + layout.outputs},
      {s + layout.totalLargest, s + layout.totalSums, nullptr, nullptr, s + layout.totalOutputs}};
  for (int64_t t = taskBegin; t < taskEnd; ++t) {
    const int64_t at = t / (kvHeads * parts);
    const LlmrtAttentionItem tile = {static_cast<int32_t>(at), -1, 0, 0, 0};
    a.task(keySplit ? step->items[at] : tile, t % (kvHeads * parts));
  }
}
