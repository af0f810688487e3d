//===- AttentionBench.h - attention over sequences in paged blocks -------------===//
#ifndef LLMC_TEST_UNIT_CODEGEN_ATTENTIONBENCH_H
#define LLMC_TEST_UNIT_CODEGEN_ATTENTIONBENCH_H

#include "codegen/cpu/kernels/reference/Reference.h"
#include "test/unit/codegen/KernelRunner.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>

namespace llmc::test {

struct Shape {
  int64_t heads, kvHeads, keySize, valueSize, window = 0, element = 0;
  double softcap = 0;
  bool alibi = false;
  bool sinks = false, latent = false;
  int64_t headTasks = 0, keySplit = 0;

  /// Slopes that fall from head to head, as those of ALiBi do.
  float slope(int64_t head) const { return alibi ? 0.7f / static_cast<float>(head + 1) : 0.0f; }
};

inline float rounded(float x, int64_t element) {
  if (element == 1)
    return static_cast<float>(static_cast<_Float16>(x));
  if (element == 2) {
    uint32_t bits = std::bit_cast<uint32_t>(x);
    return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u);
  }
  return x;
}
inline int64_t bytesOf(int64_t element) { return element == 0 ? 4 : element == 3 ? 1 : 2; }
/// Bytes of a run of 16 tokens: with int8, their scales follow.
inline int64_t runBytes(int64_t size, int64_t element) {
  return 16 * (size * bytesOf(element) + (element == 3 ? 4 : 0));
}
/// The largest magnitude is 127 of int8.
inline float scaleOf(std::span<const float> x) {
  float amax = 0;
  for (float f : x)
    amax = std::max(amax, std::fabs(f));
  return amax / 127;
}
inline void put(uint8_t *p, int64_t element, float x, float scale) {
  if (element == 0)
    std::memcpy(p, &x, 4);
  else if (element == 3) {
    *p = static_cast<uint8_t>(static_cast<int8_t>(std::nearbyint(x / scale)));
  } else {
    uint16_t bits = element == 1 ? std::bit_cast<uint16_t>(static_cast<_Float16>(x))
                                 : static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16);
    std::memcpy(p, &bits, 2);
  }
}

/// The keys, values and queries of some sequences; a step may take any span of their tokens.
struct Sequences {
  Shape shape;
  std::vector<int64_t> lengths;
  std::vector<std::vector<float>> q, k, v; ///< [length][heads][size]
  std::vector<float> sinks;                ///< [heads]

  /// To multiples of each head's scale.
  static void quantize(std::vector<float> &x, int64_t size) {
    for (size_t i = 0; i < x.size(); i += size) {
      std::span<float> head(&x[i], size);
      const float scale = scaleOf(head);
      for (float &f : head)
        f = std::nearbyint(f / scale) * scale;
    }
  }

  Sequences(Shape s, std::vector<int64_t> n) : shape(s), lengths(std::move(n)) {
    std::mt19937 rng(31);
    for (int64_t length : lengths) {
      q.push_back(randomFloats(rng, length * s.heads * s.keySize, -2, 2));
      k.push_back(randomFloats(rng, length * s.kvHeads * s.keySize, -1, 1));
      v.push_back(randomFloats(rng, length * s.kvHeads * s.valueSize, -1, 1));
      for (std::vector<float> *x : {&k.back(), &v.back()})
        for (float &f : *x)
          f = rounded(f, s.element);
      if (s.element == 3) {
        quantize(k.back(), s.keySize);
        quantize(v.back(), s.valueSize);
      }
      if (s.latent) // values are the first elements of the (one) key
        for (int64_t t = 0; t < length; ++t)
          std::copy_n(&k.back()[t * s.keySize], s.valueSize, &v.back()[t * s.valueSize]);
    }
    if (s.sinks)
      sinks = randomFloats(rng, s.heads, -2, 3);
  }
};

struct Span {
  int64_t sequence, begin, end;
};

/// One head's key or value of one token, into place \p at of its run.
inline void putHead(uint8_t *run, int64_t at, int64_t element, std::span<const float> x,
                    bool isKey) {
  const int64_t size = x.size(), bytes = bytesOf(element);
  const float scale = scaleOf(x);
  for (int64_t d = 0; d < size; ++d)
    put(run + (isKey ? d * 16 + at : at * size + d) * bytes, element, x[d], scale);
  if (element == 3)
    std::memcpy(run + 16 * size + 4 * at, &scale, 4);
}

