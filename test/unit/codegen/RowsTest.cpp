//===- RowsTest.cpp - kernels that work row by row ----------------------------===//
#include "codegen/cpu/kernels/reference/Reference.h"
#include "test/unit/codegen/KernelRunner.h"

#include "gtest/gtest.h"

#include <cmath>
#include <numeric>

using namespace llmc;
using namespace llmc::test;

namespace {

void expectNear(const std::vector<float> &got, const std::vector<double> &want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i], tolerance * (1 + std::fabs(want[i]))) << "at " << i;
}

TEST(Norm, MatchesReference) {
  std::mt19937 rng(11);
  for (int64_t d : {1, 15, 16, 75, 576})
    for (int64_t layer : {0, 1})
      for (int64_t plusOne : {0, 1}) {
        const int64_t m = 3;
        std::vector<float> x = randomFloats(rng, m * d, -2, 3), w = randomFloats(rng, d),
                           b = randomFloats(rng, d);
        for (CpuLevel level : runnableLevels()) {
          CompiledKernel kernel(
              "norm",
              {{"d", d}, {"norm", layer}, {"eps", 1e-5}, {"plus_one", plusOne}, {"bias", layer}},
              level, 3, plusOne ? Text::Own : Text::Shared);
          Buffer xb = Buffer::of(x), wb = Buffer::of(w), bb = Buffer::of(b), y(m * d * 4);
          std::vector<void *> bindings = {xb.data(), wb.data(), y.data()};
          if (layer)
            bindings.insert(bindings.begin() + 2, bb.data());
          kernel.run({}, bindings, m, {}, 2);
          EXPECT_TRUE(y.guardIsIntact());
          for (int64_t r = 0; r < m; ++r) {
            std::vector<float> got(y.floats() + r * d, y.floats() + (r + 1) * d);
            expectNear(got,
                       reference::norm({&x[r * d], size_t(d)}, w,
                                       layer ? std::span<const float>(b) : std::span<const float>(),
                                       layer, 1e-5, plusOne),
                       2e-5);
          }
        }
      }
}

/// Weights stored as w (1 + w is what multiplies) are added in f32.
TEST(Norm, PlusOneIsAddedInF32) {
  std::vector<float> x = {3, 4}, w = {0.5f, -0.25f};
  CompiledKernel kernel("norm", {{"d", int64_t(2)}, {"eps", 1e-6}, {"plus_one", int64_t(1)}},
                        runnableLevels().front());
  Buffer xb = Buffer::of(x), wb = Buffer::of(w), y(8);
  kernel.run({}, {xb.data(), wb.data(), y.data()}, 1);
  EXPECT_NEAR(y.floats()[0], 1.272792, 1e-6);
  EXPECT_NEAR(y.floats()[1], 0.848528, 1e-6);
}

std::vector<float> int8Row(const Buffer &b, int64_t row, int64_t k, int64_t group,
                           std::vector<float> &scales, std::vector<int32_t> &sums) {
  const int64_t padded = (k + group - 1) / group * group;
  const uint8_t *at = b.data() + row * LLMRT_Q8_ROW_BYTES(padded, group);
  std::vector<float> q;
  for (int64_t i = 0; i < padded; ++i)
    q.push_back(int8_t(at[i]));
  scales.resize(padded / group);
  sums.resize(padded / group);
  std::memcpy(scales.data(), at + padded, 4 * scales.size());
  std::memcpy(sums.data(), at + padded + 4 * scales.size(), 4 * sums.size());
  return q;
}

