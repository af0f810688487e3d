//===- AttentionTile.h - one tile of 64 keys against a few query rows --------===//
//
// Scores of 16 keys at a time: key runs are [d][16], so a score is a chain of fused multiply-adds
// with d ascending and there is no horizontal sum. p * V adds tokens ascending. How many rows go
// together changes the speed and nothing else.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CODEGEN_CPU_KERNELS_ATTENTIONTILE_H
#define LLMC_CODEGEN_CPU_KERNELS_ATTENTIONTILE_H

#include "codegen/cpu/kernels/Kernel.h"
#include "codegen/cpu/kernels/Scratch.h"

namespace llmc::kernel {

constexpr int kRuns = 4; ///< runs a key tile
static_assert(kRuns * kRunTokens == kKeyTile);

/// A tile's keys and values, all of one type: run c holds keys [16 c, 16 c + 16) of the
/// tile. Runs outside of every row's range repeat another one: their scores are computed and
/// masked.
struct KeyTile {
  const uint8_t *keys[kRuns];   ///< [keySize][16]
  const uint8_t *values[kRuns]; ///< [16][valueStride]
  /// The runs of the tile after this one: memory that is asked for while this one is worked on.
  const uint8_t *nextKeys[kRuns], *nextValues[kRuns];
  /// [16] a run, where the cache is int8: its integers are multiplied as they are, a score takes
  /// its key's scale, a token's weight its value's.
  const float *keyScales[kRuns], *valueScales[kRuns];
};

/// What every key tile of a task is like: apart from KeyTile, whose arrays are in memory, so that
/// the compiler sees the constants.
struct KeyForm {
  int64_t element, valueStride;
  bool isScaled;
};

/// The running softmax of the query rows.
struct SoftmaxState {
  float *largest; ///< [rows]
  float *sums;    ///< [rows][16]: lane i adds the keys at positions i modulo 16
  float *weights; ///< [rows][64]: p of the tile at hand
  float *rescale; ///< [rows]: what the tile at hand multiplies older results with
  float *outputs; ///< [rows][valueStride]
};

/// Sixteen keys' elements, \p rows (16 at most count) runs of 16 tokens at \p from, token by token
/// at
/// \p to, \p stride floats apart: out[t][d] = from[d][t]. What is beyond the rows becomes zeros.
KERNEL_INLINE void transposeTile(const float *from, float *to, int64_t stride, int64_t rows) {
  F32x16 v[16], u[16];
  unroll<16>([&](auto i)
                 KERNEL_LAMBDA { v[i] = i < rows ? load(from + i * kRunTokens) : splat(0.0f); });
  // Four perfect shuffles of rows i and i + 8.
  unroll<4>([&](auto) KERNEL_LAMBDA {
    unroll<8>([&](auto i) KERNEL_LAMBDA {
      u[2 * i] = __builtin_shufflevector(v[i], v[i + 8], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21,
                                         6, 22, 7, 23);
      u[2 * i + 1] = __builtin_shufflevector(v[i], v[i + 8], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28,
                                             13, 29, 14, 30, 15, 31);
    });
    unroll<16>([&](auto i) KERNEL_LAMBDA { v[i] = u[i]; });
  });
  unroll<16>([&](auto i) KERNEL_LAMBDA { store(to + i * stride, v[i]); });
}

/// Nothing is known of what \p pointer points at any more: it is read again.
KERNEL_INLINE void forget(const float *&pointer) { asm("" : "+r"(pointer)); }

/// score[r][c] = q row r times the keys of run first + c.
template <int Rows, int Runs, bool Prefetch>
KERNEL_INLINE void scoreRuns(const float *const (&q)[Rows], const KeyTile &tile, KeyForm form,
                             int first, int64_t keySize, F32x16 (&score)[Rows][Runs]) {
  unroll<Rows>([&](auto r) KERNEL_LAMBDA {
    unroll<Runs>([&](auto c) KERNEL_LAMBDA { score[r][c] = splat(0.0f); });
  });
  const float *query[Rows];
  unroll<Rows>([&](auto r) KERNEL_LAMBDA { query[r] = q[r]; });
  for (int64_t d = 0; d < keySize; ++d)
    unroll<Runs>([&](auto c) KERNEL_LAMBDA {
      const int64_t at = d * kRunTokens * elementBytes(form.element);
      if constexpr (Prefetch)
        __builtin_prefetch(tile.nextKeys[first + c] + at);
      const F32x16 key = loadElements(tile.keys[first + c] + at, form.element);
      unroll<Rows>([&](auto r)
                       KERNEL_LAMBDA { score[r][c] = fma(splat(query[r][d]), key, score[r][c]); });
      // Twelve accumulators of eight lanes, a key of two, and one query value are all but one of
      // x86-64-v3's registers: the next run loads its query values again.
      if constexpr (Rows == 3)
        unroll<Rows>([&](auto r) KERNEL_LAMBDA { forget(query[r]); });
    });
}

/// ALiBi of one row: slope * (key - query) is added to the score of each key.
struct PositionBias {
  float slope;      ///< 0: none
  int64_t distance; ///< position of the tile's first key less that of the query
};

/// Softmax of one row over the keys [lo, hi) of the tile, whose raw scores lie in its weights.
KERNEL_INLINE void softmaxRow(const SoftmaxState &state, int64_t row, const KeyTile &tile,
                              KeyForm form, int64_t lo, int64_t hi, float scale, float softcap,
                              bool hasBias, PositionBias bias) {
  float *p = state.weights + row * kKeyTile;
  const bool isWhole = lo == 0 && hi == kKeyTile;
  F32x16 score[kRuns], largest = splat(-__builtin_inff());
  unroll<kRuns>([&](auto c) KERNEL_LAMBDA {
    score[c] = load(p + 16 * c) * scale;
    if (softcap != 0.0f)
      score[c] = softcap * tanh(score[c] / softcap);
    if (hasBias) {
      I32x16 key = laneIndex() + static_cast<int32_t>(bias.distance + 16 * c);
      score[c] = fma(splat(bias.slope), toFloat(key), score[c]);
    }
  });
  if (!isWhole)
    unroll<kRuns>([&](auto c) KERNEL_LAMBDA {
      I32x16 key = laneIndex() + static_cast<int32_t>(16 * c);
      auto visible =
          key >= splatInt(static_cast<int32_t>(lo)) & key < splatInt(static_cast<int32_t>(hi));
      score[c] = visible ? score[c] : splat(-__builtin_inff());
    });
  unroll<kRuns>([&](auto c) KERNEL_LAMBDA { largest = larger(largest, score[c]); });
  const float before = state.largest[row], inTile = largestLane(largest);
  const float now = inTile > before ? inTile : before;
  F32x16 sum = load(state.sums + row * kLanes);
  float rescale = 1.0f;
  if (now != before) {
    rescale = exp<true>(splat(before - now))[0];
    sum = sum * rescale;
  }
  state.largest[row] = now;
  state.rescale[row] = rescale;
  unroll<kRuns>([&](auto c) KERNEL_LAMBDA {
    F32x16 e = exp<true>(score[c] - now);
    store(p + 16 * c, form.isScaled ? e * load(tile.valueScales[c]) : e);
    sum = sum + e;
  });
  store(state.sums + row * kLanes, sum);
}

/// Adds \p part to \p total: row \p row of both, over disjoint keys, those of the part after the
/// others.
KERNEL_INLINE void mergeRow(const SoftmaxState &total, const SoftmaxState &part, int64_t row,
                            int64_t valueStride) {
  const float before = total.largest[row], after = part.largest[row];
  const float now = after > before ? after : before;
  const F32x16 keep = splat(exp<true>(splat(before - now))[0]);
  const F32x16 add = splat(exp<true>(splat(after - now))[0]);
  total.largest[row] = now;
  float *sums = total.sums + row * kLanes;
  store(sums, fma(load(part.sums + row * kLanes), add, load(sums) * keep));
  for (int64_t i = row * valueStride; i < (row + 1) * valueStride; i += kLanes)
    store(total.outputs + i, fma(load(part.outputs + i), add, load(total.outputs + i) * keep));
}

/// Makes row \p row of \p total that of \p part.
KERNEL_INLINE void copyRow(const SoftmaxState &total, const SoftmaxState &part, int64_t row,
                           int64_t valueStride) {
  total.largest[row] = part.largest[row];
  store(total.sums + row * kLanes, load(part.sums + row * kLanes));
  for (int64_t i = row * valueStride; i < (row + 1) * valueStride; i += kLanes)
    store(total.outputs + i, load(part.outputs + i));
}

/// outputs = outputs * rescale + p V for columns [column, column + 16 Columns), tokens [lo, hi).
template <int Rows, int Columns, bool Prefetch>
KERNEL_INLINE void addValues(const SoftmaxState &state, int64_t row, const KeyTile &tile,
                             KeyForm form, int64_t column, int64_t lo, int64_t hi) {
  float *out = state.outputs + row * form.valueStride + column;
  const float *p = state.weights + row * kKeyTile;
  F32x16 acc[Rows][Columns];
  unroll<Rows>([&](auto r) KERNEL_LAMBDA {
    const F32x16 rescale = splat(state.rescale[row + r]);
    unroll<Columns>([&](auto c) KERNEL_LAMBDA {
      acc[r][c] = load(out + r * form.valueStride + 16 * c) * rescale;
    });
  });
  for (int64_t run = lo / kRunTokens; run * kRunTokens < hi; ++run) {
    const int64_t begin = lo > run * kRunTokens ? lo - run * kRunTokens : 0;
    const int64_t end = smaller(hi - run * kRunTokens, kRunTokens);
    const int64_t bytes = elementBytes(form.element);
    const uint8_t *values = tile.values[run] + column * bytes;
    for (int64_t t = begin; t < end; ++t) {
      const float *weight = p + run * kRunTokens + t;
      unroll<Columns>([&](auto c) KERNEL_LAMBDA {
        const int64_t at = (t * form.valueStride + 16 * c) * bytes;
        // A line of memory holds two columns of 16 unless they are f32.
        if constexpr (Prefetch)
          if (Columns == 1 || c % 2 == 0 || bytes > 2)
            __builtin_prefetch(tile.nextValues[run] + column * bytes + at);
        const F32x16 v = loadElements(values + at, form.element);
        unroll<Rows>([&](auto r) KERNEL_LAMBDA {
          acc[r][c] = fma(splat(weight[r * kKeyTile]), v, acc[r][c]);
        });
        if constexpr (Rows == 3 && Columns > 1)
          forget(weight);
      });
    }
  }
  unroll<Rows>([&](auto r) KERNEL_LAMBDA {
    unroll<Columns>([&](auto c)
                        KERNEL_LAMBDA { store(out + r * form.valueStride + 16 * c, acc[r][c]); });
  });
}

/// Raw scores of \p Rows query rows from \p row on against the tile, into the rows' weights.
template <int Rows, bool Prefetch>
KERNEL_INLINE void scoreRows(const SoftmaxState &state, int64_t row, const float *const (&q)[Rows],
                             const KeyTile &tile, KeyForm form, int64_t keySize) {
  constexpr int together = Rows == 4 ? 1 : Rows >= 2 ? 2 : 4;
  for (int first = 0; first < kRuns; first += together) {
    F32x16 score[Rows][together];
    scoreRuns<Rows, together, Prefetch>(q, tile, form, first, keySize, score);
    unroll<Rows>([&](auto r) KERNEL_LAMBDA {
      unroll<together>([&](auto c) KERNEL_LAMBDA {
        if (form.isScaled)
          score[r][c] = score[r][c] * load(tile.keyScales[first + c]);
        store(state.weights + (row + r) * kKeyTile + 16 * (first + c), score[r][c]);
      });
    });
  }
}

/// Adds the values of the keys [lo, hi) to \p Rows rows, weighted by their softmax.
template <int Rows, bool Prefetch>
KERNEL_INLINE void valueRows(const SoftmaxState &state, int64_t row, const KeyTile &tile,
                             KeyForm form, int64_t lo, int64_t hi) {
  constexpr int columns = Rows == 4 ? 1 : Rows == 1 ? 4 : 2;
  int64_t column = 0;
  for (; column + 16 * columns <= form.valueStride; column += 16 * columns)
    addValues<Rows, columns, Prefetch>(state, row, tile, form, column, lo, hi);
  for (; column < form.valueStride; column += 16)
    addValues<Rows, 1, Prefetch>(state, row, tile, form, column, lo, hi);
}

} // namespace llmc::kernel

#endif // LLMC_CODEGEN_CPU_KERNELS_ATTENTIONTILE_H
