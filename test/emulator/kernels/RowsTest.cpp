// Kernels that look at a row at a time, on widths that are no multiple of anything, in three orders
// of threads, with a grid for more rows than there are.
#include "codegen/cpu/kernels/reference/Reference.h"
#include "test/emulator/kernels/KernelCases.h"
#include "test/unit/codegen/RandomWeight.h"

#include <cmath>

using namespace llmc;
using namespace llmc::test;

namespace {

const CudaModel model = {"test", "test", 256, 16, 1024, {}};

TEST(Norm, MatchesTheReference) {
  struct Case {
    const char *name;
    int64_t width, isLayer, plusOne, bias, group, onLogits;
  };
  const Case cases[] = {{"rms", 83, 0, 0, 0, 0, 0},          {"rms_plus_one", 576, 0, 1, 0, 0, 1},
                        {"layer_bias", 130, 1, 0, 1, 0, 0},  {"layer", 1, 1, 0, 0, 0, 0},
                        {"rms_int8", 75, 0, 0, 0, 32, 0},    {"layer_int8", 600, 1, 0, 1, 64, 1},
                        {"rms_int8_g16", 75, 0, 0, 0, 16, 0}};
  std::vector<KernelSpec> specs;
  for (const Case &c : cases)
    specs.push_back({c.name,
                     "norm",
                     {{"d", c.width},
                      {"rows", c.onLogits},
                      {"norm", c.isLayer},
                      {"eps", 1e-5},
                      {"plus_one", c.plusOne},
                      {"bias", c.bias},
                      {"out", int64_t(c.group != 0)},
                      {"group", c.group}}});
  EmulatedKernels kernels(specs, model);
  std::mt19937 rng(3);
  for (const Case &c : cases) {
    SCOPED_TRACE(c.name);
    const int64_t m = 5;
    const std::vector<float> x = randomFloats(rng, size_t(m * c.width), -3, 3),
                             w = randomFloats(rng, size_t(c.width)),
                             bias = randomFloats(rng, size_t(c.width));
    LlmrtCudaStep step{};
    (c.onLogits ? step.R : step.T) = m;
    const DeviceArray xs(x), ws(w), biases(bias);
    std::vector<float> want;
    for (int64_t i = 0; i < m; ++i)
      for (double v :
           reference::norm({&x[size_t(i * c.width)], size_t(c.width)}, w,
                           c.bias ? std::span<const float>(bias) : std::span<const float>(),
                           c.isLayer, 1e-5, c.plusOne))
        want.push_back(float(v));
    const int64_t padded = c.group ? (c.width + c.group - 1) / c.group * c.group : 0;
    DeviceArray y(size_t(m) *
                  (c.group ? size_t(padded + 8 * padded / c.group) : size_t(c.width) * 4));
    std::vector<void *> bindings = {xs.data(), ws.data()};
    if (c.bias)
      bindings.push_back(biases.data());
    bindings.push_back(y.data());
    if (!c.group) {
      const std::vector<float> got = runAll<float>(kernels, c.name, step, bindings, y);
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i)
        ASSERT_NEAR(got[i], want[i], 2e-5) << i;
      continue;
    }
    const std::vector<int8_t> got = runAll<int8_t>(kernels, c.name, step, bindings, y);
    const reference::QuantizedRows q = reference::quantizeRows(m, c.width, c.group, want.data());
    ASSERT_EQ(got.size(), y.bytes());
    for (int64_t i = 0; i < m; ++i) {
      const int8_t *row = &got[size_t(i * (padded + 8 * padded / c.group))];
      int64_t sum = 0;
      for (int64_t k = 0; k < c.width; ++k) {
        ASSERT_NEAR(row[k], q.q[size_t(i * c.width + k)], 1) << i << " " << k;
        if (k < c.group)
          sum += row[k];
      }
      float scale;
      int32_t stored;
      std::memcpy(&scale, row + padded, 4);
      std::memcpy(&stored, row + padded + 4 * padded / c.group, 4);
      ASSERT_NEAR(scale, q.scales[size_t(i * q.groups())], 1e-5);
      ASSERT_EQ(stored, sum);
    }
  }
}

TEST(Quantize, HasTheReferencesBits) {
  std::mt19937 rng(5);
  const int64_t k = 75, group = 32, m = 6;
  std::vector<float> x = randomFloats(rng, size_t(m * k), -3, 3);
  std::fill_n(x.begin() + k, k, 0.0f); // a row of zeros
  x[size_t(3 * k + 40)] = INFINITY;    // a group that has no scale
  EmulatedKernels kernels({{"q", "quantize", {{"k", k}, {"group", group}}}}, model);
  const DeviceArray xs(x);
  const Buffer want = quantizedBuffer(reference::quantizeRows(m, k, group, x.data()));
  DeviceArray y(want.bytes());
  LlmrtCudaStep step{};
  step.T = m;
  const std::vector<uint8_t> got = runAll<uint8_t>(kernels, "q", step, pointers({&xs, &y}), y);
  ASSERT_EQ(got.size(), want.bytes());
  const size_t rowBytes = want.bytes() / size_t(m);
  for (size_t i = 0; i < got.size(); ++i)
    if (i / rowBytes != 3) // NaN has several bit patterns
      ASSERT_EQ(got[i], want.data()[i]) << "byte " << i;
  float scale;
  std::memcpy(&scale, &got[3 * rowBytes + 96 + 4], 4);
  ASSERT_TRUE(std::isnan(scale));
}