/// Runs one step over \p spans; returns [sequence, position] -> [heads][valueSize]. Memory that no
/// token up to the end of a span wrote holds NaNs. With \p cut a tile's splits are items of their
/// own.
using Outputs = std::map<std::pair<int64_t, int64_t>, std::vector<float>>;
inline Outputs attend(const CompiledKernel &kernel, const Sequences &s,
                      const std::vector<Span> &spans, int64_t blockTokens, int64_t queryTile,
                      int64_t pieces = 1, bool cut = false) {
  const Shape &h = s.shape;
  const int64_t keyRun = runBytes(h.keySize, h.element),
                valueRun = h.latent ? 0 : runBytes(h.valueSize, h.element);
  const int64_t prefix = 24, perToken = prefix + h.kvHeads * (keyRun + valueRun) / 16;
  int64_t maxBlocks = 0, blocks = 0;
  for (int64_t length : s.lengths)
    maxBlocks = std::max(maxBlocks, (length + blockTokens - 1) / blockTokens);
  std::vector<int32_t> table, positions, starts = {0}, context, tileSeq, tileStart, tileCount;
  for (const Span &span : spans)
    blocks += (span.end + blockTokens - 1) / blockTokens;
  std::vector<int32_t> free(blocks); // a scattered order
  std::iota(free.begin(), free.end(), 0);
  std::shuffle(free.begin(), free.end(), std::mt19937(4));
  Buffer pool(blocks * blockTokens * perToken);
  LlmrtStep step{};
  step.kv = pool.data(), step.blockTokens = blockTokens, step.blockBytes = blockTokens * perToken;
  std::vector<float> q;
  for (size_t i = 0; i < spans.size(); ++i) {
    const Span &span = spans[i];
    for (int64_t b = 0; b < maxBlocks; ++b) {
      const bool isUsed = b * blockTokens < span.end;
      table.push_back(isUsed ? free.back() : -1000000); // reading one that isn't there faults
      if (isUsed)
        free.pop_back();
    }
    for (int64_t p = 0; p < span.end; ++p) {
      const int64_t block = table[i * maxBlocks + p / blockTokens], at = p % blockTokens;
      uint8_t *layer = pool.data() + block * step.blockBytes + blockTokens * prefix;
      for (int64_t g = 0; g < h.kvHeads; ++g) {
        uint8_t *keys = layer + g * blockTokens / 16 * (keyRun + valueRun);
        uint8_t *values = keys + blockTokens / 16 * keyRun;
        putHead(keys + at / 16 * keyRun, at % 16, h.element,
                {&s.k[span.sequence][(p * h.kvHeads + g) * h.keySize], size_t(h.keySize)}, true);
        if (!h.latent)
          putHead(values + at / 16 * valueRun, at % 16, h.element,
                  {&s.v[span.sequence][(p * h.kvHeads + g) * h.valueSize], size_t(h.valueSize)},
                  false);
      }
    }
    for (int64_t p = span.begin; p < span.end; ++p) {
      if ((p - span.begin) % queryTile == 0) {
        tileSeq.push_back(i);
        tileStart.push_back(positions.size());
        tileCount.push_back(std::min(queryTile, span.end - p));
      }
      positions.push_back(p);
    }
    auto from = s.q[span.sequence].begin();
    q.insert(q.end(), from + span.begin * h.heads * h.keySize,
             from + span.end * h.heads * h.keySize);
    starts.push_back(positions.size());
    context.push_back(span.end);
  }
  step.T = positions.size(), step.S = spans.size(), step.Q = tileSeq.size();
  step.positions = positions.data(), step.queryStart = starts.data();
  step.contextLen = context.data(), step.blockTable = table.data(), step.maxBlocks = maxBlocks;
  step.tileSeq = tileSeq.data(), step.tileStart = tileStart.data();
  step.tileCount = tileCount.data();
  Buffer qb = Buffer::of(q), y(positions.size() * h.heads * h.valueSize * 4);
  std::vector<float> slopes;
  for (int64_t head = 0; head < h.heads; ++head)
    slopes.push_back(h.slope(head));
  Buffer slopesBuffer = Buffer::of(slopes);
  std::vector<void *> bindings = {qb.data(), y.data()};
  if (h.alibi)
    bindings.insert(bindings.begin() + 1, slopesBuffer.data());
  Buffer sinks = Buffer::of(s.sinks);
  if (h.sinks)
    bindings.insert(bindings.end() - 1, sinks.data());
  std::vector<LlmrtAttentionItem> items;
  const int64_t tasksPerItem = h.kvHeads * std::max<int64_t>(1, h.headTasks);
  int32_t rows = 0;
  for (int32_t tile = 0; tile < step.Q; ++tile) {
    const int32_t count = tileCount[tile];
    const int32_t splits =
        cut ? positions[tileStart[tile] + count - 1] / static_cast<int32_t>(h.keySplit) + 1 : 1;
    for (int32_t split = 0; split < splits; ++split, rows += count)
      items.push_back({tile, cut ? split : -1, splits, rows, tile});
  }
  Buffer partials(rows * h.heads * LLMRT_PARTIAL_FLOATS(h.valueSize) * 4);
  Buffer arrivals = Buffer::of(std::vector<uint32_t>(step.Q * tasksPerItem));
  step.items = items.data(), step.itemCount = items.size();
  step.partials = partials.floats();
  step.arrivals = reinterpret_cast<uint32_t *>(arrivals.data());
  const int64_t tasks = (h.keySplit ? int64_t(items.size()) : step.Q) * tasksPerItem;
  kernel.run(step, bindings, tasks, {prefix}, pieces);
  EXPECT_TRUE(y.guardIsIntact());
  EXPECT_TRUE(partials.guardIsIntact());
  EXPECT_TRUE(arrivals.guardIsIntact());
  EXPECT_EQ(std::count(arrivals.data(), arrivals.data() + arrivals.bytes(), 0), arrivals.bytes())
      << "counters for the next command";
  Outputs out;
  int64_t t = 0;
  for (const Span &span : spans)
    for (int64_t p = span.begin; p < span.end; ++p, ++t)
      out[{span.sequence, p}] = {y.floats() + t * h.heads * h.valueSize,
                                 y.floats() + (t + 1) * h.heads * h.valueSize};
  return out;
}