TEST(Quantize, MatchesReferenceBitwise) {
  std::mt19937 rng(5);
  for (auto [k, group] :
       {std::pair<int64_t, int64_t>{96, 32}, {75, 32}, {40, 8}, {300, 100}, {20, 64}}) {
    const int64_t m = 4;
    std::vector<float> x = randomFloats(rng, m * k, -4, 4);
    std::fill(x.begin() + k, x.begin() + 2 * k, 0.0f);
    std::fill(x.begin() + 2 * k, x.begin() + 3 * k, 1e-38f); // amax / 127 is below the least normal
    x[3 * k] = 63.5f * 2, x[3 * k + 1] = 0.5f, x[3 * k + 2] = 1.5f, x[3 * k + 3] = -2.5f; // ties
    reference::QuantizedRows want = reference::quantizeRows(m, k, group, x.data());
    for (CpuLevel level : runnableLevels())
      for (Text text : {Text::Own, Text::Shared}) {
        CompiledKernel kernel("quantize", {{"k", k}, {"group", group}}, level, 3, text);
        Buffer xb = Buffer::of(x);
        const int64_t groups = want.groups(), bytes = LLMRT_Q8_ROW_BYTES(groups * group, group);
        Buffer y(m * bytes);
        kernel.run({}, {xb.data(), y.data()}, m, {}, 2);
        EXPECT_TRUE(y.guardIsIntact());
        for (int64_t r = 0; r < m; ++r) {
          std::vector<float> scales;
          std::vector<int32_t> sums;
          std::vector<float> q = int8Row(y, r, k, group, scales, sums);
          for (int64_t i = 0; i < groups * group; ++i)
            if (r != 2)
              ASSERT_EQ(q[i], i < k ? want.q[r * k + i] : 0) << "row " << r << " at " << i;
            else
              ASSERT_EQ(q[i], 0);
          for (int64_t g = 0; g < groups; ++g) {
            ASSERT_EQ(scales[g], r == 2 ? 0.0f : want.scales[r * groups + g]);
            ASSERT_EQ(sums[g], r == 2 ? 0 : want.sums[r * groups + g]);
          }
        }
      }
  }
}

TEST(Quantize, RoundsToEven) {
  // scale is exactly 1.
  std::vector<float> x = {127, .5f, 1.5f, 2.5f, -.5f, -1.5f, 126.5f, -127};
  CompiledKernel kernel("quantize", {{"k", int64_t(8)}, {"group", int64_t(8)}},
                        runnableLevels().front());
  Buffer xb = Buffer::of(x), y(LLMRT_Q8_ROW_BYTES(8, 8));
  kernel.run({}, {xb.data(), y.data()}, 1);
  std::vector<float> scales;
  std::vector<int32_t> sums;
  EXPECT_EQ(int8Row(y, 0, 8, 8, scales, sums),
            (std::vector<float>{127, 0, 2, 2, 0, -2, 126, -127}));
  EXPECT_EQ(sums[0], 127 + 2 + 2 - 2 + 126 - 127);
}

TEST(Quantize, NanStaysInItsGroup) {
  std::vector<float> x(64, 1.0f);
  x[40] = NAN;
  for (float bad : {NAN, INFINITY, -INFINITY}) {
    x[40] = bad;
    CompiledKernel kernel("quantize", {{"k", int64_t(64)}, {"group", int64_t(32)}},
                          runnableLevels().front());
    Buffer xb = Buffer::of(x), y(LLMRT_Q8_ROW_BYTES(64, 32));
    kernel.run({}, {xb.data(), y.data()}, 1);
    std::vector<float> scales;
    std::vector<int32_t> sums;
    std::vector<float> q = int8Row(y, 0, 64, 32, scales, sums);
    EXPECT_EQ(scales[0], 1.0f / 127.0f);
    EXPECT_TRUE(std::isnan(scales[1]));
    EXPECT_EQ(std::accumulate(q.begin() + 32, q.end(), 0.0f), 0);
  }
}

/// norm with int8 rows gives what norm and then quantize gives.
TEST(Norm, QuantizedRowsEqualTwoSteps) {
  std::mt19937 rng(6);
  for (auto [d, group] : {std::pair<int64_t, int64_t>{96, 32}, {75, 32}, {576, 64}}) {
    const int64_t m = 3, bytes = LLMRT_Q8_ROW_BYTES((d + group - 1) / group * group, group);
    std::vector<float> x = randomFloats(rng, m * d), w = randomFloats(rng, d);
    for (CpuLevel level : runnableLevels()) {
      CompiledKernel norm("norm", {{"d", d}, {"eps", 1e-5}}, level);
      CompiledKernel fused("norm", {{"d", d}, {"eps", 1e-5}, {"out", int64_t(1)}, {"group", group}},
                           level);
      CompiledKernel quantize("quantize", {{"k", d}, {"group", group}}, level);
      Buffer xb = Buffer::of(x), wb = Buffer::of(w), f(m * d * 4), two(m * bytes), one(m * bytes);
      norm.run({}, {xb.data(), wb.data(), f.data()}, m);
      quantize.run({}, {f.data(), two.data()}, m);
      fused.run({}, {xb.data(), wb.data(), one.data()}, m);
      EXPECT_TRUE(one.guardIsIntact());
      EXPECT_EQ(std::memcmp(one.data(), two.data(), m * bytes), 0);
    }
  }
}

