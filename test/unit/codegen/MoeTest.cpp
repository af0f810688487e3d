//===- MoeTest.cpp - mixtures of experts and per-head matrices -----------------===//
#include "test/unit/codegen/RandomWeight.h"

#include "gtest/gtest.h"

#include <cmath>

using namespace llmc;
using namespace llmc::test;

namespace {

std::vector<KernelConstant> groupedConstants(const Weight &w, int64_t n, int64_t group,
                                             int64_t groups, int64_t slots, bool chosen,
                                             int64_t xStride) {
  return std::vector<KernelConstant>{{"k", w.k},
                                     {"n", n},
                                     {"x_int8", int64_t(group != 0)},
                                     {"group", group},
                                     {"groups", groups},
                                     {"slots", slots},
                                     {"chosen", int64_t(chosen)},
                                     {"x_stride", xStride},
                                     {"task_tiles", int64_t(2)}} +
         formatConstants(w.format);
}

/// Experts [groups] of \p n rows each, packed one after the other, each padded to whole tiles.
struct Experts {
  std::vector<Weight> parts;
  Buffer packed;
};
Experts makeExperts(std::mt19937 &rng, WeightFormat f, int64_t groups, int64_t n, int64_t k) {
  Experts e;
  const size_t bytes = *packedBytes(f, n, k);
  e.packed = Buffer(groups * bytes);
  for (int64_t g = 0; g < groups; ++g) {
    e.parts.push_back(makeWeight(rng, f, n, k));
    std::memcpy(e.packed.data() + g * bytes, e.parts.back().packed.data(), bytes);
  }
  return e;
}

struct ExpertCase {
  WeightFormat format;
  int64_t n, k, group; ///< group 0: f32 activations
  bool ownInputs;
};
class ExpertGemm : public testing::TestWithParam<ExpertCase> {};

/// Every slot of every row has the bits of its expert's product, whatever shares a pass with it.
TEST_P(ExpertGemm, MatchesReferenceBitwise) {
  const ExpertCase &c = GetParam();
  std::mt19937 rng(17);
  const int64_t groups = 5, slots = 3, largest = 40;
  Experts experts = makeExperts(rng, c.format, groups, c.n, c.k);
  const int64_t inputs = c.ownInputs ? largest * slots : largest;
  std::vector<float> x = randomFloats(rng, inputs * c.k, -2, 2);
  std::vector<int32_t> ids(largest * slots);
  for (int64_t m = 0; m < largest; ++m) { // distinct in a row; expert 4 rarely, some rows alike
    const int32_t first = m % 7 == 0 ? 4 : static_cast<int32_t>(rng() % 4);
    for (int64_t j = 0; j < slots; ++j)
      ids[m * slots + j] = static_cast<int32_t>((first + j) % (m % 7 == 0 ? 5 : 4));
  }
  std::vector<float> want(largest * slots * c.n);
  reference::QuantizedRows rows;
  if (c.group)
    rows = reference::quantizeRows(inputs, c.k, c.group, x.data());
  std::vector<std::vector<float>> all;
  for (const Weight &w : experts.parts)
    all.push_back(c.group ? reference::gemmInt(rows, w.quantized)
                          : reference::gemmFloat(inputs, c.n, c.k, x.data(), w.values.data()));
  for (int64_t e = 0; e < largest * slots; ++e) {
    const int64_t row = c.ownInputs ? e : e / slots;
    std::copy_n(&all[ids[e]][row * c.n], c.n, &want[e * c.n]);
  }
  Buffer idBuffer = Buffer::of(ids);
  for (CpuLevel level : runnableLevels())
    for (Text text : {Text::Own, Text::Shared}) {
      CompiledKernel kernel("grouped_gemm",
                            groupedConstants(experts.parts[0], c.n, c.group, groups, slots, true,
                                             c.ownInputs ? c.k : 0),
                            level, 3, text);
      for (int64_t m : {1, 2, 9, 40}) {
        const int64_t some = c.ownInputs ? m * slots : m;
        std::vector<float> part(x.begin(), x.begin() + some * c.k);
        Buffer input =
            c.group ? quantizedBuffer(reference::quantizeRows(some, c.k, c.group, part.data()))
                    : Buffer::of(part);
        LlmrtStep step{};
        step.T = m;
        Buffer y(m * slots * c.n * 4);
        const int64_t tasks = (tilesOf(c.n) + 1) / 2;
        kernel.run(step, {input.data(), experts.packed.data(), idBuffer.data(), y.data()}, tasks,
                   {}, tasks);
        EXPECT_TRUE(y.guardIsIntact());
        std::vector<float> expected(want.begin(), want.begin() + m * slots * c.n);
        ASSERT_TRUE(sameBits(y.floatVector(), expected)) << cpuLevelName(level).str() << " m " << m;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(
    Formats, ExpertGemm,
    testing::Values(ExpertCase{n16(Element::F32), 37, 51, 0, false},
                    ExpertCase{n16(Element::BF16), 48, 33, 0, true},
                    ExpertCase{n16k4(Element::I4, 32, Element::F16, false), 37, 96, 32, false},
                    ExpertCase{n16k4(Element::I4, 32, Element::F16, false), 21, 64, 32, true},
                    ExpertCase{n16k4(Element::I8, 32, Element::F16, false), 37, 64, 16, true},
                    ExpertCase{n16k4(Element::E2M1, 32, Element::E8M0, false), 37, 96, 32, true},
                    ExpertCase{n16k4(Element::I4, 32, Element::F16, true, Element::F16), 16, 75, 0,
                               false}));

/// An id outside of the experts names no matrix: nothing is read or written for it.
TEST(ExpertGemm, StrangeIdsTouchNothing) {
  std::mt19937 rng(2);
  Experts experts = makeExperts(rng, n16(Element::F32), 2, 16, 8);
  std::vector<float> x = randomFloats(rng, 3 * 8);
  std::vector<int32_t> ids = {-5, 1, 1 << 30};
  CompiledKernel kernel("grouped_gemm", groupedConstants(experts.parts[0], 16, 0, 2, 1, true, 0),
                        runnableLevels().front());
  LlmrtStep step{};
  step.T = 3;
  Buffer xb = Buffer::of(x), ib = Buffer::of(ids), y(3 * 16 * 4);
  kernel.run(step, {xb.data(), experts.packed.data(), ib.data(), y.data()}, 1);
  EXPECT_TRUE(std::isnan(y.floats()[0]) && std::isnan(y.floats()[32])); // as they were
  EXPECT_FALSE(std::isnan(y.floats()[16]));
}

/// A head's matrix sees the first k of its stride values.
TEST(HeadGemm, EachHeadHasItsMatrix) {
  std::mt19937 rng(5);
  const int64_t heads = 3, n = 20, k = 12, stride = 17, m = 11;
  Experts w = makeExperts(rng, n16(Element::F32), heads, n, k);
  std::vector<float> x = randomFloats(rng, m * heads * stride);
  std::vector<float> want(m * heads * n);
  for (int64_t t = 0; t < m; ++t)
    for (int64_t h = 0; h < heads; ++h) {
      std::vector<float> y =
          reference::gemmFloat(1, n, k, &x[(t * heads + h) * stride], w.parts[h].values.data());
      std::copy(y.begin(), y.end(), &want[(t * heads + h) * n]);
    }
  for (CpuLevel level : runnableLevels())
    for (Text text : {Text::Own, Text::Shared}) {
      CompiledKernel kernel("grouped_gemm",
                            groupedConstants(w.parts[0], n, 0, heads, heads, false, stride), level,
                            3, text);
      LlmrtStep step{};
      step.T = m;
      Buffer xb = Buffer::of(x), y(m * heads * n * 4);
      kernel.run(step, {xb.data(), w.packed.data(), y.data()}, heads, {}, 2);
      EXPECT_TRUE(y.guardIsIntact());
      EXPECT_TRUE(sameBits(y.floatVector(), want)) << cpuLevelName(level).str();
    }
}

/// Gate and up with biases; SiLU, and GPT-OSS's bounded form.
TEST(ExpertGlu, BiasActivationAndLimits) {
  std::mt19937 rng(6);
  const int64_t groups = 3, inner = 24, k = 40, m = 9;
  const WeightFormat f = n16(Element::F32);
  const size_t tile = *packedTileBytes(f, k);
  Experts gates = makeExperts(rng, f, groups, inner, k),
          ups = makeExperts(rng, f, groups, inner, k);
  Buffer packed(groups * 4 * tile);
  std::vector<float> bias(groups * 64);
  std::vector<float> gateBias = randomFloats(rng, groups * inner, -3, 3),
                     upBias = randomFloats(rng, groups * inner, -3, 3);
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t p = 0; p < 2; ++p) {
      uint8_t *to = packed.data() + (g * 4 + 2 * p) * tile;
      std::memcpy(to, gates.packed.data() + (g * 2 + p) * tile, tile);
      std::memcpy(to + tile, ups.packed.data() + (g * 2 + p) * tile, tile);
      for (int64_t r = 16 * p; r < std::min<int64_t>(inner, 16 * p + 16); ++r) {
        bias[g * 64 + 32 * p + r % 16] = gateBias[g * inner + r];
        bias[g * 64 + 32 * p + 16 + r % 16] = upBias[g * inner + r];
      }
    }
  std::vector<float> x = randomFloats(rng, m * k, -3, 3);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < m; ++i)
    ids.push_back(static_cast<int32_t>(i % groups));
  for (bool isBounded : {false, true})
    for (CpuLevel level : runnableLevels()) {
      std::vector<KernelConstant> constants =
          groupedConstants(gates.parts[0], 2 * inner, 0, groups, 1, true, 0) +
          std::vector<KernelConstant>{{"glu", int64_t(1)}, {"bias", int64_t(1)}};
      constants =
          constants + (isBounded ? std::vector<KernelConstant>{{"alpha", 1.702}, {"limit", 2.0}}
                                 : std::vector<KernelConstant>{{"activation", int64_t(1)}});
      CompiledKernel kernel("grouped_gemm", constants, level, 3,
                            isBounded ? Text::Own : Text::Shared);
      LlmrtStep step{};
      step.T = m;
      Buffer xb = Buffer::of(x), ib = Buffer::of(ids), bb = Buffer::of(bias), y(m * inner * 4);
      kernel.run(step, {xb.data(), packed.data(), ib.data(), bb.data(), y.data()}, 2);
      EXPECT_TRUE(y.guardIsIntact());
      for (int64_t t = 0; t < m; ++t) {
        const int64_t e = ids[t];
        std::vector<float> g =
            reference::gemmFloat(1, inner, k, &x[t * k], gates.parts[e].values.data());
        std::vector<float> u =
            reference::gemmFloat(1, inner, k, &x[t * k], ups.parts[e].values.data());
        for (int64_t i = 0; i < inner; ++i) {
          double gate = g[i] + gateBias[e * inner + i], up = u[i] + upBias[e * inner + i];
          double want = reference::activate(gate, 1) * up;
          if (isBounded) {
            gate = std::min(gate, 2.0), up = std::clamp(up, -2.0, 2.0);
            want = gate / (1 + std::exp(-1.702 * gate)) * (up + 1);
          }
          ASSERT_NEAR(y.floats()[t * inner + i], want, 2e-6 * (1 + std::fabs(want)))
              << t << " " << i;
        }
      }
    }
}

struct RouteCase {
  int64_t experts;
  reference::RouteRule rule;
  bool correction;
};
class Route : public testing::TestWithParam<RouteCase> {};

TEST_P(Route, MatchesReference) {
  const auto &[experts, rule, hasCorrection] = GetParam();
  std::mt19937 rng(9);
  const int64_t m = 50;
  std::vector<float> logits = randomFloats(rng, m * experts, -4, 4);
  std::vector<float> correction =
      hasCorrection ? randomFloats(rng, experts, -0.5, 0.5) : std::vector<float>();
  std::vector<std::vector<float>> perLevel;
  for (CpuLevel level : runnableLevels()) {
    CompiledKernel kernel("route",
                          {{"experts", experts},
                           {"chosen", rule.chosen},
                           {"scoring", rule.scoring},
                           {"normalize", int64_t(rule.normalize)},
                           {"correction", int64_t(hasCorrection)},
                           {"groups", rule.groups},
                           {"top_groups", rule.topGroups},
                           {"group_best_two", int64_t(rule.groupBestTwo)},
                           {"scale", rule.scale}},
                          level);
    LlmrtStep step{};
    step.T = m;
    Buffer xb = Buffer::of(logits), cb = Buffer::of(correction), ids(m * rule.chosen * 4),
           weights(m * rule.chosen * 4);
    std::vector<void *> bindings = {xb.data(), ids.data(), weights.data()};
    if (hasCorrection)
      bindings.insert(bindings.begin() + 1, cb.data());
    kernel.run(step, bindings, m, {}, 3);
    EXPECT_TRUE(ids.guardIsIntact() && weights.guardIsIntact());
    for (int64_t t = 0; t < m; ++t) {
      reference::Routing want =
          reference::route({&logits[t * experts], size_t(experts)}, correction, rule);
      for (int64_t j = 0; j < rule.chosen; ++j) {
        int32_t id;
        std::memcpy(&id, ids.data() + (t * rule.chosen + j) * 4, 4);
        ASSERT_EQ(id, want.experts[j]) << t << " " << j;
        ASSERT_NEAR(weights.floats()[t * rule.chosen + j], want.weights[j], 1e-6) << t << " " << j;
      }
    }
    perLevel.push_back(weights.floatVector());
    EXPECT_TRUE(sameBits(perLevel.back(), perLevel.front()));
  }
}

using reference::RouteRule;
INSTANTIATE_TEST_SUITE_P(
    Rules, Route,
    testing::Values(RouteCase{8, RouteRule{2, 0, true}, false},
                    RouteCase{60, RouteRule{4, 0, false}, false},
                    RouteCase{4, RouteRule{2, 2, false}, false},
                    RouteCase{37, RouteRule{37, 1, true, 0, 0, false, 2.0}, true},
                    RouteCase{32, RouteRule{6, 1, true, 8, 4, true, 2.5}, true},
                    RouteCase{24, RouteRule{3, 0, false, 6, 2, false, 16.0}, false}));

/// Equal logits: the lower expert. Numbers that are none: some expert, and a weight that is no
/// number.
TEST(Route, TiesAndNaNs) {
  CompiledKernel kernel("route", {{"experts", int64_t(6)}, {"chosen", int64_t(3)}, {"scale", 1.0}},
                        runnableLevels().front());
  std::vector<float> logits = {1, 2, 2, 0, 2, 1, NAN, NAN, NAN, NAN, NAN, NAN};
  LlmrtStep step{};
  step.T = 2;
  Buffer xb = Buffer::of(logits), ids(2 * 3 * 4), weights(2 * 3 * 4);
  kernel.run(step, {xb.data(), ids.data(), weights.data()}, 2);
  std::vector<int32_t> got(6);
  std::memcpy(got.data(), ids.data(), 24);
  EXPECT_EQ(std::vector<int32_t>(got.begin(), got.begin() + 3), (std::vector<int32_t>{1, 2, 4}));
  for (int i = 3; i < 6; ++i) {
    EXPECT_TRUE(got[i] >= 0 && got[i] < 6);
    EXPECT_TRUE(std::isnan(weights.floats()[i]));
  }
}

TEST(Combine, WeightedSumAndResidual) {
  std::mt19937 rng(12);
  const int64_t m = 7, d = 21, slots = 3;
  std::vector<float> x = randomFloats(rng, m * slots * d), w = randomFloats(rng, m * slots),
                     residual = randomFloats(rng, m * d);
  for (CpuLevel level : runnableLevels())
    for (int64_t hasResidual : {0, 1}) {
      CompiledKernel kernel("combine", {{"d", d}, {"slots", slots}, {"residual", hasResidual}},
                            level);
      Buffer xb = Buffer::of(x), wb = Buffer::of(w), rb = Buffer::of(residual), y(m * d * 4);
      std::vector<void *> bindings = {xb.data(), wb.data(), y.data()};
      if (hasResidual)
        bindings.insert(bindings.begin() + 2, rb.data());
      LlmrtStep step{};
      step.T = m;
      kernel.run(step, bindings, m, {}, 2);
      EXPECT_TRUE(y.guardIsIntact());
      for (int64_t t = 0; t < m; ++t)
        for (int64_t i = 0; i < d; ++i) {
          float want = x[t * slots * d + i] * w[t * slots];
          for (int64_t j = 1; j < slots; ++j)
            want = std::fma(w[t * slots + j], x[(t * slots + j) * d + i], want);
          if (hasResidual)
            want += residual[t * d + i];
          ASSERT_EQ(y.floats()[t * d + i], want) << t << " " << i;
        }
    }
}

/// Keys [latent, rotated] and queries [absorbed, rotated], halves and neighbours.
TEST(LatentAppend, KeysAndQueries) {
  const int64_t heads = 2, latent = 5, rotary = 4, stride = 7, size = latent + rotary;
  std::mt19937 rng(13);
  std::vector<float> absorbed = randomFloats(rng, heads * latent),
                     query = randomFloats(rng, heads * stride), rows = randomFloats(rng, latent),
                     key = randomFloats(rng, rotary);
  const std::vector<float> angles = {0.6f, 0.8f, 0.8f, -0.6f}; // cosines, sines
  std::vector<int64_t> slots = {18};
  auto rotated = [&](const float *x, bool interleaved) {
    std::vector<double> y(rotary);
    for (int64_t i = 0; i < 2; ++i) {
      const int64_t a = interleaved ? 2 * i : i, b = interleaved ? 2 * i + 1 : i + 2;
      y[a] = x[a] * angles[i] - x[b] * angles[2 + i];
      y[b] = x[b] * angles[i] + x[a] * angles[2 + i];
    }
    return y;
  };
  for (int64_t interleaved : {0, 1}) {
    const int64_t prefix = 8, perToken = size * 4 + prefix;
    LlmrtStep step{};
    step.T = 1, step.slots = slots.data(), step.blockTokens = 16, step.blockBytes = 16 * perToken;
    Buffer kv(2 * step.blockBytes), ab = Buffer::of(absorbed), qb = Buffer::of(query),
                                    rb = Buffer::of(rows), kb = Buffer::of(key),
                                    gb = Buffer::of(angles), q(heads * size * 4);
    step.kv = kv.data();
    CompiledKernel kernel("latent_append",
                          {{"heads", heads},
                           {"latent", latent},
                           {"rotary", rotary},
                           {"stride", stride},
                           {"interleaved", interleaved}},
                          runnableLevels().front());
    kernel.run(step, {ab.data(), qb.data(), rb.data(), kb.data(), gb.data(), q.data()}, 1,
               {prefix});
    EXPECT_TRUE(kv.guardIsIntact() && q.guardIsIntact());
    for (int64_t h = 0; h < heads; ++h) {
      std::vector<double> r = rotated(&query[h * stride + stride - rotary], interleaved);
      for (int64_t i = 0; i < size; ++i)
        EXPECT_NEAR(q.floats()[h * size + i], i < latent ? absorbed[h * latent + i] : r[i - latent],
                    1e-6);
    }
    // Slot 18: block 1, token 2 of its first run.
    const float *run = reinterpret_cast<const float *>(kv.data() + step.blockBytes + 16 * prefix);
    std::vector<double> r = rotated(key.data(), interleaved);
    for (int64_t i = 0; i < size; ++i)
      EXPECT_NEAR(run[i * 16 + 2], i < latent ? rows[i] : r[i - latent], 1e-6);
  }
}

} // namespace
