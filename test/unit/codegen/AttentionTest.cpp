//===- AttentionTest.cpp - paged attention ------------------------------------===//
#include "codegen/cpu/kernels/reference/Reference.h"
#include "test/unit/codegen/KernelRunner.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>

using namespace llmc;
using namespace llmc::test;

namespace {

struct Shape {
  int64_t heads, kvHeads, keySize, valueSize, window = 0, element = 0;
  double softcap = 0;
  bool alibi = false;
  bool sinks = false, latent = false;
  int64_t headTasks = 0, keySplit = 0;

  /// Slopes that fall from head to head, as those of ALiBi do.
  float slope(int64_t head) const { return alibi ? 0.7f / static_cast<float>(head + 1) : 0.0f; }
};

float rounded(float x, int64_t element) {
  if (element == 1)
    return static_cast<float>(static_cast<_Float16>(x));
  if (element == 2) {
    uint32_t bits = std::bit_cast<uint32_t>(x);
    return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u);
  }
  return x;
}
int64_t bytesOf(int64_t element) { return element == 0 ? 4 : element == 3 ? 1 : 2; }
/// Bytes of a run of 16 tokens: with int8, their scales follow.
int64_t runBytes(int64_t size, int64_t element) {
  return 16 * (size * bytesOf(element) + (element == 3 ? 4 : 0));
}
/// The largest magnitude is 127 of int8.
float scaleOf(std::span<const float> x) {
  float amax = 0;
  for (float f : x)
    amax = std::max(amax, std::fabs(f));
  return amax / 127;
}
void put(uint8_t *p, int64_t element, float x, float scale) {
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
void putHead(uint8_t *run, int64_t at, int64_t element, std::span<const float> x, bool isKey) {
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
Outputs attend(const CompiledKernel &kernel, const Sequences &s, const std::vector<Span> &spans,
               int64_t blockTokens, int64_t queryTile, int64_t pieces = 1, bool cut = false) {
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

CompiledKernel compile(const Shape &s, CpuLevel level, int64_t queryTile) {
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

void expectReference(const Sequences &s, const Outputs &outputs, double tolerance) {
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

class AttentionShapes : public testing::TestWithParam<Shape> {};

TEST_P(AttentionShapes, MatchesReferenceAndIsInvariant) {
  const Shape shape = GetParam();
  Sequences s(shape, {150, 65, 17, 1});
  const std::vector<Span> whole = {{0, 0, 150}, {1, 0, 65}, {2, 0, 17}, {3, 0, 1}};
  std::vector<Outputs> perLevel;
  for (CpuLevel level : runnableLevels()) {
    CompiledKernel kernel = compile(shape, level, 16);
    Outputs base = attend(kernel, s, whole, 16, 8);
    expectReference(s, base, 2e-5);
    EXPECT_EQ(attend(kernel, s, whole, 64, 8, 3), base) << "block size, task split";
    EXPECT_EQ(attend(kernel, s, whole, 16, 16), base) << "query tile";
    if (shape.keySplit) {
      EXPECT_EQ(attend(kernel, s, whole, 16, 8, 1, true), base) << "splits as items";
      EXPECT_EQ(attend(kernel, s, whole, 16, 1, 5, true), base) << "splits of tokens as items";
    }
    // Decode steps and odd chunks, mixed with other sequences.
    for (Span span : {Span{0, 149, 150}, {0, 63, 64}, {0, 64, 65}, {0, 128, 129}, {0, 70, 93}}) {
      Outputs part = attend(kernel, s, {{2, 3, 9}, span, {1, 64, 65}}, 16, 8);
      for (const auto &[where, out] : part)
        ASSERT_EQ(out, base[where]) << "position " << where.second;
    }
    perLevel.push_back(base);
  }
  for (const Outputs &o : perLevel)
    EXPECT_EQ(o, perLevel.front());
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, AttentionShapes,
    testing::Values(Shape{9, 3, 64, 64}, Shape{4, 4, 64, 64}, Shape{9, 3, 64, 64, 0, 1},
                    Shape{9, 3, 64, 64, 0, 2}, Shape{4, 1, 80, 80, 0, 1}, Shape{7, 1, 24, 40},
                    Shape{2, 1, 5, 3, 0, 2}, Shape{8, 2, 128, 128, 33}, Shape{3, 1, 16, 16, 1},
                    Shape{6, 3, 32, 32, 0, 1, 5.0}, Shape{5, 1, 20, 256, 100, 2, 2.0},
                    Shape{16, 2, 96, 112}, Shape{9, 3, 64, 64, 0, 3}, Shape{4, 1, 20, 12, 40, 3},
                    Shape{4, 4, 16, 16, 0, 0, 0, true}, Shape{6, 2, 24, 40, 37, 1, 3.0, true},
                    Shape{4, 2, 16, 16, 8, 0, 0, false, true},
                    Shape{6, 2, 24, 40, 0, 1, 0, true, true},
                    Shape{4, 1, 24, 16, 0, 0, 0, false, false, true, 2},
                    Shape{6, 1, 45, 37, 0, 1, 0, false, false, true},
                    Shape{12, 1, 72, 64, 33, 2, 0, false, true, true, 3},
                    Shape{.heads = 9, .kvHeads = 3, .keySize = 64, .valueSize = 64, .keySplit = 64},
                    Shape{.heads = 6,
                          .kvHeads = 2,
                          .keySize = 24,
                          .valueSize = 40,
                          .window = 70,
                          .element = 1,
                          .softcap = 3,
                          .alibi = true,
                          .sinks = true,
                          .keySplit = 64},
                    Shape{.heads = 9,
                          .kvHeads = 3,
                          .keySize = 64,
                          .valueSize = 64,
                          .element = 3,
                          .sinks = true,
                          .keySplit = 128},
                    Shape{.heads = 12,
                          .kvHeads = 1,
                          .keySize = 72,
                          .valueSize = 64,
                          .element = 2,
                          .latent = true,
                          .headTasks = 3,
                          .keySplit = 64}));

/// How many tasks share the heads changes nothing.
TEST(Attention, HeadTasksGiveTheSameBits) {
  Shape one{12, 1, 72, 64, 0, 1, 0, false, false, true}, parts = one;
  parts.headTasks = 4;
  Sequences s(one, {70}), t(parts, {70});
  const CpuLevel level = runnableLevels().front();
  EXPECT_EQ(attend(compile(one, level, 4), s, {{0, 0, 70}}, 16, 4),
            attend(compile(parts, level, 4), t, {{0, 0, 70}}, 16, 4));
}

/// Case A01: a window counts the token itself.
TEST(Attention, WindowCountsTheTokenItself) {
  for (auto [window, want] : {std::pair<int64_t, double>{3, 4.0}, {1, 5.0}, {100, 2.5}}) {
    Shape shape{1, 1, 8, 1, window};
    Sequences s(shape, {6});
    std::fill(s.q[0].begin(), s.q[0].end(), 0.0f);
    for (int i = 0; i < 6; ++i)
      s.v[0][i] = i;
    CompiledKernel kernel = compile(shape, runnableLevels().front(), 4);
    for (std::vector<Span> spans : {std::vector<Span>{{0, 0, 6}}, {{0, 4, 6}}, {{0, 5, 6}}})
      EXPECT_NEAR((attend(kernel, s, spans, 16, 4)[{0, 5}][0]), want, 1e-6);
  }
}

/// Case A06: scores 0 and 4, cap 2.
TEST(Attention, SoftcapOnEveryPath) {
  Shape shape{1, 1, 1, 1, 0, 0, 2.0};
  Sequences s(shape, {2});
  s.q[0] = {1, 1}, s.k[0] = {0, 4}, s.v[0] = {0, 1};
  CompiledKernel kernel = compile(shape, runnableLevels().front(), 4);
  for (std::vector<Span> spans : {std::vector<Span>{{0, 0, 2}}, {{0, 1, 2}}})
    EXPECT_NEAR((attend(kernel, s, spans, 16, 4)[{0, 1}][0]), 0.873034, 1e-6);
}

/// A NaN in a later token's key and value reaches only queries that see it.
TEST(Attention, LaterTokensDoNotReachEarlierOnes) {
  Shape shape{3, 1, 32, 32};
  Sequences clean(shape, {40}), dirty = clean;
  for (int64_t i = 0; i < 32; ++i)
    dirty.k[0][30 * 32 + i] = NAN, dirty.v[0][30 * 32 + i] = INFINITY;
  CompiledKernel kernel = compile(shape, runnableLevels().front(), 8);
  Outputs a = attend(kernel, clean, {{0, 0, 40}}, 16, 8);
  Outputs b = attend(kernel, dirty, {{0, 0, 40}}, 16, 8);
  for (int64_t p = 0; p < 40; ++p)
    if (p < 30)
      EXPECT_EQ((a[{0, p}]), (b[{0, p}])) << p;
    else
      EXPECT_TRUE(std::isnan(b[{0, p}][0])) << p;
}

} // namespace