inline CompiledKernel compile(const Shape &s, CpuLevel level, int64_t queryTile) {
  return CompiledKernel("attention",
                        {{"heads", s.heads},
                         {"kv_heads", s.kvHeads},
                         {"key_size", s.keySize},
                         {"value_size", s.valueSize},
                         {"scale", 1 / std::sqrt(double(s.keySize))},
                         {"softcap", s.softcap},
                         {"window", s.window},
                         {"kv_element", s.element},
                         {"query_tile", queryTile},
                         {"alibi", int64_t(s.alibi)},
                         {"sinks", int64_t(s.sinks)},
                         {"latent", int64_t(s.latent)},
                         {"head_tasks", s.headTasks},
                         {"key_split", s.keySplit}},
                        level);
}

inline void expectReference(const Sequences &s, const Outputs &outputs, double tolerance) {
  const Shape &h = s.shape;
  for (const auto &[where, out] : outputs) {
    auto [sequence, p] = where;
    const int64_t lo = h.window ? std::max<int64_t>(0, p - h.window + 1) : 0;
    for (int64_t head = 0; head < h.heads; ++head) {
      const int64_t g = head / (h.heads / h.kvHeads);
      std::vector<float> k, v;
      for (int64_t t = lo; t <= p; ++t) {
        auto kt = s.k[sequence].begin() + (t * h.kvHeads + g) * h.keySize;
        auto vt = s.v[sequence].begin() + (t * h.kvHeads + g) * h.valueSize;
        k.insert(k.end(), kt, kt + h.keySize);
        v.insert(v.end(), vt, vt + h.valueSize);
      }
      std::span<const float> q(&s.q[sequence][(p * h.heads + head) * h.keySize], h.keySize);
      std::vector<double> want = reference::attend(
          q, k, v, p - lo + 1, h.valueSize, 1 / std::sqrt(double(h.keySize)), h.softcap,
          h.slope(head), h.sinks ? std::optional<double>(s.sinks[head]) : std::nullopt);
      for (int64_t i = 0; i < h.valueSize; ++i)
        ASSERT_NEAR(out[head * h.valueSize + i], want[i], tolerance)
            << "sequence " << sequence << " position " << p << " head " << head << " at " << i;
    }
  }
}

} // namespace llmc::test

#endif // LLMC_TEST_UNIT_CODEGEN_ATTENTIONBENCH_H
