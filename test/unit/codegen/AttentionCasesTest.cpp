//===- AttentionCasesTest.cpp - what went wrong elsewhere ---------------------===//
#include "test/unit/codegen/AttentionBench.h"

using namespace llmc;
using namespace llmc::test;

namespace {

/// A window counts the token itself.
TEST(Attention, A01_WindowCountsTheTokenItself) {
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

/// Scores 0 and 4, cap 2.
TEST(Attention, A06_SoftcapOnEveryPath) {
  Shape shape{1, 1, 1, 1, 0, 0, 2.0};
  Sequences s(shape, {2});
  s.q[0] = {1, 1}, s.k[0] = {0, 4}, s.v[0] = {0, 1};
  CompiledKernel kernel = compile(shape, runnableLevels().front(), 4);
  for (std::vector<Span> spans : {std::vector<Span>{{0, 0, 2}}, {{0, 1, 2}}})
    EXPECT_NEAR((attend(kernel, s, spans, 16, 4)[{0, 1}][0]), 0.873034, 1e-6);
}

/// Head sizes and lengths that are no multiple of a tile, each query the same bits wherever its
/// step is cut; memory after what was written holds NaNs.
TEST(Attention, A09_HeadSizesAndLengthsBesideTheTiles) {
  for (int64_t size : {80, 96, 112, 120, 160, 192, 256})
    for (int64_t element : {0, 1}) {
      const Shape shape{
          .heads = 2, .kvHeads = 1, .keySize = size, .valueSize = size, .element = element};
      const Sequences s(shape, {129});
      for (CpuLevel level : runnableLevels()) {
        if (element == 1 && level != runnableLevels().back())
          continue; // the levels agree on other shapes of f16
        SCOPED_TRACE(std::to_string(size) + " element " + std::to_string(element));
        const CompiledKernel kernel = compile(shape, level, 16);
        Outputs base = attend(kernel, s, {{0, 0, 129}}, 16, 16);
        expectReference(s, base, element == 0 ? 2e-5 : 2e-3);
        for (int64_t keys : {1, 15, 16, 17, 127, 128, 129})
          for (int64_t queries : {1, 3, 17, 64, 65})
            if (queries <= keys)
              for (const auto &[where, out] :
                   attend(kernel, s, {{0, keys - queries, keys}}, 16, 16))
                ASSERT_EQ(out, base[where]) << queries << " queries of " << keys;
      }
    }
}

/// One head of size 1 with a sink, compiled for every level.
struct SinkKernel {
  Shape shape;
  std::vector<CompiledKernel> levels;

  SinkKernel(int64_t keySplit, int64_t window)
      : shape{.heads = 1,
              .kvHeads = 1,
              .keySize = 1,
              .valueSize = 1,
              .window = window,
              .sinks = true,
              .keySplit = keySplit} {
    for (CpuLevel level : runnableLevels())
      levels.push_back(compile(shape, level, 4));
  }

  /// Two keys of score 0 with values 3 and 6, the first and the last that the last token sees;
  /// those between have no weight. What it gets, from splits one after the other and as items.
  float run(int64_t length, double sink) const {
    Sequences s(shape, {length});
    std::fill(s.q[0].begin(), s.q[0].end(), 1.0f);
    std::fill(s.k[0].begin(), s.k[0].end(), -1e6f);
    std::fill(s.v[0].begin(), s.v[0].end(), 1000.0f);
    const size_t last = size_t(length - 1),
                 first = shape.window > 1 ? size_t(length - shape.window) : 0;
    s.k[0][first] = s.k[0][last] = 0;
    s.v[0][first] = 3, s.v[0][last] = 6;
    s.sinks = {float(sink)};
    std::vector<Outputs> results;
    for (const CompiledKernel &kernel : levels)
      for (bool cut : {false, true})
        if (!cut || shape.keySplit)
          results.push_back(attend(kernel, s, {{0, length - 1, length}}, 16, 4, 1, cut));
    for (const Outputs &result : results)
      EXPECT_EQ(result, results.front());
    return results.front()[{0, length - 1}][0];
  }
};

/// A sink is counted once, in however many splits the keys lie, and where a split has none to see.
TEST(Attention, A23_ASinkAddsToTheDenominatorOnce) {
  for (int64_t keySplit : {0, 64}) {
    const SinkKernel all(keySplit, 0), one(keySplit, 1);
    for (int64_t length : {2, 128, 256}) { // with splits: 1, 2, 4
      SCOPED_TRACE(std::to_string(length) + " keys in splits of " + std::to_string(keySplit));
      EXPECT_FLOAT_EQ(all.run(length, 0), 3.0f);
      EXPECT_NEAR(all.run(length, 20) / (9 / (2 + std::exp(20.0))), 1, 1e-5);
      EXPECT_FLOAT_EQ(all.run(length, -INFINITY), 4.5f);
      EXPECT_FLOAT_EQ(one.run(length, 0), 3.0f) << "6 / 2";
    }
  }
  EXPECT_FLOAT_EQ(SinkKernel(64, 70).run(256, 0), 3.0f) << "two splits slid out of the window";
}

/// One large channel of a key makes its scale, 60 / 127, so coarse that int8 loses the others:
/// --kv-cache-dtype says so, and the other elements keep them.
TEST(Attention, Q15_AnOutlierChannelOfAKey) {
  const int64_t size = 64, large = 5;
  std::vector<float> qkv(3 * size); // a query that isn't looked at, the key, a value of zeros
  auto isSmall = [](int64_t i) { return i % 2 == 0; };
  for (int64_t i = 0; i < size; ++i)
    qkv[size + i] = i == large ? 60.0f : (i % 4 < 2 ? 1 : -1) * (isSmall(i) ? 0.1f : 0.3f);
  const float *key = &qkv[size];
  std::vector<int64_t> slots = {0};
  for (int64_t element : {0, 1, 2, 3}) {
    LlmrtStep step{};
    step.T = 1, step.slots = slots.data(), step.blockTokens = 16;
    step.blockBytes = 2 * runBytes(size, element);
    Buffer kv(step.blockBytes), in = Buffer::of(qkv), q(size * 4);
    step.kv = kv.data();
    const CompiledKernel kernel("rope_append",
                                {{"heads", int64_t(1)},
                                 {"kv_heads", int64_t(1)},
                                 {"head_size", size},
                                 {"value_size", size},
                                 {"kv_element", element}},
                                runnableLevels().front());
    kernel.run(step, {in.data(), q.data()}, 1, {0});
    float scale = 1;
    if (element == 3)
      std::memcpy(&scale, kv.data() + 16 * size, 4);
    auto stored = [&](int64_t i) {
      const uint8_t *p = kv.data() + i * 16 * bytesOf(element);
      uint32_t bits = 0;
      std::memcpy(&bits, p, bytesOf(element));
      if (element == 3)
        return scale * static_cast<int8_t>(*p);
      if (element == 1)
        return static_cast<float>(std::bit_cast<_Float16>(static_cast<uint16_t>(bits)));
      return std::bit_cast<float>(element == 2 ? bits << 16 : bits);
    };
    // The error of the scores of a query that looks at the small, the middle channels.
    for (bool small : {true, false}) {
      double exact = 0, got = 0;
      for (int64_t i = 0; i < size; ++i)
        if (i != large && isSmall(i) == small) {
          exact += std::fabs(key[i]);
          got += std::copysign(1.0, key[i]) * stored(i);
        }
      const double error = std::fabs(got / exact - 1);
      if (element == 3)
        EXPECT_NEAR(error, small ? 1.0 : 60.0 / 127 / 0.3 - 1, 1e-6);
      else
        EXPECT_LT(error, 0.02) << "element " << element;
    }
    if (element == 3)
      EXPECT_FLOAT_EQ(scale, 60.0f / 127);
  }
}

} // namespace
