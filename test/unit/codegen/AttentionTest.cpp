//===- AttentionTest.cpp - paged attention ------------------------------------===//
#include "test/unit/codegen/AttentionBench.h"

using namespace llmc;
using namespace llmc::test;

namespace {

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