TEST(Embed, RowsOfEveryPacking) {
  std::mt19937 rng(6);
  const int64_t rows = 37, width = 75;
  struct Case {
    const char *name;
    WeightFormat format;
    int64_t positions;
  };
  const Case cases[] = {
      {"f16", n16(Element::F16), 0},
      {"bf16", n16(Element::BF16), 0},
      {"f32", n16(Element::F32), rows},
      {"i4", n16k4(Element::I4, 32, Element::F16, true, Element::F16), 0},
      {"i8", n16k4(Element::I8, 16, Element::F32, false), 0},
  };
  std::vector<KernelSpec> specs;
  for (const Case &c : cases)
    specs.push_back(
        {c.name, "embed",
         std::vector<KernelConstant>{{"d", width}, {"scale", 2.0}, {"positions", c.positions}} +
             formatConstants(c.format)});
  specs.push_back({"gather", "gather_rows", {{"d", width}}});
  EmulatedKernels kernels(specs, model);
  const std::vector<int32_t> tokens = {36, 0, 17, 16, 15, 3};
  const std::vector<int32_t> positions = {0, 1, 2, 36, 37, 1000}; // the last two: beyond the table
  const DeviceArray tokenMemory(tokens), positionMemory(positions);
  LlmrtCudaStep step{};
  step.T = int64_t(tokens.size());
  step.tokens = reinterpret_cast<const int *>(tokenMemory.data());
  step.positions = reinterpret_cast<const int *>(positionMemory.data());
  for (const Case &c : cases) {
    SCOPED_TRACE(c.name);
    const Weight w = makeWeight(rng, c.format, rows, width);
    const DeviceArray weights(
        std::vector<uint8_t>(w.packed.data(), w.packed.data() + w.packed.bytes()));
    DeviceArray y(tokens.size() * size_t(width) * 4);
    const std::vector<float> got =
        runAll<float>(kernels, c.name, step, pointers({&weights, &y}), y);
    ASSERT_EQ(got.size(), tokens.size() * size_t(width));
    for (size_t i = 0; i < got.size(); ++i) {
      const size_t t = i / size_t(width);
      const int64_t row = c.positions ? std::min<int64_t>(positions[t], rows - 1) : tokens[t];
      ASSERT_EQ(got[i], 2 * w.values[size_t(row * width) + i % size_t(width)]) << i;
    }
  }
  const std::vector<float> x = randomFloats(rng, size_t(6 * width));
  const std::vector<int32_t> rowsOf = {5, 0, 3};
  const DeviceArray xs(x), logitRows(rowsOf);
  step.R = 3;
  step.logitRows = reinterpret_cast<const int *>(logitRows.data());
  DeviceArray y(size_t(3 * width) * 4);
  const std::vector<float> got = runAll<float>(kernels, "gather", step, pointers({&xs, &y}), y);
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(got[i], x[size_t(rowsOf[i / size_t(width)] * width) + i % size_t(width)]);
}

TEST(Elementwise, EveryOperation) {
  struct Op {
    const char *name;
    bool binary;
    double (*apply)(double, double);
  };
  static const Op ops[] = {
      {"add", true, [](double a, double b) { return a + b; }},
      {"mul", true, [](double a, double b) { return a * b; }},
      {"scale", false, [](double a, double) { return a * 0.7; }},
      {"softcap", false, [](double a, double) { return 0.7 * std::tanh(a / 0.7); }},
      {"relu", false, [](double a, double) { return reference::activate(a, 4); }},
      {"silu", false, [](double a, double) { return reference::activate(a, 1); }},
      {"gelu", false, [](double a, double) { return reference::activate(a, 2); }},
      {"gelu_tanh", false, [](double a, double) { return reference::activate(a, 3); }},
      {"sigmoid", false, [](double a, double) { return reference::activate(a, 5); }},
      {"relu_mul", true, [](double a, double b) { return reference::activate(a, 4) * b; }},
      {"silu_mul", true, [](double a, double b) { return reference::activate(a, 1) * b; }},
      {"gelu_mul", true, [](double a, double b) { return reference::activate(a, 2) * b; }},
      {"gelu_tanh_mul", true, [](double a, double b) { return reference::activate(a, 3) * b; }},
      {"sigmoid_mul", true, [](double a, double b) { return reference::activate(a, 5) * b; }},
  };
  const int64_t width = 83, m = 7;
  std::vector<KernelSpec> specs;
  for (const Op &op : ops)
    specs.push_back({std::string("op_") + op.name,
                     "elementwise",
                     {{"op", std::string(op.name)}, {"d", width}, {"scale", 0.7}}});
  EmulatedKernels kernels(specs, model);
  std::mt19937 rng(10);
  const std::vector<float> a = randomFloats(rng, size_t(m * width), -9, 9),
                           b = randomFloats(rng, size_t(m * width), -3, 3);
  const DeviceArray as(a), bs(b);
  LlmrtCudaStep step{};
  step.T = m;
  for (const Op &op : ops) {
    SCOPED_TRACE(op.name);
    DeviceArray y(a.size() * 4);
    const std::vector<float> got =
        runAll<float>(kernels, (std::string("op_") + op.name).c_str(), step,
                      op.binary ? pointers({&as, &bs, &y}) : pointers({&as, &y}), y);
    ASSERT_EQ(got.size(), a.size());
    for (size_t i = 0; i < a.size(); ++i) {
      const double want = op.apply(a[i], b[i]);
      ASSERT_NEAR(got[i], want, 2e-6 * (1 + std::fabs(want))) << a[i];
    }
  }
}

} // namespace
