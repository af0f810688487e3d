//===- GemmTest.cpp - linear layers against the reference, to the bit --------===//
#include "codegen/cpu/kernels/reference/Reference.h"
#include "test/unit/codegen/KernelRunner.h"
#include "test/unit/codegen/RandomWeight.h"

#include "gtest/gtest.h"

#include <cmath>

using namespace llmc;
using namespace llmc::test;

namespace {

std::vector<KernelConstant> gemmConstants(const Weight &w, bool int8, int64_t group,
                                          int64_t taskTiles) {
  return std::vector<KernelConstant>{{"k", w.k},
                                     {"n", w.n},
                                     {"x_int8", int64_t(int8)},
                                     {"group", group},
                                     {"task_tiles", taskTiles}} +
         formatConstants(w.format);
}

std::vector<float> runGemm(const CompiledKernel &kernel, const Weight &w, const Buffer &x,
                           int64_t m, int64_t taskTiles, int64_t pieces = 1) {
  LlmrtStep step{};
  step.T = m;
  Buffer y(m * w.n * 4);
  const int64_t tasks = (tilesOf(w.n) + taskTiles - 1) / taskTiles;
  kernel.run(step, {x.data(), w.packed.data(), y.data()}, tasks, {}, pieces);
  EXPECT_TRUE(y.guardIsIntact());
  return y.floatVector();
}

/// Sixteen rows of one group each: values \p q [16][k], scales [16].
Weight packedTile(WeightFormat f, int64_t k, const std::vector<uint8_t> &q,
                  const std::vector<float> &scales) {
  Weight w{f, 16, k, Buffer(*packedBytes(f, 16, k)), {}, {}};
  std::vector<QuantizedRow> rows;
  for (int r = 0; r < 16; ++r)
    rows.push_back({&q[r * k], &scales[r], nullptr});
  packTile(f, k, std::span<const QuantizedRow>(rows), w.packed.data());
  return w;
}

struct GemmCase {
  WeightFormat format;
  int64_t n, k, group; ///< group 0: f32 activations
};

class Gemm : public testing::TestWithParam<GemmCase> {};

/// Each row of a batch has the reference's bits, for any batch, split and level.
TEST_P(Gemm, MatchesReferenceBitwise) {
  const GemmCase &c = GetParam();
  std::mt19937 rng(7);
  Weight w = makeWeight(rng, c.format, c.n, c.k);
  const int64_t largest = 70; // beyond a chunk of tokens
  std::vector<float> x = randomFloats(rng, largest * c.k, -3, 3);
  std::vector<float> expected;
  reference::QuantizedRows rows;
  if (c.group) {
    rows = reference::quantizeRows(largest, c.k, c.group, x.data());
    expected = reference::gemmInt(rows, w.quantized);
  } else {
    expected = reference::gemmFloat(largest, c.n, c.k, x.data(), w.values.data());
  }
  for (CpuLevel level : runnableLevels())
    for (int64_t taskTiles : {1, 4}) {
      CompiledKernel kernel("gemm", gemmConstants(w, c.group, c.group, taskTiles), level, 3,
                            taskTiles == 1 ? Text::Own : Text::Shared);
      for (int64_t m : {1, 2, 3, 4, 6, 7, 19, 70}) {
        std::vector<float> part(x.begin(), x.begin() + m * c.k);
        Buffer input = Buffer::of(part);
        if (c.group)
          input = quantizedBuffer(reference::quantizeRows(m, c.k, c.group, part.data()));
        std::vector<float> want(expected.begin(), expected.begin() + m * c.n);
        std::vector<float> got = runGemm(kernel, w, input, m, taskTiles);
        ASSERT_TRUE(sameBits(got, want))
            << cpuLevelName(level).str() << " m " << m << " first " << got[0] << " " << want[0];
        ASSERT_TRUE(sameBits(runGemm(kernel, w, input, m, taskTiles, 3), want)) << "split, m " << m;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(
    Formats, Gemm,
    testing::Values(GemmCase{n16(Element::F32), 80, 48, 0}, GemmCase{n16(Element::F32), 37, 51, 0},
                    GemmCase{n16(Element::F16), 37, 51, 0}, GemmCase{n16(Element::BF16), 37, 51, 0},
                    GemmCase{n16(Element::BF16), 48, 64, 0}, GemmCase{n16(Element::F32), 1, 1, 0},
                    GemmCase{n16k4(Element::I4, 32, Element::F16, false), 80, 96, 32},
                    GemmCase{n16k4(Element::I4, 32, Element::F16, false), 37, 75, 32},
                    GemmCase{n16k4(Element::I4, 32, Element::F16, true, Element::F16), 37, 75, 32},
                    GemmCase{n16k4(Element::I4, 16, Element::F32, false), 33, 40, 16},
                    GemmCase{n16k4(Element::I4, 128, Element::F32, true, Element::F32), 33, 192,
                             32},
                    GemmCase{n16k4(Element::I4, 128, Element::F16, false), 33, 192, 128},
                    GemmCase{n16k4(Element::I4, 1000, Element::F16, false), 16, 1000, 8},
                    GemmCase{n16k4(Element::I4, 32, Element::F16, false), 37, 1100, 32},
                    GemmCase{n16k4(Element::I4, 128, Element::F16, false), 33, 1350, 32},
                    GemmCase{n16k4(Element::I8, 32, Element::F16, false), 37, 75, 32},
                    GemmCase{n16k4(Element::I8, 16, Element::F32, true, Element::F16), 37, 75, 16},
                    GemmCase{n16k4(Element::I8, 256, Element::F32, false), 37, 300, 64},
                    GemmCase{n16k4(Element::I4, 32, Element::F16, false), 37, 75, 0},
                    GemmCase{n16k4(Element::I4, 32, Element::F16, true, Element::F16), 37, 75, 0},
                    GemmCase{n16k4(Element::I8, 32, Element::F16, false), 37, 75, 0},
                    GemmCase{n16k4(Element::E2M1, 32, Element::E8M0, false), 80, 96, 32},
                    GemmCase{n16k4(Element::E2M1, 32, Element::E8M0, false), 37, 1100, 32},
                    GemmCase{n16k4(Element::E2M1, 32, Element::E8M0, false), 37, 75, 16},
                    GemmCase{n16k4(Element::E2M1, 32, Element::E8M0, false), 21, 75, 8},
                    GemmCase{n16k4(Element::E2M1, 32, Element::E8M0, false), 37, 75, 0},
                    GemmCase{n16k4(Element::I8, 16, Element::F32, true, Element::F16), 80, 75, 0}));

/// Two rows of ones and large weights, w = -128 among them: integers must not saturate.
TEST(GemmInt8, MostNegativeWeightsAreExact) {
  std::mt19937 rng(1);
  const int64_t k = 64;
  std::vector<uint8_t> q(16 * k, 0x80);
  std::vector<float> scales(16 * 2, 1.0f);
  WeightFormat f = n16k4(Element::I8, 32, Element::F32, false);
  Weight w{f, 16, k, Buffer(*packedBytes(f, 16, k)), {}, {}};
  std::vector<QuantizedRow> rows;
  for (int r = 0; r < 16; ++r)
    rows.push_back({&q[r * k], &scales[r * 2], nullptr});
  packTile(f, k, std::span<const QuantizedRow>(rows), w.packed.data());
  std::vector<float> x(k, 127.0f);
  Buffer input = quantizedBuffer(reference::quantizeRows(1, k, 32, x.data()));
  for (CpuLevel level : runnableLevels()) {
    CompiledKernel kernel("gemm", gemmConstants(w, true, 32, 1), level);
    for (float y : runGemm(kernel, w, input, 1, 1))
      EXPECT_EQ(y, -128.0f * 127 * 64);
  }
}

/// Nibbles of 0 and 15, activations of 127 and -127, in every order that fills one half of a lane
/// first: the 16 bits that sums are made in hold them.
TEST(GemmInt4, ExtremeSumsAreExact) {
  const int64_t k = 32, m = 20;
  auto pattern = [](int64_t which, int64_t i) -> bool { // of 8, along K
    const bool low = i % 4 < 2, early = i < 16;
    return (which & 1) ^ (which & 2 ? low : which & 4 ? early : true);
  };
  std::vector<uint8_t> q(16 * k);
  std::vector<float> scales(16, 1.0f), x(m * k);
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t r = 0; r < 16; ++r)
      q[r * k + i] = pattern(r % 8, i) ? 15 : 0;
    for (int64_t t = 0; t < m; ++t)
      x[t * k + i] = pattern(t % 8, i) ? 127.0f : -127.0f;
  }
  WeightFormat f = n16k4(Element::I4, 32, Element::F32, false);
  Weight w = packedTile(f, k, q, scales);
  Buffer input = quantizedBuffer(reference::quantizeRows(m, k, 32, x.data()));
  for (CpuLevel level : runnableLevels()) {
    CompiledKernel kernel("gemm", gemmConstants(w, true, 32, 1), level);
    for (int64_t count : {int64_t(5), m}) { // fewer and more than are decoded for
      std::vector<float> y = runGemm(kernel, w, input, count, 1);
      for (int64_t t = 0; t < count; ++t)
        for (int64_t r = 0; r < 16; ++r) {
          float want = 0;
          for (int64_t i = 0; i < k; ++i)
            want += float(q[r * k + i] - 8) * x[t * k + i];
          EXPECT_EQ(y[t * 16 + r], want) << cpuLevelName(level).str() << " " << t << " " << r;
        }
    }
  }
}

/// The same for e2m1: 12, -12 and activations of 127, -127; a scale of 255 is a NaN, and the two
/// lowest, subnormal numbers, count as zeros.
TEST(GemmE2m1, ExtremeSumsAndScales) {
  const int64_t k = 32, m = 20;
  WeightFormat f = n16k4(Element::E2M1, 32, Element::E8M0, false);
  std::vector<uint8_t> q(16 * k);
  std::vector<float> scales(16, 1.0f), x(m * k);
  scales[13] = halfPowerOfTwo(1), scales[14] = halfPowerOfTwo(255), scales[15] = halfPowerOfTwo(0);
  auto isHigh = [](int64_t which, int64_t i) {
    return which % 4 == 0 || (which % 4 == 1 ? i % 4 < 2 : which % 4 == 2 ? i < 16 : i % 2 == 0);
  };
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t r = 0; r < 16; ++r)
      q[r * k + i] = static_cast<uint8_t>(isHigh(r, i) != (r >= 4) ? 12 : -12);
    for (int64_t t = 0; t < m; ++t)
      x[t * k + i] = isHigh(t, i) != (t % 8 >= 4) ? 127.0f : -127.0f;
  }
  Weight w = packedTile(f, k, q, scales);
  Buffer input = quantizedBuffer(reference::quantizeRows(m, k, 32, x.data()));
  for (CpuLevel level : runnableLevels()) {
    CompiledKernel kernel("gemm", gemmConstants(w, true, 32, 1), level);
    for (int64_t count : {int64_t(1), int64_t(5), m}) {
      std::vector<float> y = runGemm(kernel, w, input, count, 1);
      for (int64_t t = 0; t < count; ++t)
        for (int64_t r = 0; r < 16; ++r) {
          float want = 0;
          for (int64_t i = 0; i < k; ++i)
            want += static_cast<int8_t>(q[r * k + i]) * x[t * k + i];
          if (r == 14)
            EXPECT_TRUE(std::isnan(y[t * 16 + r]));
          else
            EXPECT_EQ(y[t * 16 + r], r == 13 || r == 15 ? 0.0f : want)
                << cpuLevelName(level).str() << " " << t << " " << r;
        }
    }
  }
}

