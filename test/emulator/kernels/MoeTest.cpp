// Mixtures of experts: the router against its reference, products by the matrices of ids against
// `gemm` of each matrix, bit for bit.
#include "test/emulator/kernels/KernelCases.h"
#include "test/unit/codegen/RandomWeight.h"

#include <cmath>

using namespace llmc;
using namespace llmc::test;

namespace {

const CudaModel model = {"test", "test", 256, 16, 1024, {}};

struct RouteCase {
  const char *name;
  int64_t experts, correction;
  reference::RouteRule rule;
};

const RouteCase routes[] = {
    {"softmax", 8, 0, {2, 0, true}},
    {"softmax_plain", 60, 0, {4, 0, false, 0, 0, false, 1.5}},
    {"chosen", 37, 0, {4, 2}},
    {"chosen_normalized", 37, 0, {4, 2, true}},
    {"sigmoid_groups", 64, 1, {6, 1, true, 8, 3, true, 2.5}},
    {"groups", 16, 0, {3, 0, false, 4, 2, false, 1}},
};

std::vector<KernelSpec> routeSpecs() {
  std::vector<KernelSpec> specs;
  for (const RouteCase &c : routes)
    specs.push_back({c.name,
                     "route",
                     {{"experts", c.experts},
                      {"chosen", c.rule.chosen},
                      {"scoring", c.rule.scoring},
                      {"normalize", int64_t(c.rule.normalize)},
                      {"correction", c.correction},
                      {"groups", c.rule.groups},
                      {"top_groups", c.rule.topGroups},
                      {"group_best_two", int64_t(c.rule.groupBestTwo)},
                      {"scale", c.rule.scale}}});
  return specs;
}

TEST(Route, MatchesTheReference) {
  EmulatedKernels kernels(routeSpecs(), model);
  std::mt19937 rng(12);
  const int64_t m = 9;
  for (const RouteCase &c : routes) {
    SCOPED_TRACE(c.name);
    std::vector<float> logits = randomFloats(rng, size_t(m * c.experts), -3, 3);
    std::fill_n(logits.begin(), c.experts, 0.5f); // ties go to the lower index
    const std::vector<float> correction =
        c.correction ? randomFloats(rng, size_t(c.experts)) : std::vector<float>();
    const DeviceArray x(logits), shift(correction);
    DeviceArray ids(size_t(m * c.rule.chosen) * 4), weights(size_t(m * c.rule.chosen) * 4);
    LlmrtCudaStep step{};
    step.T = m;
    StepSizes bucket;
    bucket.T = m + 3;
    std::vector<void *> bindings = {x.data()};
    if (c.correction)
      bindings.push_back(shift.data());
    bindings.push_back(ids.data());
    bindings.push_back(weights.data());
    for (simt::Order order : allOrders) {
      simt::options().order = order;
      kernels.run(c.name, step, bucket, bindings);
      ASSERT_FALSE(HasFatalFailure());
      const std::vector<int32_t> got = ids.read<int32_t>();
      const std::vector<float> share = weights.read<float>();
      for (int64_t i = 0; i < m; ++i) {
        const reference::Routing want = reference::route(
            {&logits[size_t(i * c.experts)], size_t(c.experts)}, correction, c.rule);
        for (int64_t j = 0; j < c.rule.chosen; ++j) {
          ASSERT_EQ(got[size_t(i * c.rule.chosen + j)], want.experts[size_t(j)]) << i << " " << j;
          ASSERT_NEAR(share[size_t(i * c.rule.chosen + j)], want.weights[size_t(j)], 1e-6);
        }
      }
    }
  }
  simt::options().order = simt::Order::Forward;
}

/// A row of NaN gets experts that exist, and no weight that would pass for a number.
TEST(Route, RowsWithoutNumbers) {
  EmulatedKernels kernels(routeSpecs(), model);
  for (const RouteCase &c : routes) {
    SCOPED_TRACE(c.name);
    const DeviceArray x(std::vector<float>(size_t(c.experts), NAN)),
        shift(std::vector<float>(size_t(c.correction ? c.experts : 0), 0.5f));
    DeviceArray ids(size_t(c.rule.chosen) * 4), weights(size_t(c.rule.chosen) * 4);
    std::vector<void *> bindings = {x.data()};
    if (c.correction)
      bindings.push_back(shift.data());
    bindings.push_back(ids.data());
    bindings.push_back(weights.data());
    LlmrtCudaStep step{};
    step.T = 1;
    StepSizes bucket;
    bucket.T = 1;
    kernels.run(c.name, step, bucket, bindings);
    ASSERT_FALSE(HasFatalFailure());
    for (int32_t id : ids.read<int32_t>())
      EXPECT_TRUE(id >= 0 && id < c.experts) << id;
    for (float w : weights.read<float>())
      EXPECT_TRUE(std::isnan(w)) << w;
  }
}

struct ProductCase {
  const char *name;
  WeightFormat format;
  int64_t n, k, group, xStride;
  bool chosen, glu = false, bias = false;
  double alpha = 0, limit = 0;
};
const ProductCase products[] = {
    {"f32_shared_x", n16(Element::F32), 37, 51, 0, 0, true},
    {"bf16_own_x", n16(Element::BF16), 48, 36, 0, 36, true},
    {"i4_glu_bias", n16k4(Element::I4, 32, Element::F16, false), 64, 96, 0, 0, true, true, true,
     1.702, 7},
    {"i8_int8_rows", n16k4(Element::I8, 32, Element::F16, false), 33, 75, 32, 75, true},
    {"f16_heads", n16(Element::F16), 20, 12, 0, 17, false},
    {"f16_slices", n16(Element::F16), 16, 260, 0, 0, true}, // several warps, of which one gathers
};

class Experts : public testing::TestWithParam<ProductCase> {};

TEST_P(Experts, HaveTheirMatrixsProduct) {
  const ProductCase &c = GetParam();
  const int64_t groups = c.chosen ? 5 : 3, slots = 3, most = 45;
  const int64_t outputs = c.glu ? c.n / 2 : c.n;
  auto constants = [&](bool grouped) {
    std::vector<KernelConstant> all = {{"k", c.k},
                                       {"n", c.n},
                                       {"x_int8", int64_t(c.group != 0)},
                                       {"group", c.group},
                                       {"task_tiles", int64_t(2)}};
    if (grouped)
      all = all + std::vector<KernelConstant>{{"glu", int64_t(c.glu)},
                                              {"bias", int64_t(c.bias)},
                                              {"alpha", c.alpha},
                                              {"limit", c.limit},
                                              {"groups", groups},
                                              {"slots", slots},
                                              {"chosen", int64_t(c.chosen)},
                                              {"x_stride", c.xStride}};
    return all + formatConstants(c.format);
  };
  EmulatedKernels kernels({{"grouped", "grouped_gemm", constants(true)}}, model);
  // The plain product of the same matrices: rows of both halves of a glu alike.
  EmulatedKernels plain({{"plain", "gemm", constants(false)}}, model);
  std::mt19937 rng(17);
  const int64_t rows = c.glu ? (outputs + 15) / 16 * 32 : c.n;
  ASSERT_EQ(rows, c.n) << "whole tiles, so that the plain product has the same ones";
  const size_t bytes = *packedBytes(c.format, rows, c.k);
  std::vector<uint8_t> packed;
  for (int64_t g = 0; g < groups; ++g) {
    const Weight w = makeWeight(rng, c.format, rows, c.k);
    packed.insert(packed.end(), w.packed.data(), w.packed.data() + bytes);
  }
  const int64_t stride = c.xStride ? c.xStride : c.k, inputs = c.xStride ? most * slots : most;
  const std::vector<float> x = randomFloats(rng, size_t(inputs * stride), -2, 2);
  std::vector<float> tight; // without what a stride leaves between rows
  for (int64_t i = 0; i < inputs; ++i)
    tight.insert(tight.end(), x.begin() + i * stride, x.begin() + i * stride + c.k);
  std::vector<int32_t> ids(size_t(most * slots));
  for (int64_t e = 0; e < most * slots; ++e)
    ids[size_t(e)] =
        c.chosen ? int32_t(e / slots % 7 == 0 ? e % 5 : (e + e / slots) % 4) : int32_t(e % slots);
  ids[4] = c.chosen ? -7 : ids[4]; // names no matrix: nothing is written
  const int64_t tiles = (outputs + 15) / 16 * (c.glu ? 2 : 1);
  const std::vector<float> bias = randomFloats(rng, size_t(groups * tiles * 16));
  auto upload = [&](const std::vector<float> &values, int64_t count) {
    const std::vector<float> part(values.begin(),
                                  values.begin() + count * int64_t(values.size()) / inputs);
    if (!c.group)
      return DeviceArray(part);
    const Buffer q = quantizedBuffer(reference::quantizeRows(count, c.k, c.group, part.data()));
    return DeviceArray(std::vector<uint8_t>(q.data(), q.data() + q.bytes()));
  };

  std::vector<std::vector<float>> each; // [group][input][n]
  LlmrtCudaStep step{};
  StepSizes bucket;
  for (int64_t g = 0; g < groups; ++g) {
    const DeviceArray w(std::vector<uint8_t>(packed.begin() + g * int64_t(bytes),
                                             packed.begin() + (g + 1) * int64_t(bytes)));
    const DeviceArray input = upload(tight, inputs);
    DeviceArray y(size_t(inputs * c.n) * 4);
    step.T = bucket.T = inputs;
    plain.run("plain", step, bucket, {input.data(), w.data(), y.data()});
    ASSERT_FALSE(HasFatalFailure());
    each.push_back(y.read<float>());
  }
  const DeviceArray weights(packed), biasMemory(bias);
  for (int64_t m : {45, 1, 8, 9})
    for (simt::Order order : allOrders) {
      simt::options().order = order;
      const DeviceArray input = upload(c.group ? tight : x, c.xStride ? m * slots : m);
      const DeviceArray idMemory(std::vector<int32_t>(ids.begin(), ids.begin() + m * slots));
      DeviceArray y(size_t(m * slots * outputs) * 4);
      std::vector<void *> bindings = {input.data(), weights.data()};
      if (c.chosen)
        bindings.push_back(idMemory.data());
      if (c.bias)
        bindings.push_back(biasMemory.data());
      bindings.push_back(y.data());
      step.T = m;
      bucket.T = m <= 8 ? 8 : m + 5;
      kernels.run("grouped", step, bucket, bindings);
      ASSERT_FALSE(HasFatalFailure());
      const std::vector<float> got = y.read<float>();
      for (int64_t e = 0; e < m * slots; ++e)
        for (int64_t j = 0; j < outputs; ++j) {
          const int64_t id = ids[size_t(e)];
          if (id < 0)
            continue;
          const float *row = &each[size_t(id)][size_t((c.xStride ? e : e / slots) * c.n)];
          if (!c.glu) {
            ASSERT_EQ(got[size_t(e * outputs + j)], row[j]) << "entry " << e << " column " << j;
            continue;
          }
          const int64_t at = j / 16 * 32 + j % 16;
          const float *shift = &bias[size_t(id * tiles * 16)];
          const double gate = std::min<double>(row[at] + shift[at], c.limit);
          const double up = std::clamp<double>(row[at + 16] + shift[at + 16], -c.limit, c.limit);
          const double want = gate / (1 + std::exp(-c.alpha * gate)) * (up + 1);
          ASSERT_NEAR(got[size_t(e * outputs + j)], want, 1e-5 * (1 + std::fabs(want)));
        }
    }
  simt::options().order = simt::Order::Forward;
}

INSTANTIATE_TEST_SUITE_P(Formats, Experts, testing::ValuesIn(products), nameOfCase);

TEST(Combine, AddsTheSlots) {
  const int64_t d = 83, slots = 3, m = 7;
  EmulatedKernels kernels(
      {{"plain", "combine", {{"d", d}, {"slots", slots}}},
       {"more", "combine", {{"d", d}, {"slots", slots}, {"residual", int64_t(1)}}}},
      model);
  std::mt19937 rng(4);
  const std::vector<float> x = randomFloats(rng, size_t(m * slots * d)),
                           w = randomFloats(rng, size_t(m * slots)),
                           residual = randomFloats(rng, size_t(m * d));
  const DeviceArray xs(x), ws(w), rs(residual);
  LlmrtCudaStep step{};
  step.T = m;
  StepSizes bucket;
  bucket.T = m + 4;
  for (bool more : {false, true})
    for (simt::Order order : allOrders) {
      simt::options().order = order;
      DeviceArray y(size_t(m * d) * 4);
      std::vector<void *> bindings = {xs.data(), ws.data()};
      if (more)
        bindings.push_back(rs.data());
      bindings.push_back(y.data());
      kernels.run(more ? "more" : "plain", step, bucket, bindings);
      ASSERT_FALSE(HasFatalFailure());
      const std::vector<float> got = y.read<float>();
      for (int64_t i = 0; i < m * d; ++i) {
        float want = x[size_t(i / d * slots * d + i % d)] * w[size_t(i / d * slots)];
        for (int64_t j = 1; j < slots; ++j)
          want = std::fma(w[size_t(i / d * slots + j)], x[size_t((i / d * slots + j) * d + i % d)],
                          want);
        ASSERT_EQ(got[size_t(i)], more ? want + residual[size_t(i)] : want) << i;
      }
    }
  simt::options().order = simt::Order::Forward;
}

} // namespace