TEST(RopeAngles, WithinOneUlpUpToAMillion) {
  std::vector<float> frequency;
  for (int i = 0; i < 20; ++i)
    frequency.push_back(static_cast<float>(std::pow(10000.0, -i / 20.0)));
  std::vector<int32_t> positions = {0, 1, 2, 3, 7, 11, 355, 710, 4095, 8191, 131071, 999999};
  for (int32_t i = 0; i < 3000; ++i)
    positions.push_back(i * 331 + 1);
  LlmrtStep step{};
  step.T = positions.size(), step.positions = positions.data();
  const int64_t half = frequency.size();
  for (CpuLevel level : runnableLevels()) {
    CompiledKernel kernel("rope_angles", {{"half", half}, {"scale", 1.0}}, level);
    Buffer fb = Buffer::of(frequency), y(positions.size() * 2 * half * 4);
    kernel.run(step, {fb.data(), y.data()}, positions.size(), {}, 3);
    EXPECT_TRUE(y.guardIsIntact());
    int64_t wrong = 0;
    for (size_t t = 0; t < positions.size(); ++t)
      for (int64_t i = 0; i < half; ++i) {
        const float angle = static_cast<float>(positions[t]) * frequency[i];
        const float c = y.floats()[t * 2 * half + i], s = y.floats()[t * 2 * half + half + i];
        const float wantC = std::cos(double(angle)), wantS = std::sin(double(angle));
        wrong += (c != wantC) + (s != wantS);
        ASSERT_LE(std::fabs(c - wantC), std::fabs(std::nextafter(wantC, 2.0f) - wantC)) << angle;
        ASSERT_LE(std::fabs(s - wantS), std::fabs(std::nextafter(wantS, 2.0f) - wantS)) << angle;
      }
    EXPECT_LE(wrong, 2) << "all but ties in double are the correctly rounded value";
  }
}

TEST(RopeGather, CopiesRowsOfTheTables) {
  std::mt19937 rng(2);
  const int64_t half = 5, count = 9;
  std::vector<float> c = randomFloats(rng, half * count), s = randomFloats(rng, half * count);
  std::vector<int32_t> positions = {8, 0, 3};
  LlmrtStep step{};
  step.T = positions.size(), step.positions = positions.data();
  CompiledKernel kernel("rope_gather", {{"half", half}, {"positions", count}},
                        runnableLevels().front());
  Buffer cb = Buffer::of(c), sb = Buffer::of(s), y(3 * 2 * half * 4);
  kernel.run(step, {cb.data(), sb.data(), y.data()}, 3);
  EXPECT_TRUE(y.guardIsIntact());
  for (int t = 0; t < 3; ++t)
    for (int i = 0; i < half; ++i) {
      EXPECT_EQ(y.floats()[t * 2 * half + i], c[positions[t] * half + i]);
      EXPECT_EQ(y.floats()[t * 2 * half + half + i], s[positions[t] * half + i]);
    }
}

TEST(RopeSelect, TakesTheRowOfTheSequencesContext) {
  std::mt19937 rng(3);
  const int64_t half = 9, tokens = 5;
  std::vector<float> a = randomFloats(rng, tokens * 2 * half),
                     b = randomFloats(rng, tokens * 2 * half);
  std::vector<int32_t> isLong = {0, 1, 1, 0, 1};
  LlmrtStep step{};
  step.T = tokens, step.longContext = isLong.data();
  for (CpuLevel level : runnableLevels()) {
    CompiledKernel kernel("rope_select", {{"half", half}}, level);
    Buffer ab = Buffer::of(a), bb = Buffer::of(b), y(tokens * 2 * half * 4);
    kernel.run(step, {ab.data(), bb.data(), y.data()}, tokens, {}, 2);
    EXPECT_TRUE(y.guardIsIntact());
    for (int64_t i = 0; i < tokens * 2 * half; ++i)
      EXPECT_EQ(y.floats()[i], (isLong[i / (2 * half)] ? b : a)[i]) << i;
  }
}