/// Bias, activation, residual in place, rows by R, and GLU pairs.
TEST(GemmEpilogue, BiasActivationResidual) {
  std::mt19937 rng(3);
  const int64_t m = 5, n = 37, k = 33;
  Weight w = makeWeight(rng, n16(Element::F32), n, k);
  std::vector<float> x = randomFloats(rng, m * k), bias = randomFloats(rng, n),
                     residual = randomFloats(rng, m * n);
  std::vector<float> plain = reference::gemmFloat(m, n, k, x.data(), w.values.data());
  for (CpuLevel level : runnableLevels())
    for (int64_t activation = 0; activation < 6; ++activation) {
      CompiledKernel kernel("gemm",
                            gemmConstants(w, false, 0, 2) +
                                std::vector<KernelConstant>{{"bias", int64_t(1)},
                                                            {"residual", int64_t(1)},
                                                            {"rows", int64_t(1)},
                                                            {"activation", activation}},
                            level, 3, activation % 2 ? Text::Own : Text::Shared);
      LlmrtStep step{};
      step.R = m, step.T = 1000;
      Buffer xb = Buffer::of(x), bb = Buffer::of(bias), y = Buffer::of(residual);
      kernel.run(step, {xb.data(), w.packed.data(), bb.data(), y.data(), y.data()}, 2);
      EXPECT_TRUE(y.guardIsIntact());
      for (int64_t i = 0; i < m * n; ++i) {
        double want = reference::activate(plain[i] + bias[i % n], activation) + residual[i];
        ASSERT_NEAR(y.floats()[i], want, 1e-6 * (1 + std::fabs(want))) << activation << " " << i;
      }
    }
}