/// Every packing gives the row that unpackRow gives, times the scale.
TEST(Embed, ReadsEveryPacking) {
  std::mt19937 rng(9);
  const int64_t vocab = 35, d = 75;
  std::vector<int32_t> tokens = {34, 0, 17, 16};
  LlmrtStep step{};
  step.T = tokens.size(), step.tokens = tokens.data();
  for (WeightFormat f : {WeightFormat{Element::F32, Packing::Rows, 0},
                         {Element::F16, Packing::Rows, 0},
                         {Element::BF16, Packing::Rows, 0},
                         {Element::F32, Packing::N16, 0},
                         {Element::F16, Packing::N16, 0},
                         {Element::BF16, Packing::N16, 0},
                         {Element::I4, Packing::N16K4, 32, Element::F16},
                         {Element::I4, Packing::N16K4, 32, Element::F16, true, Element::F16},
                         {Element::I8, Packing::N16K4, 64, Element::F32},
                         {Element::I8, Packing::N16K4, 20, Element::F16, true, Element::F32}}) {
    Buffer w(*packedBytes(f, vocab, d));
    for (size_t i = 0; i < w.bytes(); ++i)
      w.data()[i] =
          f.packing == Packing::N16K4 || i % 2 == 0 ? rng() & 0x3f : 0x3c | (rng() & 0x80);
    for (CpuLevel level : runnableLevels()) {
      CompiledKernel kernel(
          "embed", std::vector<KernelConstant>{{"d", d}, {"scale", 1.5}} + formatConstants(f),
          level);
      Buffer y(tokens.size() * d * 4);
      kernel.run(step, {w.data(), y.data()}, tokens.size());
      EXPECT_TRUE(y.guardIsIntact());
      for (size_t t = 0; t < tokens.size(); ++t) {
        std::vector<float> row(d);
        if (f.packing == Packing::Rows)
          unpackRow(f, d, w.data() + tokens[t] * *packedBytes(f, 1, d), 0, row.data());
        else
          unpackRow(f, d, w.data() + tokens[t] / 16 * *packedTileBytes(f, d), tokens[t] % 16,
                    row.data());
        for (float &v : row)
          v = std::fabs(v) < 1.17549435e-38f ? 0.0f : v * 1.5f;
        for (int64_t i = 0; i < d; ++i)
          ASSERT_EQ(y.floats()[t * d + i], row[i]) << int(f.element) << " " << t << " " << i;
      }
    }
  }
}

/// A table of positions is read by position, whatever the tokens are.
TEST(Embed, ReadsATableOfPositions) {
  std::mt19937 rng(10);
  const int64_t count = 20, d = 19;
  std::vector<float> table = randomFloats(rng, count * d, -1, 1);
  std::vector<int32_t> tokens = {500, 3, 7}, positions = {19, 0, 8};
  LlmrtStep step{};
  step.T = 3, step.tokens = tokens.data(), step.positions = positions.data();
  for (CpuLevel level : runnableLevels()) {
    CompiledKernel kernel("embed", {{"d", d}, {"scale", 1.0}, {"positions", count}}, level);
    Buffer w = Buffer::of(table), y(3 * d * 4);
    kernel.run(step, {w.data(), y.data()}, 3);
    EXPECT_TRUE(y.guardIsIntact());
    for (int64_t t = 0; t < 3; ++t)
      for (int64_t i = 0; i < d; ++i)
        ASSERT_EQ(y.floats()[t * d + i], table[positions[t] * d + i]);
  }
}

TEST(GatherRows, PicksTheLogitRows) {
  std::mt19937 rng(8);
  const int64_t d = 21;
  std::vector<float> x = randomFloats(rng, 6 * d);
  std::vector<int32_t> rows = {5, 2};
  LlmrtStep step{};
  step.R = rows.size(), step.logitRows = rows.data();
  CompiledKernel kernel("gather_rows", {{"d", d}}, runnableLevels().front());
  Buffer xb = Buffer::of(x), y(2 * d * 4);
  kernel.run(step, {xb.data(), y.data()}, 2);
  EXPECT_TRUE(y.guardIsIntact());
  for (int r = 0; r < 2; ++r)
    for (int i = 0; i < d; ++i)
      EXPECT_EQ(y.floats()[r * d + i], x[rows[r] * d + i]);
}

TEST(Elementwise, MatchesReference) {
  std::mt19937 rng(12);
  const int64_t m = 3, d = 37;
  std::vector<float> a = randomFloats(rng, m * d, -9, 9), b = randomFloats(rng, m * d, -2, 2);
  a[0] = 0, a[1] = -0.0f, a[2] = -100, a[3] = 100, a[4] = 1e-6f, a[5] = -12;
  struct Case {
    const char *op;
    int64_t activation;
    char second;
  };
  for (Case c : {Case{"add", 0, '+'},
                 {"mul", 0, '*'},
                 {"scale", 0, 's'},
                 {"softcap", 0, 'c'},
                 {"relu", 4, 0},
                 {"silu", 1, 0},
                 {"gelu", 2, 0},
                 {"gelu_tanh", 3, 0},
                 {"relu_mul", 4, '*'},
                 {"silu_mul", 1, '*'},
                 {"gelu_mul", 2, '*'},
                 {"gelu_tanh_mul", 3, '*'}})
    for (CpuLevel level : runnableLevels()) {
      CompiledKernel kernel("elementwise", {{"op", std::string(c.op)}, {"d", d}, {"scale", 0.125}},
                            level);
      Buffer ab = Buffer::of(a), bb = Buffer::of(b), y(m * d * 4);
      std::vector<void *> bindings = {ab.data(), y.data()};
      if (c.second == '+' || c.second == '*')
        bindings.insert(bindings.begin() + 1, bb.data());
      kernel.run({}, bindings, m, {}, 2);
      EXPECT_TRUE(y.guardIsIntact());
      for (int64_t i = 0; i < m * d; ++i) {
        double want = reference::activate(a[i], c.activation);
        want = c.second == '+'   ? want + b[i]
               : c.second == '*' ? want * b[i]
               : c.second == 's' ? want * 0.125
               : c.second == 'c' ? 0.125 * std::tanh(want / 0.125)
                                 : want;
        ASSERT_NEAR(y.floats()[i], want, 1e-6 * (std::fabs(want) + 1e-3)) << c.op << " of " << a[i];
      }
    }
}