TEST(GemmEpilogue, GluPairsOfTiles) {
  std::mt19937 rng(4);
  const int64_t m = 6, inner = 24, k = 40; // 24: the second pair of tiles is half padding
  std::vector<float> x = randomFloats(rng, m * k);
  Weight gate = makeWeight(rng, n16(Element::F32), inner, k);
  Weight up = makeWeight(rng, n16(Element::F32), inner, k);
  const uint64_t tile = *packedTileBytes(gate.format, k);
  Buffer packed(4 * tile);
  for (int p = 0; p < 2; ++p) {
    std::memcpy(packed.data() + 2 * p * tile, gate.packed.data() + p * tile, tile);
    std::memcpy(packed.data() + (2 * p + 1) * tile, up.packed.data() + p * tile, tile);
  }
  std::vector<float> g = reference::gemmFloat(m, inner, k, x.data(), gate.values.data());
  std::vector<float> u = reference::gemmFloat(m, inner, k, x.data(), up.values.data());
  Weight both{gate.format, 2 * inner, k, std::move(packed), {}, {}};
  for (CpuLevel level : runnableLevels())
    for (Text text : {Text::Own, Text::Shared}) {
      CompiledKernel kernel(
          "gemm",
          gemmConstants(both, false, 0, 2) +
              std::vector<KernelConstant>{{"glu", int64_t(1)}, {"activation", int64_t(1)}},
          level, 3, text);
      LlmrtStep step{};
      step.T = m;
      Buffer xb = Buffer::of(x), y(m * inner * 4);
      kernel.run(step, {xb.data(), both.packed.data(), y.data()}, 2, {}, 2);
      EXPECT_TRUE(y.guardIsIntact());
      for (int64_t i = 0; i < m * inner; ++i) {
        double want = reference::activate(g[i], 1) * u[i];
        ASSERT_NEAR(y.floats()[i], want, 1e-6 * (1 + std::fabs(want)));
      }
    }
}

} // namespace