/// Case A05: the tail of a head is not rotated, pairs are halves or neighbours.
TEST(RopeAppend, PartialRotary) {
  std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<float> qkv;
  for (int i = 0; i < 3; ++i) // one query head, one key head, one value head
    qkv.insert(qkv.end(), x.begin(), x.end());
  std::vector<float> frequency = {1.0f, 0.01f};
  std::vector<int32_t> positions = {1};
  std::vector<int64_t> slots = {18};
  const std::vector<double> halves = {-1.984111, 1.959901, 2.462378, 4.019800, 5, 6, 7, 8};
  const std::vector<double> neighbours = {-1.142640, 1.922076, 2.959851, 4.029800, 5, 6, 7, 8};
  for (int64_t element : {0, 1, 2, 3})
    for (int64_t split : {0, 1})
      for (int64_t interleaved : {0, 1}) {
        const int64_t bytes = element == 0 ? 4 : element == 3 ? 1 : 2, prefix = 8;
        const int64_t scales = element == 3 ? 64 : 0, run = 16 * 8 * bytes + scales;
        const int64_t perToken = 2 * run / 16 + prefix;
        LlmrtStep step{};
        step.T = 1, step.positions = positions.data(), step.slots = slots.data();
        step.blockTokens = 16, step.blockBytes = 16 * perToken;
        Buffer kv(2 * step.blockBytes), fb = Buffer::of(frequency), angles(4 * 4), q(8 * 4);
        step.kv = kv.data();
        CompiledKernel angleKernel("rope_angles", {{"half", int64_t(2)}, {"scale", 1.0}},
                                   runnableLevels().front());
        angleKernel.run(step, {fb.data(), angles.data()}, 1);
        CompiledKernel kernel("rope_append",
                              {{"heads", int64_t(1)},
                               {"kv_heads", int64_t(1)},
                               {"head_size", int64_t(8)},
                               {"value_size", int64_t(8)},
                               {"rotary", int64_t(4)},
                               {"interleaved", interleaved},
                               {"split", split},
                               {"kv_element", element}},
                              runnableLevels().front());
        Buffer in = Buffer::of(qkv);
        std::vector<void *> bindings = {in.data(), angles.data(), q.data()};
        if (split)
          bindings = {in.data(), in.floats() + 8, in.floats() + 16, angles.data(), q.data()};
        kernel.run(step, bindings, 1, {prefix});
        EXPECT_TRUE(kv.guardIsIntact() && q.guardIsIntact());
        const std::vector<double> &want = interleaved ? neighbours : halves;
        expectNear(q.floatVector(), want, 1e-6);
        // Slot 18: block 1, token 2.
        const uint8_t *layer = kv.data() + step.blockBytes + 16 * prefix;
        auto read = [&](const uint8_t *start, int64_t at) -> float {
          const uint8_t *p = start + at * bytes;
          if (element == 3) { // the scale of token 2 is behind the run
            float scale;
            std::memcpy(&scale, start + 16 * 8 + 4 * 2, 4);
            return scale * static_cast<int8_t>(*p);
          }
          uint32_t bits = 0;
          std::memcpy(&bits, p, bytes);
          if (element == 1)
            return static_cast<float>(std::bit_cast<_Float16>(static_cast<uint16_t>(bits)));
          return std::bit_cast<float>(element == 2 ? bits << 16 : bits);
        };
        const double tolerance = element == 0   ? 1e-6
                                 : element == 1 ? 5e-4
                                                : 4e-3; // int8: 8 / 254 at most
        for (int i = 0; i < 8; ++i) {
          EXPECT_NEAR(read(layer, i * 16 + 2), want[i], tolerance * 8);
          EXPECT_NEAR(read(layer + run, 2 * 8 + i), x[i], element == 3 ? 8.0 / 254 : 0);
        }
      }
}

/// Norms of query and key heads come before the rotation (none here).
TEST(RopeAppend, HeadNorms) {
  std::mt19937 rng(20);
  const int64_t heads = 2, size = 20, bytes = 4;
  std::vector<float> qkv = randomFloats(rng, 4 * size), qw = randomFloats(rng, size),
                     kw = randomFloats(rng, size);
  std::vector<int64_t> slots = {0};
  LlmrtStep step{};
  step.T = 1, step.slots = slots.data(), step.blockTokens = 16;
  step.blockBytes = 16 * 2 * size * bytes;
  Buffer kv(step.blockBytes), in = Buffer::of(qkv), qb = Buffer::of(qw), kb = Buffer::of(kw),
                              q(heads * size * 4);
  step.kv = kv.data();
  CompiledKernel kernel("rope_append",
                        {{"heads", heads},
                         {"kv_heads", int64_t(1)},
                         {"head_size", size},
                         {"value_size", size},
                         {"q_norm", int64_t(1)},
                         {"eps", 1e-6}},
                        runnableLevels().front());
  kernel.run(step, {in.data(), qb.data(), kb.data(), q.data()}, 1, {0});
  for (int64_t h = 0; h < heads; ++h) {
    std::vector<float> got(q.floats() + h * size, q.floats() + (h + 1) * size);
    expectNear(got, reference::norm({&qkv[h * size], size_t(size)}, qw, {}, false, 1e-6, false),
               1e-5);
  }
  std::vector<double> key =
      reference::norm({&qkv[heads * size], size_t(size)}, kw, {}, false, 1e-6, false);
  for (int64_t i = 0; i < size; ++i)
    EXPECT_NEAR(kv.floats()[i * 16], key[i], 1e-5);
}

} // namespace
